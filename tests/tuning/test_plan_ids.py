"""A plan's hash, which finds its ledger and splits off its hold-out, does not depend on where privselect keeps its classes."""

import ast
import functools
from pathlib import Path

import numpy as np
import pytest

import privselect
from privselect.certificates.canonical import canonical
from privselect.tuning import demo
from privselect.tuning.plan_ids import name_in_plan, plan_id

ROOT = Path(privselect.__file__).parent
# Ids that have been used: renaming one orphans ledgers and moves records between training and hold-out.
IDS = {
    "AdaSSPRegressor",
    "OPSPTRRegressor",
    "OPSRegressor",
    "OutputPerturbationRegressor",
    "PrivateSoftmax",
    "SSPRegressor",
    "audit_two_stage_worst_case",
    "audit_worst_case",
    "demo_correct",
    "demo_trial",
    "mechanism_with_score",
    "opacus_trial",
    "optuna_objective",
    "optuna_visible_objective",
    "sklearn_at_least_declared",
    "sklearn_correct",
    "sklearn_declared_mechanism",
    "sklearn_more_than_fit",
    "sklearn_pickle",
    "sklearn_trial",
    "sklearn_with_count_noise",
}


def own_function():
    """An objective of a user."""


class Subclass(demo.DigitsTrial):
    pass


def test_no_id_was_renamed_and_none_stands_twice():
    found = [
        node.args[0].value
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "plan_id"
    ]
    assert sorted(found) == sorted(IDS)


def test_what_privselect_runs_is_known_by_its_id():
    assert name_in_plan(demo.correct) == "privselect:demo_correct"
    assert name_in_plan(demo.DigitsTrial) == "privselect:demo_trial"
    assert name_in_plan(demo.DigitsTrial()) == "privselect:demo_trial"


def test_what_users_run_is_known_by_its_place():
    assert name_in_plan(own_function) == f"{__name__}:own_function"
    assert name_in_plan(np.add).endswith("add") or name_in_plan(np.add).endswith("ufunc")
    assert name_in_plan(dict) == "builtins:dict"


@pytest.mark.parametrize("thing", [Subclass, Subclass()], ids=["class", "object"])
def test_a_subclass_runs_other_code_so_it_has_another_name(thing):
    assert name_in_plan(thing) == f"{__name__}:Subclass"


def test_a_function_keeps_its_id_and_a_caller_of_it_has_none():
    @plan_id("inner")
    def inner():
        pass

    def outer():
        return inner()

    assert name_in_plan(inner) == "privselect:inner"
    assert name_in_plan(outer) != "privselect:inner"
    assert name_in_plan(functools.partial(inner)) == "functools:partial"


def test_the_demonstration_is_hashed_without_a_module_path_of_privselect(monkeypatch):
    trial = demo.DigitsTrial()
    before = canonical({"objective": name_in_plan(trial), "correct": name_in_plan(demo.correct)})
    monkeypatch.setattr(demo.DigitsTrial, "__module__", "privselect.elsewhere")
    assert canonical({"objective": name_in_plan(trial), "correct": name_in_plan(demo.correct)}) == before
