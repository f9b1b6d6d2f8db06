"""What the gallery says is what the tables have."""

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


def several(numbers):
    return "{}, {} and {}".format(*numbers)


def says(number, sentence):
    """In the part of the page on that figure."""
    part = PAGE.split(f"\n## Figure {number}:")[1].split("\n## ")[0]
    assert sentence in part


def test_every_figure_is_shown_with_its_numbers():
    for number in NUMBERS:
        says(number, f"](figures/figure_{number}.png)")
        says(number, "umbers](")
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) > 20
    assert all((DOCS / link).exists() for link in links)


def test_no_table_of_the_gallery_is_left_over():
    tables = {f"figure_{number}.csv" for number in NUMBERS if number != 5}  # whose table has its home in the package
    pictures = {f"figure_{number}.png" for number in NUMBERS}
    assert {file.name for file in FOLDER.iterdir()} - {"figure_5.csv"} == tables | pictures


def test_figure_1():
    ours, paper = ([up(1, ONE, bound, m) for m in (2, 10)] for bound in ("exact_upper", "paper"))
    says(1, f"With two scores it is {ours[0]} where the paper has {paper[0]}, with ten {ours[1]} against {paper[1]}")
    gaps = {m: value(1, ONE, "exact_upper", m) / value(1, ONE, "exact_lower", m) - 1.0 for m in (2, 10, 100, 1000)}
    says(1, f"up to a hundred scores the two ends meet, at a thousand they are {gaps[1000]:.1%} apart")
    assert max(gaps[2], gaps[10], gaps[100]) < 1e-4


def test_figure_2():
    paper, renyi, ours = (
        several(up(2, f"m = {mean}", bound, 1e-6) for mean in (30, 300, 3000)) for bound in ("paper", "renyi", "exact_upper")
    )
    says(2, f"the paper's bound is {paper}, the Rényi one {renyi}, and ours {ours}")
    assert value(2, "m = 300", "exact_upper", 1e-6) < value(2, "m = 30", "paper", 1e-6)
    paper, ratio, ours = (value(2, "m = 30", bound, 1e-6) for bound in ("paper", "ratio", "exact_upper"))
    assert (paper - ratio) / (paper - ours) > 0.5  # "most of the gain"


def test_figure_3():
    says(3, f"Both it ({up(3, ONE, 'closed_form', 30)} at a mean of 30) and Liu and Talwar's bound ({up(3, ONE, 'liu_talwar', 30)})")
    sigma, mean, delta = 4.0, 30.0, 1e-6
    printed = 3.0 * (0.5 / sigma**2 + math.sqrt(2.0 * math.log(mean / delta)) / sigma) + delta
    says(3, "changes it by 1e-6 only")
    assert abs(value(3, ONE, "closed_form", 30) - printed - 1e-6) < 1e-6  # which seven digits just show


def test_figure_4():
    alone, renyi = (up(4, "n = 20, m = 10", bound, 1e-6) for bound in ("renyi_alone", "renyi"))
    says(4, f"then it gives {alone}, and `thm:hs_bin` with n = 20 gives {up(4, 'n = 20, m = 10', 'paper', 1e-6)}")
    says(4, f"read off the exact profile it gives {renyi}, which no n reaches by the paper's bounds")
    says(4, f"not even the Poisson limit with {up(4, 'Poisson, m = 10', 'paper', 1e-6)}")
    few = {entry.mechanism: entry.value for entry in committed(4) if (entry.quantity, entry.at) == ("probability", 5.0)}
    chances = (few["binomial(n=100, p=0.1)"], few["poisson(mean=10)"])
    ours = up(4, "n = 100, m = 10", "exact_upper", 1e-6)
    says(4, "{} with n = 100, where K is at most 5 with a chance of {:.1%}, against {:.1%} for Poisson".format(ours, *chances))
    assert value(4, "n = 100, m = 10", "exact_upper", 1e-6) < value(4, "n = 100, m = 10", "renyi", 1e-6)


def test_figure_6():
    base, renyi, paper, ours = (up(6, "geometric", bound, 30) for bound in ("base", "renyi", "paper", "exact_upper"))
    says(6, f"which alone cost {base} at delta = 1e-6")
    says(6, f"A geometric K with mean 30: Rényi {renyi}, `thm:negbin` {paper}, ours {ours}.")
    bounds = ("paper", "renyi_alone", "renyi", "exact_upper")
    paper, alone, renyi, ours = (up(6, "Poisson", bound, 10) for bound in bounds)
    says(6, f"`cor:binomial_to_poisson` {paper}, `thm:rdp_poisson` {alone} if all is known from Rényi divergences")
    says(6, f"and {renyi} with the exact `delta_hat`, ours {ours}")
    assert renyi < paper < alone
    means = sorted({entry.at for entry in committed(6) if entry.panel == "Poisson"})
    below = [mean for mean in means if value(6, "Poisson", "paper", mean) < value(6, "Poisson", "renyi", mean)]
    assert below == [mean for mean in means if mean <= max(below)]
    says(6, f"for small means, drawn up to {max(below):g}, it is so in both")


def test_figure_7():
    base, renyi, paper, ours = (up(7, "delta = 1e-6", bound, 300) for bound in ("base", "renyi", "paper", "exact_upper"))
    says(7, f"which alone cost {base}.")
    fewer = up(7, "delta = 1e-6", "paper", 30)
    says(7, f"mean 300: Rényi {renyi}, `thm:negbin` {paper}, ours {ours}, less than the paper's {fewer} for a mean of 30")
    renyi, paper, ours = (value(7, ALLOWED, bound, 2.755) for bound in ("renyi", "paper", "exact_upper"))
    says(7, f"Rényi allows {int(renyi)} models in the mean and the paper {int(paper)}, {paper / renyi:.1f} times as many")
    says(7, f"Ours allows {int(ours)}, {ours / paper:.0f} times as many as the paper")
    budgets = {entry.at for entry in committed(7) if entry.panel == ALLOWED}
    quotients = [value(7, ALLOWED, "paper", budget) / value(7, ALLOWED, "renyi", budget) for budget in budgets]
    says(7, f"over the budgets drawn it is {min(quotients):.1f} to {max(quotients):.1f} times")


def test_figure_8():
    steps = {
        bound: several(f"{entry.value:.0f}" for entry in committed(8) if (entry.quantity, entry.bound, entry.at) == ("steps", bound, 30.0))
        for bound in ("adjust", "base")
    }
    says(8, f"{steps['adjust']} for a geometric K with mean 30")
    says(8, f"where one trial alone may take {steps['base']}")
    drawn = "one of the three, drawn at random"
    says(8, f"draws one of the three at {up(8, drawn, 'exact_upper', 30)}, where `cor:adjust` says {up(8, drawn, 'adjust', 30)}")
    own = {(entry.panel, entry.at): entry.value for entry in committed(8) if entry.bound == "paper"}
    most = max(
        entry.value / own[entry.panel, entry.at] for entry in committed(8) if entry.bound == "adjust" and entry.quantity == "epsilon"
    )
    says(8, f"by {most - 1.0:.1%} at most")


def test_figure_5_is_told_on_its_own_page():
    says(5, "](experiments/linear_regression.md)")
    assert "](../figures/figure_5.png)" in (DOCS / "experiments" / "linear_regression.md").read_text()
