"""A real Chromium on the real page. It can reach no host other than this machine."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect, sync_playwright

import privselect

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # blocks all other hosts
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", HERE]
QUICK = {"mechanism": "gaussian(sigma=4)", "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-6"}

HEIGHTS = """(figure, shares) => {
    const [canvas, frame] = [figure.querySelector("canvas"), figure.querySelector(".u-over")];
    const unit = canvas.width / canvas.clientWidth;
    const [left, top, width, height] = ["offsetLeft", "offsetTop", "offsetWidth", "offsetHeight"].map((side) => unit * frame[side]);
    return shares.map((share) => {
        const { data } = canvas.getContext("2d").getImageData(Math.round(left + share * width), top, 1, height);
        const rows = [...Array(Math.floor(height)).keys()];
        const black = rows.filter((row) => data[4 * row + 3] > 200 && data[4 * row] + data[4 * row + 1] + data[4 * row + 2] < 90);
        return black.length ? 1 - black.reduce((sum, row) => sum + row + 0.5, 0) / black.length / height : null;
    });
}"""

expect.set_options(timeout=30_000)


class Planner:
    """The page as a user sees it."""

    def __init__(self, page, url):
        self.page, self.url = page, url
        self.console, self.failures, self.requested = [], [], []
        page.on("console", lambda message: self.console.append(message.text) if message.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.failures.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))

    def open(self, question=None, *, fragment=None):
        """Open the page with a question in its URL, or with its default question."""
        if question is not None:
            fragment = "#" + "&".join(f"{field}={quote(text or '')}" for field, text in question.items())
        self.page.goto(self.url + (fragment or ""))
        return self

    def at(self, name):
        return self.page.locator(f"#{name}")

    def is_answered(self):
        expect(self.at("answer")).to_have_attribute("data-state", "current")
        return self

    def is_complete(self):
        """Wait until the answer, the charts and the table belong to the question in the form."""
        self.is_answered()
        for name in ("mean-chart", "profile-chart", "survival-chart", "compare"):
            expect(self.at(name)).to_have_attribute("data-state", "current")
        return self

    def is_stale(self):
        expect(self.at("answer")).to_have_attribute("data-state", "stale")
        return self

    @property
    def sentence(self):
        return self.at("sentence").inner_text()

    @property
    def state(self):
        """The values of all form fields."""
        return (
            self.page.locator("form")
            .locator("select, input[type=text], textarea")
            .evaluate_all("all => all.map(one => [one.id, one.value])")
        )

    def picture(self, name):
        """Return the pixels of a chart."""
        return self.page.locator(f"#{name}-chart canvas").evaluate("canvas => canvas.toDataURL()")

    def heights(self, name, *shares):
        """Return the height of a chart's black line, from 0 to 1, at shares of its width; None if there is no line."""
        return self.at(f"{name}-chart").evaluate(HEIGHTS, shares)

    def replies(self, kind, change):
        """Change the server's answers to one kind of request from now on."""

        def changed(route):
            response = route.fetch()
            route.fulfill(response=response, json=change(response.json()))

        self.page.route(f"**/api/{kind}", changed)
        return self

    def message_of(self, name):
        """Return the message of a field, found as a screen reader finds it."""
        described = self.at(name).get_attribute("aria-describedby").split()
        return self.at(next(place for place in described if place.endswith("-message")))

    def copied(self, button):
        self.at(button).click()
        expect(self.at(button)).to_have_text("Copied")
        return self.page.evaluate("navigator.clipboard.readText()")

    def downloaded(self, button, folder):
        with self.page.expect_download() as download:
            self.at(button).click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path


@pytest.fixture(scope="module")
def chromium():
    """Start Chromium. Its absence is an error, because the page would stay untested."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def planners(chromium):
    """Return a function that opens pages: ``planners(url, **context_options)``."""
    made = []

    def make(url, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url.rstrip("/"))
        planner = Planner(context.new_page(), url)
        made.append((context, planner))
        return planner

    yield make
    for context, planner in made:
        context.close()
        assert planner.failures == []
        assert [address for address in planner.requested if not address.startswith((planner.url, "blob:"))] == []


@pytest.fixture
def planner(planners, server):
    return planners(server.url)


@pytest.fixture
def quick():
    """Return a question with a fast answer."""
    return dict(QUICK)


@pytest.fixture
def run():
    """Return a function that runs Python or a `privselect` command."""

    def run(*words):
        if words[0] == "privselect":
            words = ("-c", "from privselect.cli import main; main()", *words[1:])
        environment = {**os.environ, "PYTHONPATH": str(Path(privselect.__file__).parent.parent)}
        done = subprocess.run([sys.executable, *map(str, words)], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
