"""A report as a reader sees it: its text, its elements, its charts."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section", "h1", "h2", "h3", "a"),
    *("p", "ul", "ol", "li", "dl", "div", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "blockquote", "pre"),
    *("code", "span", "q", "strong", "small", "sup", "figure", "figcaption"),
    *("svg", "desc", "g", "path", "line", "rect", "circle", "text", "tspan"),
}
EMPTY = {"meta"}


class Page(HTMLParser):
    """Every element with its attributes, and the text between them; fails where the elements do not nest."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source, self.elements, self.parts, self._open = source, [], [], []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        self.parts.append(" " if tag in {"p", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "text", "caption", "span"} else "")

    def handle_data(self, data):
        if "style" not in self._open:
            self.parts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.parts).split())

    @property
    def charts(self):
        return [ET.fromstring(chart) for chart in re.findall(r"<svg .*?</svg>", self.source, flags=re.DOTALL)]  # noqa: S314 - our own

    def attributes(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def assert_harmless(page):
    """No element but those of a report, no attribute that runs or loads anything, no link but within the page."""
    assert {tag for tag, _ in page.elements} <= ELEMENTS
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in {"src", "style", "srcset", "action", "xlink:href"}}
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.attributes("href")} <= set(ids)
    assert "url(" not in page.source
    assert "@import" not in page.source
    assert "http://" not in page.source.replace("http://attack", "")
    assert {"http-equiv": "Content-Security-Policy", "content": "default-src 'none'; style-src 'unsafe-inline'"} in [
        attributes for _, attributes in page.elements
    ]
