"""``privselect schema``."""

from privselect.cli.output import print_json


def schema() -> None:
    """Print the JSON Schema of a certificate."""
    from privselect.certificates.certificate import Certificate

    print_json(Certificate.model_json_schema())
