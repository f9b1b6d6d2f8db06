"""The price of releasing only the winner: every bound, and the selection itself as a mechanism."""

from privselect.selection.selection import Selection

__all__ = ["Selection"]
