"""Render a report as one HTML file without scripts that loads nothing."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import format_digits_down
from privselect.errors import MissingExtraError
from privselect.report.charts import pixels
from privselect.report.number_format import factor_up, format_upper, one_in
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from jinja2 import Environment

_INVISIBLE = {"Zl", "Zp"}  # and all of category C: controls, marks that hide or reorder text, halves of surrogate pairs


def render_page(values: dict[str, Any]) -> str:
    """Render the page from the values of :mod:`privselect.report.template_values`."""
    environment = template_environment()
    from markupsafe import Markup  # a part of jinja2

    style = Markup(_read("style.css"))  # noqa: S704 - our own file
    return environment.get_template("template.html.j2").render(values, style=style).strip() + "\n"


@cache
def template_environment() -> Environment:
    """Return the Jinja2 environment, which escapes every value and spells out hidden characters."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError:
        raise MissingExtraError("a report needs jinja2; install it with: pip install 'privselect[cli]'") from None
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=spell_out_hidden,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "exact": write_value,
        "factor": lambda epsilon: factor_up(float(epsilon)),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "lower_bound": format_digits_down,
        "one_in": one_in,
        "pixels": pixels,
        "thousands": "{:,}".format,
        "upper": format_upper,
    }
    return environment


def spell_out_hidden(value: object) -> object:
    r"""Replace the characters of a text that a reader cannot see, or that reorder the text around them, by codes such as ``\u202e``.

    Markup, which Jinja2 made from such texts, stays unchanged.
    """
    return "".join(map(_visible, value)) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    return f"\\u{ord(character):04x}" if category[0] == "C" or category in _INVISIBLE else character


def _read(name: str) -> str:
    return files("privselect.report").joinpath(name).read_text(encoding="utf-8")
