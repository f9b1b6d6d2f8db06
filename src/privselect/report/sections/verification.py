"""How to check all of it again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from privselect.report.document import Code, Commands, Facts, Said, Section, paragraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.report.document import Words


def how_to_check(name: str, certificate: Certificate | None) -> Section:
    """The commands, with the name of the certificate's file, and what tells this certificate from others."""
    commands, words = Commands(tuple(_commands(name, certificate))), paragraph(_COPY)
    facts = () if certificate is None else (Facts(tuple(_facts(certificate))),)
    return Section("checking", "Check it yourself", (words, commands, *facts))


_COPY = (
    "This page is a copy for reading, and anyone could have written one like it. What counts is the certificate: these commands compute "
    "its claim again, from its text forms alone, and write a page about it."
)


def _commands(name: str, certificate: Certificate | None) -> Iterator[str]:
    # A name that begins with a dash would be read as an option.
    file = shlex.quote(f"./{name}" if name.startswith("-") else name)
    yield "pip install 'privselect[cli,sign]'" if certificate is not None and certificate.signature else "pip install 'privselect[cli]'"
    yield f"privselect verify {file}"
    yield f"privselect verify {file} --plan PLAN.toml  # against the plan that was agreed on"
    if certificate is not None and certificate.signature is not None:
        yield f"privselect verify {file} --key KEY  # refuses every other signer"
    yield f"privselect report {file}"


def _facts(certificate: Certificate) -> Iterator[tuple[str, Words]]:
    versions = certificate.versions
    yield "hash of the certificate", (Code(certificate.hash),)
    yield "hash of the plan", (Code(certificate.promise_hash),)
    if certificate.run is not None and certificate.run.plan is not None:
        yield "hash of what was run", (Code(certificate.run.plan), ", of plan.json beside the release")
    if certificate.signature is not None:
        yield "signed by the key", (Code(certificate.signature.key),)
    yield "made", (certificate.made,)
    said = [(f"{', ' if place else ''}{name.replace('_', '-')} ", Said(version)) for place, (name, version) in enumerate(versions)]
    yield "made by", tuple(word for pair in said for word in pair)
