"""Discrete dominating pairs: what a mechanism leaks, as two finite laws."""

from privselect.pairs.bracket import Bracket
from privselect.pairs.discretize import connect_the_dots, merge_cells
from privselect.pairs.dominating_pair import DominatingPair
from privselect.pairs.from_guarantees import bracket_from_points
from privselect.pairs.from_profile import pair_from_curve

__all__ = ["Bracket", "DominatingPair", "bracket_from_points", "connect_the_dots", "merge_cells", "pair_from_curve"]
