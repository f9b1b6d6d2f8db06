"""Private selection: the privacy cost of releasing only the winner, by every bound."""

from privselect.selection.selection import Selection
from privselect.selection.two_stages import Stages, search_then_train, stages_of

__all__ = ["Selection", "Stages", "search_then_train", "stages_of"]
