"""The page: one file of HTML, without scripts, that loads nothing."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, assert_never

from privselect.report.document import Code, Commands, Curve, Facts, Figures, Heading, Items, Paragraph, Raised, Said, Small, Strong, Table
from privselect.report.html import Markup, joined, tag
from privselect.report.svg import bars_svg, curve_svg

if TYPE_CHECKING:
    from privselect.report.document import Bars, Block, Content, Inline, Mark, Section, Words

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_of(content: Content) -> str:
    """The whole report as HTML."""
    style = Markup(files("privselect.report").joinpath("style.css").read_text(encoding="utf-8"))
    claim = content.headline if content.figure is None else content.figure
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{content.title}: {claim}"),
        tag("style", style),
    )
    main = tag("main", _verdict(content), _contents(content), *map(_section, content.sections))
    body = tag("body", _header(content), main, tag("footer", tag("p", content.colophon)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _header(content: Content) -> Markup:
    return tag("header", tag("h1", content.title), tag("p", content.subject))


def _verdict(content: Content) -> Markup:
    figure = () if content.figure is None else (tag("p", content.figure, class_="figure"),)
    marks = (tag("ul", *map(_mark, content.marks), class_="marks"),) if content.marks else ()
    told = tag("p", _words(content.verdict), class_="told")
    named = {"aria_label": "Verdict", "class_": f"verdict {content.look}"}
    return tag("section", tag("p", content.headline, class_="headline"), *figure, told, *marks, **named)


def _mark(mark: Mark) -> Markup:
    return tag("li", tag("strong", mark.name), " ", tag("span", _words(mark.words)), class_="grave" if mark.grave else None)


def _contents(content: Content) -> Markup:
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in content.sections]
    return tag("nav", tag("ol", *links), aria_label="Contents")


def _section(section: Section) -> Markup:
    heading = tag("h2", section.title, id=f"{section.name}-heading")
    return tag("section", heading, *map(_block, section.blocks), id=section.name, aria_labelledby=f"{section.name}-heading")


def _block(block: Block) -> Markup:  # noqa: PLR0911 - one for each kind
    match block:
        case Paragraph():
            return _paragraph(block)
        case Heading():
            return tag("h3", block.text)
        case Items():
            return tag("ul", *(tag("li", _words(words)) for words in block.items))
        case Facts():
            return tag("dl", *(tag("div", tag("dt", name), tag("dd", _fact(said))) for name, said in block.rows))
        case Table():
            return _table(block)
        case Commands():
            return tag("pre", tag("code", *(tag("span", line) for line in block.lines)))
        case Figures():
            return tag("div", *(_figure(chart, caption) for chart, caption in block.charts), class_="figures")
    assert_never(block)


def _paragraph(block: Paragraph) -> Markup:
    if block.kind == "quote":
        return tag("blockquote", tag("p", _words(block.words)))
    return tag("p", _words(block.words), class_=None if block.kind == "plain" else block.kind)


def _fact(said: Words | Items) -> Markup:
    return _block(said) if isinstance(said, Items) else _words(said)


def _table(table: Table) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in table.head)))
    rows = [tag("tr", tag("th", _words(first), scope="row"), *(tag("td", _words(cell)) for cell in cells)) for first, *cells in table.rows]
    return tag("table", tag("caption", table.caption), *((head,) if table.head else ()), tag("tbody", *rows))


def _figure(chart: Curve | Bars, caption: Words) -> Markup:
    drawn = curve_svg(chart) if isinstance(chart, Curve) else bars_svg(chart)
    return tag("figure", drawn, *((tag("figcaption", _words(caption)),) if caption else ()))


def _words(words: Words) -> Markup:
    return joined([_inline(part) for part in words])


def _inline(part: Inline) -> str:
    match part:
        case Said():
            return tag("q", part.text, dir="auto")
        case Code():
            return tag("code", part.text, dir="ltr")
        case Strong():
            return tag("strong", part.text)
        case Raised():
            return tag("sup", part.text)
        case Small():
            return tag("small", part.text)
    return part
