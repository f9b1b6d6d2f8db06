"""The numbers on the page of figures agree with the tables."""

import math
import re

from figure_tables import FOLDER, committed, value

from privselect._util.rounding import format_up
from research.figures.figures import NUMBERS

DOCS = FOLDER.parent
PAGE = (DOCS / "figures.md").read_text()
ONE = "epsilon at delta = 1e-6"
ALLOWED = "models allowed, delta = 1e-6"


def up(number, panel, bound, at):
    return format_up(value(number, panel, bound, at), 3)


def says(number, sentence):
    """Check that the section of this figure contains the sentence."""
    part = PAGE.split(f"\n## Figure {number}:")[1].split("\n## ")[0]
    assert sentence in part


def has_row(number, *cells):
    """Check that a table in the section of this figure has this row."""
    says(number, "\n| " + " | ".join(map(str, cells)) + " |\n")


def test_every_figure_is_shown_with_its_numbers():
    for number in NUMBERS:
        says(number, f"](figures/figure_{number}.png)")
        says(number, "umbers](")
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) > 20
    assert all((DOCS / link).exists() for link in links)


def test_every_file_in_the_folder_belongs_to_a_figure():
    tables = {f"figure_{number}.csv" for number in NUMBERS if number != 5}  # the table of figure 5 is in research/figures/results
    pictures = {f"figure_{number}.png" for number in NUMBERS}
    assert {file.name for file in FOLDER.iterdir()} - {"figure_5.csv"} == tables | pictures


def test_figure_1():
    has_row(1, "scores", "exact", "paper")
    for scores in (2, 10):
        has_row(1, scores, up(1, ONE, "exact_upper", scores), up(1, ONE, "paper", scores))
    gaps = {m: value(1, ONE, "exact_upper", m) / value(1, ONE, "exact_lower", m) - 1.0 for m in (2, 10, 100, 1000)}
    says(1, f"Up to 100 scores the upper and lower bound agree; at 1000 scores they are {gaps[1000]:.1%} apart")
    assert max(gaps[2], gaps[10], gaps[100]) < 1e-4


def test_figure_2():
    has_row(2, "mean of K", "paper", "Rényi", "exact")
    for mean in (30, 300, 3000):
        has_row(2, mean, *(up(2, f"m = {mean}", bound, 1e-6) for bound in ("paper", "renyi", "exact_upper")))
    says(2, "The exact epsilon of 300 trials is below the paper's epsilon of 30 trials")
    assert value(2, "m = 300", "exact_upper", 1e-6) < value(2, "m = 30", "paper", 1e-6)
    paper, ratio, exact = (value(2, "m = 30", bound, 1e-6) for bound in ("paper", "ratio", "exact_upper"))
    says(2, "**Ratio** accounts for more than half of the gain")
    assert (paper - ratio) / (paper - exact) > 0.5


def test_figure_3():
    closed, liu_talwar = (up(3, ONE, bound, 30) for bound in ("closed_form", "liu_talwar"))
    says(3, f"At a mean of 30, `lem:GDP` gives {closed} and Liu and Talwar's bound gives {liu_talwar}")
    sigma, mean, delta = 4.0, 30.0, 1e-6
    printed = 3.0 * (0.5 / sigma**2 + math.sqrt(2.0 * math.log(mean / delta)) / sigma) + delta
    says(3, "changes epsilon by only 1e-6")
    assert abs(value(3, ONE, "closed_form", 30) - printed - 1e-6) < 1e-6  # just visible in seven digits


def test_figure_4():
    alone, renyi = (up(4, "n = 20, m = 10", bound, 1e-6) for bound in ("renyi_alone", "renyi"))
    has_row(4, "`thm:rdp_poisson`, `delta_hat` from the Rényi curve", alone)
    has_row(4, "`thm:hs_bin`, n = 20", up(4, "n = 20, m = 10", "paper", 1e-6))
    has_row(4, "`thm:rdp_poisson`, `delta_hat` from the exact profile", renyi)
    has_row(4, "`cor:binomial_to_poisson`", up(4, "Poisson, m = 10", "paper", 1e-6))
    has_row(4, "exact, n = 100", up(4, "n = 100, m = 10", "exact_upper", 1e-6))
    says(4, "the paper's bounds are above it for every n, and in the Poisson limit")
    limit = value(4, "n = 20, m = 10", "renyi", 1e-6)
    panels = {entry.panel for entry in committed(4) if entry.bound == "paper"}
    assert {"n = 20, m = 10", "Poisson, m = 10"} <= panels
    assert all(value(4, panel, "paper", 1e-6) > limit for panel in panels)
    small = {entry.mechanism: entry.value for entry in committed(4) if (entry.quantity, entry.at) == ("probability", 5.0)}
    probabilities = (small["binomial(n=100, p=0.1)"], small["poisson(mean=10)"])
    says(4, "With n = 100, K is at most 5 with probability {:.1%}, against {:.1%} for Poisson".format(*probabilities))
    assert value(4, "n = 100, m = 10", "exact_upper", 1e-6) < value(4, "n = 100, m = 10", "renyi", 1e-6)


def test_figure_6():
    says(6, f"Without selection, epsilon is {up(6, 'geometric', 'base', 30)} at delta = 1e-6")
    geometric = {bound: up(6, "geometric", bound, 30) for bound in ("renyi", "paper", "exact_upper")}
    poisson = {bound: up(6, "Poisson", bound, 10) for bound in ("paper", "renyi_alone", "renyi", "exact_upper")}
    has_row(6, "bound", "geometric K, mean 30", "Poisson K, mean 10")
    has_row(6, "paper (`thm:negbin`, `cor:binomial_to_poisson`)", geometric["paper"], poisson["paper"])
    has_row(6, "Rényi, everything from Rényi divergences", geometric["renyi"], poisson["renyi_alone"])
    has_row(6, "Rényi, with the exact `delta_hat`", "-", poisson["renyi"])
    has_row(6, "exact", geometric["exact_upper"], poisson["exact_upper"])
    assert poisson["renyi"] < poisson["paper"] < poisson["renyi_alone"]
    means = sorted({entry.at for entry in committed(6) if entry.panel == "Poisson"})
    below = [mean for mean in means if value(6, "Poisson", "paper", mean) < value(6, "Poisson", "renyi", mean)]
    assert below == [mean for mean in means if mean <= max(below)]
    says(6, f"For small means, up to {max(below):g} in the figure, it is below both variants")


def test_figure_7():
    bounds = {"Rényi": "renyi", "paper (`thm:negbin`)": "paper", "exact": "exact_upper"}
    says(7, f"Without selection, epsilon is {up(7, 'delta = 1e-6', 'base', 300)}.")
    says(7, "For geometric K with mean 300, and the mean number of models that the budget (2.755, 1e-6) allows")
    has_row(7, "bound", "epsilon", "models allowed")
    for label, bound in bounds.items():
        has_row(7, label, up(7, "delta = 1e-6", bound, 300), int(value(7, ALLOWED, bound, 2.755)))
    fewer = up(7, "delta = 1e-6", "paper", 30)
    says(7, f"The exact epsilon at mean 300 is below the paper's epsilon at mean 30, which is {fewer}")
    assert value(7, "delta = 1e-6", "exact_upper", 300) < value(7, "delta = 1e-6", "paper", 30)
    renyi, paper, exact = (value(7, ALLOWED, bound, 2.755) for bound in bounds.values())
    says(7, f"The paper's bound allows {paper / renyi:.1f} times as many models as Rényi")
    says(7, f"Exact accounting allows {exact / paper:.0f} times as many models as the paper's bound")
    budgets = {entry.at for entry in committed(7) if entry.panel == ALLOWED}
    quotients = [value(7, ALLOWED, "paper", budget) / value(7, ALLOWED, "renyi", budget) for budget in budgets]
    says(7, f"over the budgets in the figure it is {min(quotients):.1f} to {max(quotients):.1f} times")


def test_figure_8():
    steps = {
        bound: [f"{entry.value:.0f}" for entry in committed(8) if (entry.quantity, entry.bound, entry.at) == ("steps", bound, 30.0)]
        for bound in ("adjust", "base")
    }
    says(8, "for geometric K with mean 30")
    has_row(8, "noise", "steps by `cor:adjust`", "steps in the paper", "steps of a single trial without selection")
    published = ("about 4000", "about 10000", "about 18000")
    for row in zip((2, 3, 4), steps["adjust"], published, steps["base"], strict=True):
        has_row(8, *row)
    drawn = "one of the three, drawn at random"
    exact, adjust = (up(8, drawn, bound, 30) for bound in ("exact_upper", "adjust"))
    says(8, f"For a trial that draws one of the three at random, exact accounting gives {exact}, and `cor:adjust` gives {adjust}")
    own = {(entry.panel, entry.at): entry.value for entry in committed(8) if entry.bound == "paper"}
    most = max(
        entry.value / own[entry.panel, entry.at] for entry in committed(8) if entry.bound == "adjust" and entry.quantity == "epsilon"
    )
    says(8, f"by {most - 1.0:.1%} at most")


def test_figure_5_has_its_own_page():
    says(5, "](experiments/linear_regression.md)")
    assert "](../figures/figure_5.png)" in (DOCS / "experiments" / "linear_regression.md").read_text()
