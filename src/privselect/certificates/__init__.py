"""Certificates: the plan, its certified privacy cost, and everything needed to verify the cost."""

from privselect.errors import MissingExtraError

try:
    import pydantic as pydantic
except ModuleNotFoundError:
    raise MissingExtraError("certificates need pydantic; install it with: pip install 'privselect[certificates]'") from None
