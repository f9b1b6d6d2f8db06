"""Private selection: the privacy cost of releasing only the winner, by every bound."""

from privselect.selection.selection import Selection

__all__ = ["Selection"]
