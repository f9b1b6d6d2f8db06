"""HTML and SVG as text that is escaped by construction: whatever is not made by :func:`tag` is shown, never obeyed."""

from __future__ import annotations

import html
import unicodedata

_EMPTY = {"meta"}  # elements without an end tag
_HIDDEN = {"Zl", "Zp"}  # and all of category C: controls, marks that turn or hide text, halves of surrogate pairs


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: object) -> Markup:
    """An element. Children that are plain text are escaped; ``class_`` and ``aria_label`` name the attributes class and aria-label."""
    written = "".join(f' {_attribute(key)}="{escaped(str(value))}"' for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: tuple[str, ...] | list[str]) -> Markup:
    """One after the other, each escaped unless it is markup."""
    return Markup("".join(part if isinstance(part, Markup) else escaped(part) for part in parts))


def escaped(text: str) -> Markup:
    """As characters, without those that a reader would not see or that would turn what stands around them."""
    return Markup(html.escape("".join(map(_visible, text)), quote=True))


def _visible(character: str) -> str:
    kind = unicodedata.category(character)
    return f"\\u{ord(character):04x}" if kind[0] == "C" or kind in _HIDDEN else character


def _attribute(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")
