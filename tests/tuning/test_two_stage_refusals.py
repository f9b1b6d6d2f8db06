"""Bad input for two stages: one sentence, nothing spent, nothing half-written."""

import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, objective

import privselect as ps
from privselect.errors import ParameterError, PrivselectError

OPEN = "dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=5)"
REPLACE = "gaussian(sigma=4, neighbours=replace_one)"
BAD = {
    "both open": ({"mechanism": OPEN, "final": OPEN, "epsilon": 1.0}, "search and final training are both open: pass final_noise=1.07"),
    "a rule too many": ({"mechanism": OPEN, "epsilon": 1.0, "split": "auto"}, "`split` needs an open number in both stages"),
    "open without a budget": ({"mechanism": OPEN}, "`epsilon` is required to solve for a number that is left open as ?, got none"),
    "final above the budget": ({"mechanism": OPEN, "epsilon": 0.1}, "`final` must cost less than the budget, epsilon 0.1"),
    "relations": ({"final": REPLACE}, "must be stated for the same neighbouring relation"),
    "final of no kind": ({"final": 3}, "`final` must be a mechanism such as gaussian(sigma=4), got 3"),
    "weight": ({"defaults": [{"clip": 0.5}], "weight": 2}, "`weight` of the defaults must be a probability in [0, 1]"),
    "default": ({"defaults": [{"clip": 0.7}]}, "`clip` of default 1 must be one of"),
    "transfer without final": ({"final": None, "transfer": "noise"}, "`transfer` is the rule of a final training and needs `final`"),
    "split without final": (
        {"final": None, "final_noise": 1.07},
        "`final_noise` divides the budget between two stages, got no final training: pass `final` too",
    ),
    "transfer": ({"transfer": "halve"}, "`transfer` must be 'same', 'noise' or a function of the candidate, got 'halve'"),
    "subsample": ({"subsample": 0}, "`subsample` must be a probability in (0, 1] such as 1/10, got 0"),
    "subsample of nothing": ({"subsample": "1/2", "data": None}, "`data` is required for a subsampled search, got none"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_and_nothing_is_spent(tuned, tmp_path, given, said):
    with pytest.raises(PrivselectError) as caught:
        tuned(**given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_cost_above_the_budget_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(ParameterError, match="`epsilon` must be at least"):
        ps.tune(
            objective,
            SPACE,
            data=DATA,
            mechanism=SEARCH,
            final=FINAL,
            count="geometric(mean=5)",
            score="public",
            delta=1e-6,
            epsilon=0.8,
            executor="serial",
            ledger=tmp_path,
        )
    assert not list(tmp_path.iterdir())
