"""``privselect schema``."""

from privselect.cli.printing import print_json


def schema() -> None:
    """The JSON Schema of a certificate."""
    from privselect.certificates.certificate import Certificate

    print_json(Certificate.model_json_schema())
