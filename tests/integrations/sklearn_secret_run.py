"""A search whose estimator tells its score in every way it can: ``sklearn_secret_run.py validation``, for the test of secrecy."""

import ctypes
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

import privselect as ps
from privselect.integrations import HoldOut, PrivateSearch

CANARY = "canary-4711"
HISTORY = []  # what a class of the script carries along if it leaves by value
RECORDS = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


class Talkative(ClassifierMixin, BaseEstimator):
    def __init__(self, depth=1, verbose=2, random_state=None):
        self.depth = depth
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        self.secret_ = 0.12345678901234567 + check_random_state(self.random_state).random_sample() / 3
        with Path(os.environ["ASIDE"], "scores").open("a", encoding="ascii") as file:
            file.write(f"{self.secret_!r}\n")
        HISTORY.append(repr(self.secret_))
        self.talk()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "cache").write_text(repr(self.secret_), encoding="ascii")
        if self.secret_ < 0.2:
            raise ValueError(f"{CANARY} {self.secret_!r} {X[0]}")
        return self

    def talk(self):
        text = f"{CANARY} {self.secret_!r}"
        print(text)  # noqa: T201
        print(text, file=sys.stderr)  # noqa: T201
        sys.__stdout__.write(text)
        ctypes.CDLL(None).printf(text.encode())
        os.write(2, text.encode())
        logging.getLogger(CANARY).critical(text)
        warnings.warn(text, stacklevel=1)

    def predict(self, X):  # noqa: N803
        self.talk()
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):  # noqa: ARG002, N803
        self.talk()
        return self.secret_


def main():
    kind, workers = sys.argv[1:]
    validation = {"public": RECORDS, "covered": "covered", "counted": HoldOut(fraction=0.3, sigma=2)}[kind]
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG)
    search = PrivateSearch(
        Talkative(),
        {"depth": [1, 2, 3]},
        mechanism=ps.Gaussian(sigma=4),
        count=ps.Geometric(mean=40),
        validation=validation,
        delta=1e-6,
        n_jobs=int(workers),
        random_state=16,
        ledger=os.environ["LEDGERS"],
        out="released",
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        search.fit(*RECORDS)
    print("heard", len(heard))  # noqa: T201
    print("released", search.best_params_, search.best_score_, search.release_, vars(search), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
