"""Every error this package raises on purpose; each is also a builtin, so that plain ``except ValueError`` works."""


class PrivselectError(Exception):
    """Base of all errors raised on purpose by privselect."""


class ParameterError(PrivselectError, ValueError):
    """A value is outside its allowed range; the message names the value and the range."""


class TextFormError(PrivselectError, ValueError):
    """A text form such as ``gaussian(sigma=4)`` cannot be read."""


class NeighbourError(PrivselectError, ValueError):
    """Parts of one mechanism disagree on which data sets are neighbours."""


class NotCoveredError(PrivselectError, ValueError):
    """The asked bound does not apply to this mechanism or law of K; the message says why."""


class AccuracyError(ParameterError):
    """The asked accuracy cannot be reached; the message says which one can."""


class CertificateError(PrivselectError, ValueError):
    """A file is no certificate that this version can read; the message says why."""


class FieldsError(CertificateError):
    """A certificate of a known version does not hold the fields of that version, as after tampering."""


class LedgerError(PrivselectError, RuntimeError):
    """A ledger cannot be used as asked; nothing in it was changed. The message says why, and never what the ledger holds."""


class AbortedError(PrivselectError, RuntimeError):
    """A run ended without a release; the message says why, and nothing about its trials."""


class MissingExtraError(PrivselectError, ImportError):
    """An optional dependency is not installed; the message holds the pip command."""
