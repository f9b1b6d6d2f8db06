"""Discrete dominating pairs: a mechanism's privacy loss as two distributions on finitely many outcomes."""

from privselect.pairs.discretize import connect_the_dots, merge_cells
from privselect.pairs.dominating_pair import Bracket, DominatingPair
from privselect.pairs.from_guarantees import bracket_from_points
from privselect.pairs.from_profile import pair_from_profile

__all__ = ["Bracket", "DominatingPair", "bracket_from_points", "connect_the_dots", "merge_cells", "pair_from_profile"]
