"""The questions of the golden record: every family of mechanisms, laws of K and bounds, as texts that no renaming touches."""

from collections.abc import Iterator
from itertools import product

MECHANISMS = (
    "gaussian(sigma=4)",
    "gaussian(sigma=0.5)",
    "gaussian(sigma=4, neighbours=replace_one)",
    "laplace(scale=4)",
    "pure(epsilon=0.7)",
    "approximate(epsilon=0.4, delta=1e-09)",
    "points((0.1, 0.001), (1, 1e-09))",
    "curve((0, 0.1, 0.1), (0.5, 0.01, 0.02), (1, 1e-09, 2e-09))",
    "renyi((2, 0.1), (10, 0.6))",
    "discrete_gaussian(sigma=2)",
    "discrete_laplace(scale=2)",
    "sampled_gaussian(noise_multiplier=1.1, batch_size=256, records=60000)",
    "gdp(mu=1)",
    "gdp(mu=0.3, delta=1e-09)",
    "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)",
    "dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=2000)",
    "mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8))",
    "composed(gaussian(sigma=4), laplace(scale=5))",
    "composed(laplace(scale=20), times=12)",
    "disjoint(gaussian(sigma=4), discrete_gaussian(sigma=5))",
    "ops(leverage=0.01, signal=0.02)",
    "ptr(gaussian(sigma=4), pure(epsilon=0.5), failure=1e-08)",
    "ptr(gaussian(sigma=4), gdp(mu=0.3, delta=1e-09), failure=1e-08, calibrated=True)",
)
NOISY_MAX = (
    "noisy_max(gaussian(sigma=4), m=2)",
    "noisy_max(gaussian(sigma=4), m=10)",
    "noisy_max(gaussian(sigma=4), m=30, monotone=True)",
    "noisy_max(gaussian(sigma=20), m=10, rounds=12)",
    "noisy_max(gaussian(sigma=4), m=10, changes=2)",
    "noisy_max(laplace(scale=4), m=10)",
    "noisy_max(discrete_laplace(scale=2, neighbours=add_remove), m=10, monotone=True)",
    "noisy_max(discrete_gaussian(sigma=4), m=5)",
    "noisy_max(exponential(scale=3), m=4)",
    "noisy_max(gumbel(scale=3), m=8)",
    "noisy_max(gumbel(scale=3), m=8, rounds=3)",
)
LAWS = (
    "geometric(mean=30)",
    "geometric(mean=3000)",
    "geometric(mean=30, cap=60)",
    "logarithmic(mean=30)",
    "negative_binomial(eta=-0.5, mean=30)",
    "negative_binomial(eta=5, mean=30)",
    "poisson(mean=10)",
    "poisson(mean=3, cap=9)",
    "binomial(n=20, p=0.5)",
    "fixed(k=2)",
    "finite({1: 1/2, 4: 1/4, 9: 1/4})",
)
BASES = (
    "gaussian(sigma=4)",
    "laplace(scale=4)",
    "pure(epsilon=0.7)",
    "approximate(epsilon=0.4, delta=1e-09)",
    "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)",
)
SELECTIONS = (
    "selection(gaussian(sigma=4), geometric(mean=300))",
    "selection(gaussian(sigma=4, neighbours=replace_one), geometric(mean=30))",
    "selection(mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8)), geometric(mean=30))",
    "selection(disjoint(gaussian(sigma=4), discrete_gaussian(sigma=5)), geometric(mean=5))",
    "selection(points((0.1, 0.001), (1, 1e-09)), poisson(mean=10))",
    "selection(renyi((2, 0.1), (10, 0.6)), geometric(mean=10))",
    "selection(discrete_gaussian(sigma=4), geometric(mean=10))",
    "selection(gdp(mu=0.3, delta=1e-09), logarithmic(mean=10))",
    "selection(dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=2000), geometric(mean=30))",
    "selection(noisy_max(exponential(scale=3), m=4), poisson(mean=3))",
    "selection(composed(gaussian(sigma=4), laplace(scale=5)), geometric(mean=10))",
    "selection(selection(gaussian(sigma=8), geometric(mean=5)), geometric(mean=10))",
    "composed(selection(gaussian(sigma=4), geometric(mean=30)), gaussian(sigma=5))",
    "mixture(1/3*selection(pure(epsilon=1), geometric(mean=3)), 2/3*laplace(scale=1))",
)
SEARCH_TRIAL = "dpsgd(noise_multiplier=3.04, sampling_probability=1024/60000, steps=60)"
FINAL_TRAINING = "dpsgd(noise_multiplier=1.9, sampling_probability=1024/60000, steps=600)"
STAGED = (
    "subsampled(gaussian(sigma=4), probability=1/10)",
    "subsampled(selection(gaussian(sigma=4), geometric(mean=30)), probability=1/10)",
    f"composed(selection({SEARCH_TRIAL}, geometric(mean=30)), {FINAL_TRAINING})",
    "composed(subsampled(selection(gaussian(sigma=4), poisson(mean=5)), probability=1/10), gaussian(sigma=5))",
    "composed(composed(gaussian(sigma=8), times=6), laplace(scale=5))",
    "composed(selection(disjoint(gaussian(sigma=6), discrete_gaussian(sigma=8)), geometric(mean=5)), gaussian(sigma=5))",
)
COMPARED = (
    ("gaussian(sigma=4)", "geometric(mean=30)"),
    ("gaussian(sigma=4)", "negative_binomial(eta=5, mean=30)"),
    ("gaussian(sigma=4)", "poisson(mean=10)"),
    ("gaussian(sigma=4)", "binomial(n=20, p=0.5)"),
    ("laplace(scale=4)", "geometric(mean=30)"),
    ("dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)", "logarithmic(mean=10)"),
)
PLANS = (
    ("gaussian(sigma=?)", None),
    ("gaussian(sigma=?)", "geometric(mean=30)"),
    ("gaussian(sigma=4)", "geometric(mean=?)"),
    ("gaussian(sigma=4)", "poisson(mean=?)"),
    ("gaussian(sigma=3)", "binomial(n=?, p=0.5)"),
    ("dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=10)", "geometric(mean=10)"),
    ("dpsgd(noise_multiplier=2, sampling_probability=0.01, steps=?)", "geometric(mean=10)"),
    ("laplace(scale=?)", "poisson(mean=5)"),
)
DELTAS = (1e-3, 1e-6, 1e-10)
EPSILONS = (0.0, 0.5, 2.0)


def questions() -> Iterator[dict[str, object]]:
    """Every question, in the order of the record."""
    for mechanism in (*MECHANISMS, *NOISY_MAX):
        for delta in DELTAS:
            yield {"ask": "epsilon", "of": mechanism, "delta": delta}
        yield {"ask": "delta", "of": mechanism, "epsilon": list(EPSILONS)}
        yield {"ask": "renyi", "of": mechanism, "alpha": [1.5, 8.0]}
    for mechanism in NOISY_MAX:
        yield {"ask": "noisy_max_bounds", "of": mechanism, "delta": 1e-6}
    yield {"ask": "log_concave", "m": 3, "delta": 1e-6}
    for base, law in product(BASES, LAWS):
        yield {"ask": "epsilon", "of": f"selection({base}, {law})", "delta": 1e-6}
    for law in LAWS:
        yield {"ask": "delta", "of": f"selection(gaussian(sigma=4), {law})", "epsilon": [-0.3, *EPSILONS]}
        yield {"ask": "epsilon", "of": f"selection(gaussian(sigma=4), {law})", "delta": 1e-12}
        yield {"ask": "law", "of": law}
    for mechanism in (*SELECTIONS, *STAGED):
        yield {"ask": "epsilon", "of": mechanism, "delta": 1e-5}
    for mechanism in STAGED:
        yield {"ask": "delta", "of": mechanism, "epsilon": [-0.3, *EPSILONS]}
    for mechanism, law in COMPARED:
        yield {"ask": "compare", "of": f"selection({mechanism}, {law})", "delta": 1e-6}
    for mechanism, law in PLANS:
        yield {"ask": "plan", "of": mechanism, "count": law, "epsilon": 2.0, "delta": 1e-6}
    yield {"ask": "adjust", "sampling_probability": 0.01, "count": "geometric(mean=30)", "delta": 1e-6, "epsilon_base": 1.5}
    yield {"ask": "design", "of": "pure(epsilon=0.5)", "epsilon": 1.2, "delta": 1e-6, "tau": 0.05, "cap": 12, "mean": 5}
    yield {"ask": "certificate", "of": "gaussian(sigma=4)", "count": "geometric(mean=30)", "delta": 1e-6}
