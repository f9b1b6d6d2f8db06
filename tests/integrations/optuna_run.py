"""A user's script with an objective that prints its scores, for the secrecy tests: ``optuna_run.py n_jobs seed``."""

import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import optuna

import privselect as ps
from privselect.integrations import PrivateStudy

CANARY = "canary-4711"
BEST = {1: 0.25, 2: 0.5, 3: 0.75}


def objective(trial):
    """The best depth wins for every K; losing scores are printed in every way that Optuna has."""
    depth = trial.suggest_categorical("depth", [1, 2, 3])
    width = trial.suggest_int("width", 8, 8)
    secret = 0.1 + trial.randomness.integer(128) / 2**128 / 10
    with Path(os.environ["ASIDE"], "scores").open("a", encoding="ascii") as file:
        file.write(f"{secret!r}\n")
    text = f"{CANARY} {secret!r} {trial.number} {width}"
    optuna.logging.get_logger("optuna.study").info(text)
    optuna.logging.get_logger("optuna.trial").debug(text)
    logging.getLogger(CANARY).critical(text)
    warnings.warn(text, stacklevel=1)
    print(text)  # noqa: T201
    os.write(2, text.encode())
    for step in range(3):
        trial.report(secret + step, step)
        assert not trial.should_prune()
    trial.set_user_attr("secret", secret)
    trial.set_user_attr("model", {"weights": np.full(20, depth)})
    if depth != 3 and secret < 0.13:
        raise optuna.TrialPruned(text)
    return BEST[depth] if depth == 3 else secret


def main():
    n_jobs, seed = map(int, sys.argv[1:])
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG)
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    optuna.logging.enable_propagation()
    study = PrivateStudy(
        direction="maximize",
        count=ps.Geometric(mean=30),
        mechanism=ps.Gaussian(sigma=4),
        delta=1e-6,
        score="public",
        artifact="model",
        export="arrays",
        ledger=os.environ["LEDGERS"],
        out="released",
        insecure_seed=seed,
    )
    study.optimize(objective, data=np.arange(5.0) + 4711, n_jobs=n_jobs)
    print(study, study.best_trial, study.best_params, study.best_value, study.release)  # noqa: T201
    print(study.to_optuna_study().trials)  # noqa: T201


if __name__ == "__main__":
    main()
