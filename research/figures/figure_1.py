"""Figure 1: report noisy max over the number of scores."""

from __future__ import annotations

from privselect.mechanisms import Gaussian
from privselect.noisy_max import NoisyMax
from privselect.noisy_max.accounting.bounds import BOUNDS
from research.figures.picture import Panel, Picture
from research.figures.selection_curves import DELTA, curve

SCORES = (2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
NOISE = Gaussian(sigma=4.0)


def picture() -> Picture:
    """Compute ``thm:max_sel``, its closed form ``lem:convert2_eps_delta``, the Renyi bound ``lem:zhu_lemma5``, and the exact bounds."""
    choices = [NoisyMax(NOISE, m=m) for m in SCORES]
    answers = [choice.epsilon_at(DELTA) for choice in choices]
    curves = [
        curve("exact_lower", ((choice, choice.m, answer.lower) for choice, answer in zip(choices, answers, strict=True))),
        curve("exact_upper", ((choice, choice.m, answer.upper) for choice, answer in zip(choices, answers, strict=True))),
        *(
            curve(name, ((choice, choice.m, BOUNDS[name](choice, DELTA)) for choice in choices))
            for name in ("paper", "closed_form", "renyi")
        ),
    ]
    panel = Panel("epsilon at delta = 1e-6", "m", "epsilon", tuple(curves))
    return Picture(1, "Report noisy max with Gaussian noise 4 on scores of sensitivity 1", (panel,))
