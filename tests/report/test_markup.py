"""Text stays text."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from page_parser import Page

from privselect.report.html import escaped, joined, tag

ATTACKS = [
    "<script>alert(1)</script>",
    "</p><script src='http://attack'></script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- --> ]]> <![CDATA[ <svg onload=alert(1)>",
    "&lt;b&gt; &#60;script&#62;",
    "javascript:alert(1)",
    "<a href='http://attack'>here</a>",
    "</style><style>*{display:none}",
]


@given(st.text() | st.sampled_from(ATTACKS))
def test_any_text_is_shown_and_never_obeyed(text):
    page = Page(tag("p", text, title=text))
    ((name, attributes),) = page.elements
    assert (name, set(attributes)) == ("p", {"title"})
    shown = "".join(page.parts).removesuffix(" ")
    assert shown == attributes["title"]
    assert not [character for character in shown if unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"]
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text


def test_what_hides_or_turns_text_is_spelled_out():
    assert escaped("a\u202eb\u0000c\nd\u2028e\ud800f\u200bg") == r"a\u202eb\u0000c\u000ad\u2028e\ud800f\u200bg"


def test_markup_is_kept_and_what_is_none_left_out():
    assert tag("p", tag("b", "<"), " & ", class_="x", id=None, aria_label='"') == '<p class="x" aria-label="&quot;"><b>&lt;</b> &amp; </p>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert joined(["<", tag("i")]) == "&lt;<i></i>"
