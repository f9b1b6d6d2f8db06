"""What a report is made of: words, lists, tables and charts, as data. How they look is said elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Said:
    """Words of whoever made the certificate: shown in quotes, so that they cannot pass for ours."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A text form, a hash, a name of a file."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that must not be missed."""

    text: str


@dataclass(frozen=True, slots=True)
class Raised:
    """An exponent."""

    text: str


@dataclass(frozen=True, slots=True)
class Small:
    """A line of its own, below what it explains."""

    text: str


Inline: TypeAlias = str | Said | Code | Strong | Raised | Small
Words: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Some sentences; ``kind`` is "plain", "note" for the small print, or "quote" for the certificate's own words."""

    words: Words
    kind: str = "plain"


def paragraph(*words: Inline, kind: str = "plain") -> Paragraph:
    """A paragraph of these words."""
    return Paragraph(words, kind)


@dataclass(frozen=True, slots=True)
class Heading:
    """Inside a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, and what is to be said of each."""

    rows: tuple[tuple[str, Words | Items], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A head, which may be empty, and rows: the first cell of a row is its own head, the others are numbers."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to be typed."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line over two axes; ``steps`` falls at its points, ``logarithmic`` is about the axis upward."""

    name: str
    title: str
    description: str
    across: str
    upward: str
    points: tuple[tuple[float, float], ...]
    logarithmic: bool = False
    steps: bool = False
    mark: tuple[float, float, str] | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """``kind`` is "exact", "bound", "alone" for a single trial, or "other" for what is no bound on the same thing."""

    label: str
    value: float
    shown: str
    kind: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from the left, one a row."""

    name: str
    title: str
    description: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Charts side by side, each with the words below it."""

    charts: tuple[tuple[Curve | Bars, Words], ...]


Block: TypeAlias = Paragraph | Heading | Items | Facts | Table | Commands | Figures


@dataclass(frozen=True, slots=True)
class Section:
    """``name`` is what links to it say."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a reader must know before all else; ``grave`` where nothing should rest on the claim."""

    name: str
    words: Words
    grave: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """A whole report. ``headline`` is the verdict and ``figure`` the claim in large type, None where there is none to make."""

    title: str
    subject: str
    headline: str
    figure: str | None
    verdict: Words
    marks: tuple[Mark, ...]
    sections: tuple[Section, ...]
    colophon: str

    @property
    def look(self) -> str:
        """How the verdict looks: "refused", "grave" where a mark is, or "good"."""
        return "refused" if self.figure is None else "grave" if any(mark.grave for mark in self.marks) else "good"
