"""Plan files with a final training: [search] and [train], solved, written and read back."""

from fractions import Fraction

import pytest

import privselect as ps
from privselect.errors import ParameterError, TextFormError
from privselect.planning.plan_file import PlanFile, plan_file_of, read_plan, write_plan
from privselect.planning.plan_result import Problem

OPEN = """\
version = 2
epsilon = 2.0
delta = 1e-5

[search]
mechanism = "gaussian(sigma=?)"
count = "geometric(mean=3)"

[train]
mechanism = "gaussian(sigma=?)"
transfer = "noise"
learning_rate = "rate"
split = "auto"

[space]
rate = { log_uniform = [0.01, 1] }
weight = { uniform = [0, 1] }
defaults = [{ rate = 0.1 }, { rate = 0.3, weight = 0.5 }]
"""


def write(tmp_path, text):
    (tmp_path / "plan.toml").write_text(text)
    return read_plan(tmp_path / "plan.toml")


def test_a_solved_plan_keeps_the_transfer_and_records_the_rule(tmp_path):
    read = write(tmp_path, OPEN)
    assert read.is_open
    solved = read.plan()
    write_plan(solved, tmp_path / "solved.toml", read.declared, read)
    again = read_plan(tmp_path / "solved.toml")
    assert not again.is_open
    assert (again.transfer, again.learning_rate) == ("noise", "rate")
    assert (again.train.final_noise, again.train.split) == (None, None)
    assert again.problem.model_dump() == {
        "mechanism": "gaussian(sigma=?)",
        "count": "geometric(mean=3)",
        "final": "gaussian(sigma=?)",
        "final_noise": None,
        "split": "auto",
    }
    assert again.space == read.space
    assert again.plan().cost == solved.cost
    assert again.plan().problem == solved.problem == Problem("gaussian(sigma=?)", "geometric(mean=3)", "gaussian(sigma=?)", None, "auto")
    write_plan(again.plan(), tmp_path / "again.toml", again.declared, again)
    assert (tmp_path / "again.toml").read_bytes() == (tmp_path / "solved.toml").read_bytes()
    assert plan_file_of(solved, read.declared, read) == again


def test_the_terms_hold_both_stages(tmp_path):
    terms = write(tmp_path, OPEN.replace("sigma=?", "sigma=9").replace('split = "auto"\n', "")).terms()
    assert (terms.mechanism, terms.count, terms.final) == ("gaussian(sigma=9)", "geometric(mean=3)", "gaussian(sigma=9)")
    assert terms.whole == ps.search_then_train(ps.Gaussian(sigma=9), ps.Geometric(mean=3), ps.Gaussian(sigma=9))
    visible = write(
        tmp_path, OPEN.replace("sigma=?", "sigma=9").replace('split = "auto"\n', "").replace('count = "geometric(mean=3)"', "visible = 4")
    )
    assert (visible.count, visible.visible, visible.terms().visible) == (None, 4, 4)
    assert terms.digest() != visible.terms().digest()


def test_a_sample_is_written_exactly(tmp_path):
    for given in ('"1/10"', '"0.1"', "0.1"):
        read = write(tmp_path, OPEN.replace("count =", f"subsample = {given}\ncount ="))
        assert read.subsample == Fraction(1, 10)
        assert read.search.subsample == "1/10"


def test_a_search_before_a_training_has_the_default_law(tmp_path):
    without = OPEN.replace('count = "geometric(mean=3)"\n', "")
    read = write(tmp_path, without)
    assert read.count == str(ps.default_count())
    assert "law of K: negative_binomial(eta=2, mean=20), the default" in read.plan().reasons
    alone = write(tmp_path, without[: without.index("[train]")] + without[without.index("[space]") :])
    assert alone.count is None
    assert (alone.final, alone.transfer, alone.learning_rate) == (None, "same", None)


def test_defaults_and_their_weight_are_told_from_hyperparameters(tmp_path):
    found = write(tmp_path, OPEN).candidates()
    assert found.distributions == {"rate": {"log_uniform": [0.01, 1]}, "weight": {"uniform": [0, 1]}}
    assert found.defaults == ({"rate": 0.1}, {"rate": 0.3, "weight": 0.5})
    assert found.weight is None
    for text in ('"1/2"', "0.5"):
        weighted = write(tmp_path, OPEN.replace("weight = { uniform = [0, 1] }", f"weight = {text}")).candidates()
        assert weighted.weight in {"1/2", 0.5}
        assert set(weighted.distributions) == {"rate"}
    named = PlanFile(version=2, epsilon=1.0, delta=0.1, search={"mechanism": "pure(epsilon=1)"}, space={"defaults": {"choice": [1, 2]}})
    assert named.candidates() == ({"defaults": {"choice": [1, 2]}}, None, None)
    assert PlanFile(version=2, epsilon=1.0, delta=0.1, search={"mechanism": "pure(epsilon=1)"}).candidates() == ({}, None, None)


SCORED = """\
version = 2
epsilon = 2.0
delta = 1e-5

[search]
mechanism = "disjoint(gaussian(sigma=?), discrete_gaussian(sigma=?, neighbours=add_remove))"
count = "geometric(mean=3)"

[tune]
objective = "module:objective"
data = "module:data"
score = { correct = "module:correct", fraction = "1/5", ids = "name" }
"""


def test_the_noise_of_a_count_may_be_solved(tmp_path):
    read = write(tmp_path, SCORED)
    assert read.score_sigma is None
    with pytest.raises(ParameterError, match="`sigma` of the score must be given"):
        read.terms()
    write_plan(read.plan(), tmp_path / "solved.toml", run=read)
    solved = read_plan(tmp_path / "solved.toml")
    assert solved.score_sigma == ps.parse(solved.mechanism).parts[1].sigma
    assert solved.terms().declared.score.endswith(f"discrete_gaussian(sigma={solved.score_sigma}, neighbours=add_remove)")
    stated = write(tmp_path, SCORED.replace('correct"', 'correct", sigma = 8'))
    assert stated.score_sigma == 8


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'count = "geometric(mean=3)"',
            'count = "geometric(mean=3)"\nvisible = 3',
            "either secret, with `count`, or visible, got geometric",
        ),
        ('count = "geometric(mean=3)"', "visible = 0", "`visible` must be greater than or equal to 1, got 0"),
        ('count = "geometric(mean=3)"', "subsample = 2", r"`subsample` must be a probability in \(0, 1\] such as 1/10, got 2"),
        ('count = "geometric(mean=3)"', 'count = "gaussian(sigma=3)"', "`count` must be a law of K such as"),
        ('transfer = "noise"', 'transfer = "same"', "`learning_rate` needs transfer = \"noise\", got transfer = 'same'"),
        ('transfer = "noise"', 'transfer = "warm"', '`transfer` must be "same", "noise", or the name of a function'),
        ('split = "auto"', 'split = "half"', "`split` must be \"auto\", got 'half'"),
        ('split = "auto"', "final_noise = 1.0", r"`final_noise` must be in \(1, inf\), got 1.0"),
        ('split = "auto"', "", 'both open: pass final_noise=1.07 or split="auto"'),
        (
            '[train]\nmechanism = "gaussian(sigma=?)"',
            '[train]\nmechanism = "gaussian(sigma=9)"',
            "`split` needs an open number in both stages",
        ),
        ('[train]\nmechanism = "gaussian(sigma=?)"', '[train]\nmechanism = "geometric(mean=9)"', "`final` must be a mechanism such as"),
        ('[train]\nmechanism = "gaussian(sigma=?)"', "[train]", "`train`: `mechanism` is missing"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, old, new, said):
    assert old in OPEN
    with pytest.raises((ParameterError, TextFormError), match=said) as refusal:
        write(tmp_path, OPEN.replace(old, new)).plan()
    assert "\n" not in str(refusal.value)
