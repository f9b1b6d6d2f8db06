"""Laws of K for the tests."""

from hypothesis import strategies as st

from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson

SMALL_LAWS = [
    Geometric(mean=3.5),
    Geometric(mean=30, cap=120),
    Geometric(mean=30, cap=700),
    Logarithmic(mean=4),
    Logarithmic(mean=30, cap=400),
    NegativeBinomial(eta=-0.5, mean=3),
    NegativeBinomial(eta=-0.9, mean=1.5),
    NegativeBinomial(eta=1e-12, mean=5),
    NegativeBinomial(eta=5, mean=40),
    NegativeBinomial(eta=2000, mean=40),
    NegativeBinomial(eta=5, mean=300, cap=280),
    Poisson(mean=0.01),
    Poisson(mean=10),
    Poisson(mean=500, cap=480),
    Poisson(mean=1000, cap=10),
    Binomial(n=20, p=0.5),
    Binomial(n=20, p=1),
    Binomial(n=1000, p=0.999),
    Binomial(n=1000, p=0.5, cap=490),
    Fixed(k=8),
    Finite({0: 1, 5: 9}),
    Finite({0: 1, 5: 9, 11: 4}, cap=7),
]

ONE = [
    Geometric(mean=1),
    Logarithmic(mean=1),
    NegativeBinomial(eta=-0.5, mean=1),
    NegativeBinomial(eta=7, gamma=1),
    NegativeBinomial(eta=-0.5, gamma=1, cap=1),
    Geometric(mean=1e9, cap=1),
    Logarithmic(mean=30, cap=1),
    Binomial(n=1, p=1),
    Fixed(k=1),
    Finite({1: 3}),
    Finite({1: 1, 9: 5}, cap=4),
]

caps = st.none() | st.integers(1, 600)
positive = st.floats(1e-6, 1e6)
etas = st.floats(-0.9, 50)
# Extreme parameters have separate tests.
means = st.floats(1, 1e6)
laws = st.one_of(
    st.builds(lambda m, c: Geometric(mean=m, cap=c), means, caps),
    st.builds(lambda m, c: Logarithmic(mean=m, cap=c), means, caps),
    st.builds(lambda e, m, c: NegativeBinomial(eta=e, mean=m, cap=c), etas, means, caps),
    st.builds(lambda m, c: Poisson(mean=m, cap=c), positive, caps),
    st.builds(lambda n, p, c: Binomial(n=n, p=p, cap=c), st.integers(1, 10**6), st.floats(1e-6, 1 - 1e-9), caps),
    st.builds(lambda k: Fixed(k=k), st.integers(1, 10**9)),
    st.builds(Finite, st.dictionaries(st.integers(1, 1000), st.integers(1, 10**6), min_size=1)),
)
