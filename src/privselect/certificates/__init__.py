"""Certificates: what was promised, what it was found to cost, and how anyone can check it."""

from privselect.errors import MissingExtraError

try:
    import pydantic as pydantic
except ModuleNotFoundError:
    raise MissingExtraError("certificates need pydantic; install it with: pip install 'privselect[certificates]'") from None
