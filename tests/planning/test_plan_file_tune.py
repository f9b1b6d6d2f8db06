"""The tables [space] and [tune] of a plan file: kept when a plan is solved; only the score enters the hash of the plan."""

import pytest

from privselect.errors import ParameterError
from privselect.planning.plan_file import read_plan, write_plan

OPEN = """\
version = 2
epsilon = 2.0
delta = 1e-6

[search]
mechanism = "disjoint(gaussian(sigma=?), discrete_gaussian(sigma=8))"
count = "geometric(mean=3)"

[space]
rate = { log_uniform = [0.01, 1] }
"größe" = { integer = [-3, 3] }
kind = { choice = ["a \\"b\\"", 2, 0.5, true], weights = ["1/3", 1, 1, 1] }

[tune]
objective = "module.inner:Class.method"
data = "module:data"
score = { correct = "module:correct", sigma = 8, fraction = "1/5", ids = "name" }
fallback = { weights = [[0.0, 1.0], [2, 3]], bias = [] }
release_at = 2099-01-31T23:59:00+01:00
timeout = 5
constant_work = true
"""


def test_a_solved_plan_keeps_what_is_to_be_run(tmp_path):
    (tmp_path / "open.toml").write_text(OPEN)
    read = read_plan(tmp_path / "open.toml")
    assert read.is_open
    write_plan(read.plan(), tmp_path / "solved.toml", read.declared, read)
    solved = read_plan(tmp_path / "solved.toml")
    assert not solved.is_open
    assert (solved.space, solved.tune) == (read.space, read.tune)
    write_plan(solved.plan(), tmp_path / "again.toml", solved.declared, solved)
    assert (tmp_path / "again.toml").read_bytes() == (tmp_path / "solved.toml").read_bytes()
    assert solved.terms().declared.score.endswith("plus noise: discrete_gaussian(sigma=8, neighbours=add_remove)")


def test_the_users_own_words_for_the_score_stay(tmp_path):
    (tmp_path / "plan.toml").write_text(OPEN.replace("sigma=?", "sigma=4") + '[declared]\nscore = "as agreed"\n')
    assert read_plan(tmp_path / "plan.toml").terms().declared.score == "as agreed"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("module:data", "module", "`data` must be a name such as module:function, got 'module'"),
        ("module:data", "module:data()", "`data` must be a name such as module:function"),
        ("module:correct", "correct", "`correct` must be a name such as module:function"),
        ("2099-01-31T23:59:00+01:00", "2099", "`release_at` must be a time with its zone"),
        ("constant_work = true", "constant_work = 1", "`constant_work` must be a valid boolean, got 1"),
        ("timeout = 5", "timeout = nan", "`timeout` must be a finite number"),
        ("[space]", "[[space]]", "`space` must be a valid dictionary"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, old, new, said):
    assert old in OPEN
    (tmp_path / "plan.toml").write_text(OPEN.replace(old, new))
    with pytest.raises(ParameterError, match="`") as refusal:
        read_plan(tmp_path / "plan.toml")
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
