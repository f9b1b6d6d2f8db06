"""The page in a real browser: on a screen, on a telephone, in the dark and on paper. Run with `-m browser`."""

import os
import unicodedata
from pathlib import Path

import pytest
from report_certificates import certified, searched, searched_visibly, selected

from privselect.certificates.model import RunMetadata
from privselect.report import write_report

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
AXE = Path(os.environ.get("AXE", "build/npm/node_modules/axe-core/axe.min.js"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NAMES = ("selected", "searched", "visible", "draft", "refused")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    draft = certified(declared=None, run=RunMetadata(randomness="the seed 7", insecure=True, runs=3, notes=("long" * 200,)))
    texts = {
        "selected": selected().to_json(),
        "searched": searched(RunMetadata(mechanism_claimed=True)).to_json(),
        "visible": searched_visibly().to_json(),
        "draft": draft.to_json(),
        "refused": draft.to_json().replace('"draft": true', '"draft": false'),
    }
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
        write_report(folder / f"{name}.json")
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright  # here, so that only these tests fail where it is missing

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def show(browser, pages):
    """Open a report in a window, and record its requests and console messages."""
    contexts = []

    def shown(name, width=1000, scheme="light"):
        # Scripts are let in past the policy of the page, for the checker; the page itself has none.
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
        contexts.append(context)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield shown
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_loaded_and_nothing_complained_of(show, pages, name):
    page = show(name)
    page.wait_for_load_state("networkidle")
    assert page.requests == [(pages / f"{name}.html").as_uri()]
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_accessible(show, name, width, scheme):
    page = show(name, width, scheme)
    page.add_script_tag(content=AXE.read_text())
    found = page.evaluate("axe.run()")
    assert found["passes"]
    wrong = [(each["id"], each["impact"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]
    assert wrong == []


@pytest.mark.parametrize("width", [320, 390, 768])
@pytest.mark.parametrize("name", NAMES)
def test_a_narrow_page_does_not_scroll_sideways(show, name, width):
    page = show(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML)"
    assert page.evaluate(beyond) == []


def test_dark_is_dark_and_paper_is_white(show):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = show("selected", scheme="dark")
    assert page.evaluate(ground) == "rgb(23, 24, 27)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


@pytest.mark.parametrize("size", ["A4", "Letter"])
def test_it_prints(show, tmp_path, size):
    from pypdf import PdfReader

    page = show("selected")
    page.pdf(path=tmp_path / "report.pdf", format=size)
    sheets = [sheet.extract_text() for sheet in PdfReader(tmp_path / "report.pdf").pages]
    assert len(sheets) > 1
    # Some fonts have one letter for fi, which is read back as such.
    plain = unicodedata.normalize("NFKC", "".join("".join(sheets).split()))
    for text in ("The claim holds", "Assumptions", selected().statement):
        assert "".join(text.split()) in plain
