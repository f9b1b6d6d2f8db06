"""Discrete dominating pairs: what a mechanism leaks, as two finite laws."""

from privselect.pairs.bracket import Bracket
from privselect.pairs.cells import connect_the_dots, merge_cells
from privselect.pairs.curve import pair_from_curve
from privselect.pairs.dominating import DominatingPair
from privselect.pairs.points import bracket_from_points

__all__ = ["Bracket", "DominatingPair", "bracket_from_points", "connect_the_dots", "merge_cells", "pair_from_curve"]
