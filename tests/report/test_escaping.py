"""Text stays text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from page_parser import Page

from privselect.report.page import spell_out_hidden, template_environment

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
    "{{ 7 * 7 }}{% raw %}",
]


def render(template, **values):
    return template_environment().from_string(template).render(values)


@given(st.text() | st.sampled_from(ATTACKS))
def test_any_text_is_shown_and_never_obeyed(text):
    page = Page(render('<p title="{{ text }}">{{ text }}</p>', text=text))
    ((name, attributes),) = page.elements
    assert (name, set(attributes)) == ("p", {"title"})
    shown = "".join(page.parts).removesuffix(" ")
    assert shown == attributes["title"]
    assert not [character for character in shown if unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"]
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text


@given(st.text() | st.sampled_from(ATTACKS))
def test_text_that_passes_through_macros_lists_and_joins_is_escaped_once(text):
    macro = "{% macro quoted(text) %}<q>{{ text }}</q>{% endmacro %}"
    page = Page(render(macro + '{{ quoted(text) }}<p>{{ [text, "and"] | join(", ") }}</p><p>{{ text ~ "!" }}</p>', text=text))
    assert [name for name, _ in page.elements] == ["q", "p", "p"]
    if text.isprintable():
        assert "".join(page.parts) == f"{text}{text}, and {text}! "


def test_what_hides_or_turns_text_is_spelled_out():
    assert spell_out_hidden("a\u202eb\u0000c\nd\u2028e\ud800f\u200bg") == r"a\u202eb\u0000c\u000ad\u2028e\ud800f\u200bg"


def test_a_missing_value_is_an_error():
    with pytest.raises(UndefinedError):
        render("{{ nothing }}")
