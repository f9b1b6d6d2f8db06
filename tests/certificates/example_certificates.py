"""Certificates for the tests, and the ways to spoil them."""

import copy
import json
from functools import cache

import privselect as ps
from privselect.certificates.canonical import digest
from privselect.certificates.statement import Costs, derived_fields

DECLARED = ps.Declared(
    unit="one person",
    trust_model="central: the curator sees the data",
    records_public=True,
    score="accuracy on public data",
    not_covered=("a look at the histogram of labels",),
)
PLANS = {
    "geometric": ("gaussian(sigma=4)", "geometric(mean=30)"),
    "negative binomial": ("gaussian(sigma=2)", "negative_binomial(eta=-0.5, mean=30)"),
    "poisson": ("gaussian(sigma=4)", "poisson(mean=10)"),
    "one trial": ("gaussian(sigma=4)", None),
    "replace one": ("gaussian(sigma=3, neighbours=replace_one)", "geometric(mean=10)"),
    "training": ("dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)", None),
    "sampled": ("sampled_gaussian(noise_multiplier=1.1, batch_size=256, records=60000)", None),
    "points": ("points((0.1, 1e-3), (1, 1e-9))", None),
    "no lower end": ("renyi((2, 0.1), (10, 0.6))", "geometric(mean=3)"),
    "mixture": ("mixture(0.5*gaussian(sigma=4), 0.5*gaussian(sigma=8))", None),
    "leak": ("gdp(mu=0.3, delta=1e-9)", "geometric(mean=3)"),
    "composed": ("composed(gaussian(sigma=4), gaussian(sigma=5), times=2)", None),
    "everything leaks at first": ("gaussian(sigma=0.1)", "geometric(mean=30)"),
    "two stages": ("gaussian(sigma=4)", "geometric(mean=30)", {"final": "gaussian(sigma=5)"}),
    "visible, then train": ("gaussian(sigma=8)", None, {"visible": 6, "final": "gaussian(sigma=5)"}),
    "visible": ("gaussian(sigma=8)", None, {"visible": 6}),
}

SLOW = {
    "tuned training": ("dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=14063)", "geometric(mean=30)"),
    "bounded": ("gaussian(sigma=4)", "fixed(k=2)"),
    "capped": ("laplace(scale=1)", "geometric(mean=300, cap=200)"),
    "nested": ("selection(gaussian(sigma=4), geometric(mean=3))", "poisson(mean=3)"),
    "hold-out, then train": (
        "disjoint(gaussian(sigma=4), discrete_gaussian(sigma=6, neighbours=add_remove))",
        "poisson(mean=5)",
        {"final": "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)"},
    ),
    "sample, then train": ("gaussian(sigma=2)", "geometric(mean=10)", {"subsample": "1/10", "final": "gaussian(sigma=5)"}),
    "visible sample": ("gaussian(sigma=2)", None, {"visible": 4, "subsample": 0.1}),
    "without K = 1": ("gaussian(sigma=4)", "finite({0: 1, 5: 9})"),
}


@cache
def issued(name="geometric", delta=1e-6):
    """A certificate with everything declared, made once."""
    mechanism, count, *more = {**PLANS, **SLOW}[name]
    return ps.certify(mechanism, count, delta=delta, declared=DECLARED, **dict(*more))


def fields(certificate):
    """As JSON has them, free to be changed."""
    return copy.deepcopy(certificate.as_dict())


def rehashed(changed):
    """With the hashes made anew, as anyone can."""
    changed["plan_hash"] = digest(changed["plan"])
    changed["hash"] = digest({name: value for name, value in changed.items() if name not in {"hash", "signature"}})
    return changed


def remade(changed):
    """With everything made anew that follows from other fields: the most that a forger without a key can do."""
    found = ps.Certificate.from_json(json.dumps(changed))
    following = derived_fields(found.plan, Costs.of(found), found.run, found.accuracy.requested)
    found = found.model_copy(update=following)
    return found.model_copy(update={"hash": found.digest()}).as_dict()
