"""Errors that privselect raises on purpose. Each is also a builtin error, so ``except ValueError`` catches it."""


class PrivselectError(Exception):
    """Base class of all errors that privselect raises on purpose."""


class ParameterError(PrivselectError, ValueError):
    """A value is outside its allowed range. The message gives the parameter, the range and the value."""


class TextFormError(PrivselectError, ValueError):
    """A text form such as ``gaussian(sigma=4)`` cannot be parsed. The message gives the position or the parameter."""


class NeighbourError(PrivselectError, ValueError):
    """The parts of a mechanism use different neighbouring relations (add/remove or replace one record)."""


class NotCoveredError(PrivselectError, ValueError):
    """The requested bound does not apply to this mechanism or law of K. The message gives the reason."""


class AccuracyError(ParameterError):
    """The requested accuracy cannot be reached. The message gives an accuracy that can be reached."""


class CertificateError(PrivselectError, ValueError):
    """A file is not a certificate that this version can read. The message gives the reason."""


class FieldsError(CertificateError):
    """A certificate of a known version has missing or unexpected fields, for example after tampering."""


class LedgerError(PrivselectError, RuntimeError):
    """A ledger cannot be used for the requested run. The ledger is unchanged, and the message reveals none of its content."""


class AbortedError(PrivselectError, RuntimeError):
    """A run ended without a release. The message gives the reason and reveals nothing about the trials."""


class MissingExtraError(PrivselectError, ImportError):
    """An optional dependency is not installed. The message gives the pip command."""
