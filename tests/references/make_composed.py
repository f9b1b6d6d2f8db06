"""Epsilons of composed mechanisms to 13 digits, from the definitions: no code is shared with the package.

One step is a pair of laws p, q with the loss L = log(p/q) and the moments ``M(z) = E_q e^(zL)``, so M(0) = M(1) = 1. The moments
of a composition are the product of its steps' moments, and its hockey stick at epsilon is, for any c > 1,

    E_q (e^L - e^epsilon)_+  =  1/(2 pi i) * integral over Re z = c of  M(z) e^(-(z-1) epsilon) / (z (z-1))  dz.

For one value of the loss the integrand is ``e^(zL - (z-1) epsilon) / (z (z-1))``. Where L > epsilon the line is closed on the left,
around the residues at 1 and 0, which are ``e^L`` and ``-e^epsilon``; where L < epsilon it is closed on the right, around nothing.
The other order of the neighbours has the moments ``M(1-z)``.

The line goes near the saddle point of the integrand, so that little cancels, and the trapezoidal rule converges exponentially on it.
Every number is found on two lines of different place and step, with moments on different meshes; both must agree to 14 digits, or both
are refined.

Laws that are all atoms are added up, and Laplace alone is a finite sum of residues: there the integrand would fall too slowly, as it does
for one step of DP-SGD alone, which has a closed form.

    python tests/references/make_composed.py    # writes composed.json beside this file
"""

import ast
import json
from dataclasses import dataclass, field
from functools import reduce
from itertools import count, pairwise
from math import pi, sqrt
from pathlib import Path

import mpmath as mp
import numpy as np

TABLE = Path(__file__).with_name("composed.json")
DIGITS = 40  # of the arithmetic
STORED = 13  # digits of an epsilon in the table
AGREEMENT = mp.mpf("1e-14")  # of the two lines
NEGLIGIBLE = 60.0  # terms below e^-60 of the largest are left out
PLACES = (("0.85", 1, 1.0), ("0.75", 1.6, 0.7))  # of the two lines, below the saddle point; their fineness; the mesh of the moments
FIXED_POINT = 400  # bits of a discrete Gaussian's masses


# The steps. `moment` serves the integral, `atoms` a law that is all atoms: a list of (loss, p, q).


@dataclass(frozen=True)
class Gaussian:
    """N(mu, 1) against N(0, 1)."""

    mu: mp.mpf

    def moment(self, z, _mesh):
        return mp.exp(z * (z - 1) * self.mu**2 / 2)


@dataclass(frozen=True)
class Sampled:
    """(1-r) N(0, s^2) + r N(1, s^2) against N(0, s^2): a step of DP-SGD on data with the record against data without it."""

    sigma: mp.mpf
    rate: mp.mpf
    _nodes: dict = field(default_factory=dict, compare=False, repr=False)

    def moment(self, z, mesh):
        """The trapezoidal rule on the real line, which converges exponentially as the integrand is analytic around it.

        At the height a in the complex plane it has grown by about ``exp(a^2/(2 s^2) + a |Im z| L'(x))``, and at the height ``pi s^2`` the
        logarithm branches. A step h then errs by that factor times ``exp(-2 pi a/h)``. The slope L' grows with x.
        """
        s = float(self.sigma)
        low, high = self._range(float(mp.re(z)))
        share = 1 - (1 - float(self.rate)) * float(mp.exp(-self._node(mp.mpf(high))[1]))  # of the moved Gaussian in p, at the upper end
        height = min(s * sqrt(2 * NEGLIGIBLE), 0.7 * pi * s * s)
        enough = 2 * pi / (NEGLIGIBLE / height + height / (2 * s * s) + abs(float(mp.im(z))) * min(1.0, 2 * share) / (s * s))
        step = 2.0 ** (np.floor(4 * np.log2(mesh * enough)) / 4)  # few different steps, so that nodes are used again
        nodes = (self._nodes_at(step, k) for k in range(int(low // step), int(high // step) + 2))
        return mp.fsum(mp.exp(log_q + z * loss) for log_q, loss in nodes) * mp.mpf(step)

    def _range(self, power):
        """Where ``q e^(power L)`` counts."""
        s, r = float(self.sigma), float(self.rate)
        reach = s * (sqrt(2 * NEGLIGIBLE) + 1)
        x = np.arange(min(0.0, power) - reach, max(0.0, power) + reach, s / 4)
        log_size = -x * x / (2 * s * s) + power * np.logaddexp(np.log1p(-r), np.log(r) + (2 * x - 1) / (2 * s * s))
        counts = x[log_size > log_size.max() - NEGLIGIBLE]
        return counts[0], counts[-1] + s / 4

    def _nodes_at(self, step, k):
        if (step, k) not in self._nodes:
            self._nodes[step, k] = self._node(k * mp.mpf(step))
        return self._nodes[step, k]

    def _node(self, x):
        """Log q and L."""
        s, r = self.sigma, self.rate
        return -x * x / (2 * s * s) - mp.log(s * mp.sqrt(2 * mp.pi)), mp.log(1 - r + r * mp.exp((2 * x - 1) / (2 * s * s)))


@dataclass(frozen=True)
class Laplace:
    """Laplace noise around 1 against around 0: half of each law is an atom, at the loss 1/scale or -1/scale."""

    scale: mp.mpf

    def moment(self, z, _mesh):
        return ((z - 1) * mp.exp(-z / self.scale) + z * mp.exp((z - 1) / self.scale)) / (2 * z - 1)


@dataclass(frozen=True)
class Response:
    """Randomised response with odds e^epsilon, which leaks everything with probability delta."""

    epsilon: mp.mpf
    delta: mp.mpf

    def moment(self, z, _mesh):
        """Of the part that does not leak."""
        return (mp.exp(z * self.epsilon) + mp.exp((1 - z) * self.epsilon)) / (1 + mp.exp(self.epsilon))

    def atoms(self, times):
        """Of the part that does not leak."""
        odds = mp.exp(self.epsilon)
        shares = [mp.binomial(times, k) / (1 + odds) ** times for k in range(times + 1)]
        return [((2 * k - times) * self.epsilon, share * odds**k, share * odds ** (times - k)) for k, share in enumerate(shares)]


@dataclass(frozen=True)
class DiscreteGaussian:
    """Masses of the integers in proportion to ``exp(-k^2/(2 s^2))``, moved by 1 against not moved: the loss is ``(2k-1)/(2 s^2)``."""

    sigma: mp.mpf

    def moment(self, z, _mesh):
        reach = int(self.sigma * sqrt(2 * NEGLIGIBLE) + abs(mp.re(z))) + 2
        weights = [(k, mp.exp(-mp.mpf(k * k) / (2 * self.sigma**2))) for k in range(-reach, reach + 1)]
        tilted = mp.fsum(w * mp.exp(z * (2 * k - 1) / (2 * self.sigma**2)) for k, w in weights)
        return tilted / mp.fsum(w for _, w in weights)

    def atoms(self, times):
        """The sum of the outputs tells the whole loss; its masses are a power of polynomials, in fixed point."""
        reach = int(self.sigma * sqrt(2 * FIXED_POINT)) + 2
        with mp.workprec(FIXED_POINT + 100):
            weights = [mp.exp(-mp.mpf(k * k) / (2 * self.sigma**2)) for k in range(-reach, reach + 1)]
            total = mp.fsum(weights)
            one = np.array([int(mp.ldexp(w / total, FIXED_POINT)) for w in weights], dtype=object)
            power = reduce(lambda a, _: np.convolve(a, one) >> FIXED_POINT, range(times - 1), one)
            mass = {k - times * reach: mp.ldexp(int(m), -FIXED_POINT) for k, m in enumerate(power)}
        seen = range(-times * reach + times, times * reach + 1)
        return [((2 * k - times) / (2 * self.sigma**2), mass[k - times], mass[k]) for k in seen if mass[k - times] and mass[k]]


# The text forms, without the package.


STEPS = {
    "gaussian": lambda sigma: Gaussian(1 / sigma),
    "laplace": Laplace,
    "pure": lambda epsilon: Response(epsilon, mp.mpf(0)),
    "approximate": Response,
    "discrete_gaussian": DiscreteGaussian,
    # The loss is 1/scale where the output is at least 1, and -1/scale elsewhere.
    "discrete_laplace": lambda scale: Response(1 / scale, mp.mpf(0)),
    "dpsgd": lambda noise_multiplier, sampling_probability: (
        Gaussian(1 / noise_multiplier) if sampling_probability == 1 else Sampled(noise_multiplier, sampling_probability)
    ),
}


def read(text):
    """The steps of a text form, each with how often it is taken. Parameters are floats, as the package reads them."""
    return _read(ast.parse(text, mode="eval").body)


def _read(call):
    given = {word.arg: _value(word.value) for word in call.keywords}
    times = given.pop("steps", None) or given.pop("times", 1)
    if call.func.id == "composed":
        return [(step, taken * times) for part in call.args for step, taken in _read(part)]
    return [(STEPS[call.func.id](**{name: mp.mpf(value) for name, value in given.items()}), times)]


def _value(node):
    return _value(node.left) / _value(node.right) if isinstance(node, ast.BinOp) else node.value


# Epsilon.


def epsilon_at(text, delta):
    """The epsilon of a mechanism at ``delta``, and the order of the neighbours that decides it."""
    with mp.workdps(DIGITS):
        steps, delta = read(text), mp.mpf(delta)
        kept = mp.fprod((1 - getattr(step, "delta", 0)) ** times for step, times in steps)
        delta = (delta - (1 - kept)) / kept  # what leaks is distinguished in any case
        if all(hasattr(step, "atoms") for step, _ in steps):
            return epsilon_of_atoms(steps, delta), "both"
        if len(steps) == 1 and isinstance(steps[0][0], Laplace):
            return epsilon_of_laplace(*steps[0], delta), "both"
        if len(steps) == 1 and steps[0][1] == 1 and isinstance(steps[0][0], Sampled):
            return epsilon_of_one_sampled(steps[0][0], delta)
        remove, saddle = epsilon_by_integral(steps, delta, reverse=False)
        if not any(isinstance(step, Sampled) for step, _ in steps):
            return remove, "both"
        if any(chernoff(steps, 1 + (saddle - 1) * mp.mpf(2) ** k, remove) < mp.log(delta) for k in range(-3, 5)):
            return remove, "remove"
        add, _ = epsilon_by_integral(steps, delta, reverse=True)
        return max((remove, "remove"), (add, "add"))


def log_moment(steps, z, mesh, *, reverse):
    return mp.fsum(times * mp.log(step.moment(1 - z if reverse else z, mesh)) for step, times in steps)


def chernoff(steps, c, epsilon):
    """A bound of log delta of the reverse order: ``(1 - e^-y)_+ <= e^((c-1) y) (1-1/c)^(c-1) / c``, with equality at its greatest."""
    return log_moment(steps, c, 1, reverse=True) - (c - 1) * epsilon + (c - 1) * mp.log(1 - 1 / c) - mp.log(c)


def epsilon_by_integral(steps, delta, *, reverse):
    """Epsilon of one order, and the saddle point.

    A step h on the line through c adds delta(epsilon + 2 pi n/h) e^(2 pi n (c-1)/h) for all n. Of those the values at lower epsilons are
    at most the factor, which decides h. Those at higher ones fall slowly where one step can lose much: there a line below the saddle point
    is better, and what cancels on it is little.
    """
    saddle = saddle_point(steps, delta, reverse=reverse)
    places = [(1 + (saddle - 1) * mp.mpf(at), *finer) for at, *finer in PLACES]
    guess = laplace_method(steps, min(places)[0], reverse=reverse)[0]
    for fineness in (1, 2, 4, 8, 16):
        lines = [Line(steps, c, delta, guess, fineness * finer, mesh=mesh, reverse=reverse) for c, finer, mesh in places]
        first, second = (line.epsilon_at(delta, guess) for line in lines)
        if abs(first - second) <= AGREEMENT * abs(first):
            return second, saddle
    raise ArithmeticError(f"the two lines differ: {first}, {second}")


def laplace_method(steps, c, *, reverse):
    """The epsilon whose saddle point is c, and log delta there, both about: they only place the lines.

    With ``f = log M(c) - log(c (c-1))``, the integrand is least on the real axis where epsilon = f'(c).
    """
    h = (c - 1) * mp.mpf("1e-10")
    low, mid, high = (log_moment(steps, x, 1, reverse=reverse) - mp.log(x * (x - 1)) for x in (c - h, c, c + h))
    epsilon, curvature = (high - low) / (2 * h), (high - 2 * mid + low) / h**2
    return epsilon, mid - (c - 1) * epsilon - mp.log(2 * mp.pi * curvature) / 2


def saddle_point(steps, delta, *, reverse):
    """By bisection of log(c-1)."""
    low = high = mp.mpf("1e-2")
    while laplace_method(steps, 1 + high, reverse=reverse)[1] > mp.log(delta):
        low, high = high, 2 * high
    while high > 1.001 * low:
        middle = mp.sqrt(low * high)
        log_delta = laplace_method(steps, 1 + middle, reverse=reverse)[1]
        if abs(log_delta - mp.log(delta)) < 0.1:
            return 1 + middle
        low, high = (middle, high) if log_delta > mp.log(delta) else (low, middle)
    return 1 + low


class Line:
    """The integrand but for ``e^(-(z-1) epsilon)`` at equal steps of ``z = c + it``, t >= 0; the other half is the conjugate.

    The line ends where the integrand, for an epsilon near ``guess``, is negligible beside ``delta``.
    """

    def __init__(self, steps, c, delta, guess, fineness, *, mesh, reverse):
        self.terms, step = [], 2 * mp.pi * (c - 1) / (40 - mp.log(delta)) / fineness
        for k in count():
            z = mp.mpc(c, k * step)
            value = mp.fprod(part.moment(1 - z if reverse else z, mesh) ** times for part, times in steps) / (z * (z - 1))
            self.terms.append((z - 1, value * step / mp.pi / (1 if k else 2)))
            if abs(value) * mp.exp(-(c - 1) * guess) * (c - 1) < delta * mp.mpf("1e-20"):
                return

    def epsilon_at(self, delta, epsilon):
        """By Newton's method on log delta, or bisection where that leads astray."""
        low, high = mp.mpf(0), mp.inf
        for _ in range(100):
            parts = [(s, value * mp.exp(-s * epsilon)) for s, value in self.terms]
            found, falls = mp.fsum(mp.re(part) for _, part in parts), mp.fsum(mp.re(s * part) for s, part in parts)
            low, high = (epsilon, high) if found > delta else (low, epsilon)
            better = epsilon + mp.log(found / delta) * found / falls if min(found, falls) > 0 else low
            if abs(better - epsilon) < mp.mpf("1e-20") * epsilon:
                return better
            epsilon = better if low < better < high else (low + min(high, 2 * low + 1)) / 2
        raise ArithmeticError("no epsilon found")


def epsilon_of_atoms(steps, delta):
    """Between two neighbouring losses delta is linear in e^epsilon."""
    atoms = [(mp.mpf(0), mp.mpf(1), mp.mpf(1))]
    for step, times in steps:
        atoms = [(a + loss, b * p, c * q) for loss, p, q in step.atoms(times) for a, b, c in atoms]
    atoms.sort(reverse=True)
    over_p = over_q = mp.mpf(0)
    for (_, p, q), (below, _, _) in pairwise(atoms):
        over_p, over_q = over_p + p, over_q + q
        if over_p - mp.exp(below) * over_q >= delta:
            return mp.log((over_p - delta) / over_q)
    raise ArithmeticError("delta is not reached")


def sampled_hockey(step, epsilon):
    """One step at any real epsilon: the loss grows with x, and passes epsilon at ``1/2 + s^2 log((e^epsilon - 1 + r)/r)``."""
    s, r, odds = step.sigma, step.rate, mp.exp(epsilon)
    if odds <= 1 - r:
        return 1 - odds
    x = mp.mpf(0.5) + s * s * mp.log((odds - 1 + r) / r)
    return r * mp.ncdf((1 - x) / s) - (odds - 1 + r) * mp.ncdf(-x / s)


def epsilon_of_one_sampled(step, delta):
    with mp.workdps(2 * DIGITS):
        remove = bisected(lambda epsilon: sampled_hockey(step, epsilon), delta)
        # The reversal of a hockey stick.
        add = bisected(lambda epsilon: 1 - mp.exp(epsilon) * (1 - sampled_hockey(step, -epsilon)), delta)
    return max((remove, "remove"), (add, "add"))


def bisected(hockey, delta):
    """Where a falling function passes ``delta``."""
    low, high = mp.mpf(0), mp.mpf(1)
    while hockey(high) > delta:
        low, high = high, 2 * high
    while high - low > mp.mpf("1e-25") * high:
        middle = (low + high) / 2
        low, high = (middle, high) if hockey(middle) > delta else (low, middle)
    return high


def laplace_hockey(scale, times, epsilon):
    """The k-fold Laplace mechanism by residues.

    ``M(z)^k = sum_i C(k, i) (z-1)^i z^(k-i) (2z-1)^-k e^(z (k-2i)/scale - (k-i)/scale)``. A term whose exponent is below epsilon is
    closed on the right and gives nothing; the others are closed on the left, around 1/2 and, for i = 0, around 1. The residue at 1/2 is
    a coefficient of a product of three power series in ``y = z - 1/2``.
    """
    total = mp.mpf(0)
    for i in range(times):
        rate = (times - 2 * i) / scale - epsilon
        if rate <= 0:
            break
        left = [mp.binomial(i - 1, j) * mp.mpf(-0.5) ** (i - 1 - j) for j in range(times)]  # (y - 1/2)^(i-1)
        right = [mp.binomial(times - i - 1, j) * mp.mpf(0.5) ** (times - i - 1 - j) for j in range(times)]  # (y + 1/2)^(k-i-1)
        grown = [rate**j / mp.factorial(j) for j in range(times)]  # e^(rate y)
        both = np.convolve(np.array(left, dtype=object), np.array(right, dtype=object))[:times]
        residue = mp.fdot(both, grown[::-1]) * mp.exp(rate / 2) / mp.mpf(2) ** times
        residue += mp.exp(rate) if i == 0 else 0
        total += mp.binomial(times, i) * mp.exp(epsilon - (times - i) / scale) * residue
    return total


def epsilon_of_laplace(step, times, delta):
    with mp.workdps(2 * DIGITS):
        return bisected(lambda epsilon: laplace_hockey(step.scale, times, epsilon), delta)


# The table.


def _dpsgd(noise_multiplier, sampling_probability, steps):
    return f"dpsgd(noise_multiplier={noise_multiplier}, sampling_probability={sampling_probability}, steps={steps})"


MNIST, CIFAR = _dpsgd("1.1", "256/60000", "14063"), _dpsgd("21.1", "16384/50000", "250")
CASES = {
    # One kind of step.
    MNIST: "1e-6 1e-11 1e-12 1e-13 1e-15 1e-20 1e-30",
    CIFAR: "1e-3 1e-6 1e-12 1e-30",
    _dpsgd("1", "0.5", "1000"): "1e-6",
    _dpsgd("1", "0.01", "1000"): "1e-5 1e-10",
    _dpsgd("0.8", "0.01", "2000"): "1e-6",
    _dpsgd("0.7", "0.005", "5000"): "1e-8",
    _dpsgd("0.9", "0.004", "20000"): "1e-5",
    _dpsgd("1.5", "0.02", "3000"): "1e-3 1e-6 1e-16",
    _dpsgd("2", "0.1", "10"): "1e-3 1e-9",
    _dpsgd("2", "1e-4", "1000000"): "1e-8 1e-12",
    _dpsgd("4", "1e-5", "1000000"): "1e-10",
    _dpsgd("5", "0.02", "200000"): "1e-7",
    _dpsgd("10", "0.001", "1000000"): "1e-9 1e-25",
    _dpsgd("30", "0.1", "10000"): "1e-7",
    _dpsgd("100", "0.01", "1000"): "1e-5",
    _dpsgd("100", "0.3", "100000"): "1e-18",
    # One step of DP-SGD alone.
    _dpsgd("0.3", "0.001", "1"): "1e-6",
    _dpsgd("0.3", "0.5", "1"): "1e-10",
    _dpsgd("1", "0.01", "1"): "1e-5 1e-30",
    _dpsgd("2", "1e-5", "1"): "1e-12",
    _dpsgd("100", "0.5", "1"): "1e-4",
    # Large epsilons.
    _dpsgd("0.3", "0.9", "100"): "1e-10",
    _dpsgd("0.4", "0.5", "50"): "1e-8 1e-20",
    _dpsgd("0.5", "0.2", "100"): "1e-6 1e-15",
    _dpsgd("0.6", "0.9", "20"): "1e-5",
    "gaussian(sigma=0.3)": "1e-5 1e-30",
    "composed(laplace(scale=0.5), times=8)": "1e-10",
    # Nothing sampled.
    _dpsgd("3", "1", "9"): "1e-30",
    _dpsgd("50", "1", "400"): "1e-6",
    "gaussian(sigma=4)": "1e-6",
    "gaussian(sigma=100)": "1e-3",
    "composed(gaussian(sigma=4), times=10)": "1e-6 1e-20",
    "composed(gaussian(sigma=50), times=1000)": "1e-12",
    "laplace(scale=2)": "1e-3",
    "composed(laplace(scale=2), times=5)": "1e-6",
    "composed(laplace(scale=10), times=20)": "1e-5 1e-12",
    # Atoms.
    "pure(epsilon=0.1)": "1e-3",
    "composed(pure(epsilon=0.01), times=1000)": "1e-9",
    "composed(pure(epsilon=0.1), times=100)": "1e-6 1e-30",
    "composed(pure(epsilon=2), times=10)": "1e-5",
    "composed(approximate(epsilon=0.1, delta=1e-9), times=50)": "1e-6",
    "discrete_gaussian(sigma=0.5)": "1e-10",
    "discrete_gaussian(sigma=2)": "1e-6",
    "composed(discrete_gaussian(sigma=0.7), times=5)": "1e-12",
    "composed(discrete_gaussian(sigma=2), times=10)": "1e-6 1e-25",
    "composed(discrete_gaussian(sigma=10), times=12)": "1e-8",
    "discrete_laplace(scale=2)": "1e-3",
    "composed(discrete_laplace(scale=2), times=20)": "1e-6",
    "composed(discrete_laplace(scale=10), times=100)": "1e-10",
    # Different steps.
    "composed(pure(epsilon=0.1), approximate(epsilon=0.3, delta=1e-10), pure(epsilon=0.5))": "1e-3 1e-8",
    "composed(composed(discrete_gaussian(sigma=3), times=8), composed(discrete_laplace(scale=4), times=6))": "1e-7",
    "composed(gaussian(sigma=0.5), gaussian(sigma=2), gaussian(sigma=10))": "1e-9",
    "composed(gaussian(sigma=4), laplace(scale=2))": "1e-6 1e-15",
    "composed(composed(gaussian(sigma=8), times=20), composed(laplace(scale=5), times=4))": "1e-9",
    "composed(gaussian(sigma=3), pure(epsilon=0.5))": "1e-5",
    "composed(gaussian(sigma=3), approximate(epsilon=0.5, delta=1e-8), laplace(scale=3))": "1e-6",
    "composed(discrete_gaussian(sigma=2), gaussian(sigma=4))": "1e-6",
    f"composed({_dpsgd('1.1', '256/60000', '5000')}, {_dpsgd('0.8', '128/60000', '2000')})": "1e-6 1e-12",
    f"composed({_dpsgd('1', '0.01', '200')}, {_dpsgd('2', '0.05', '500')}, {_dpsgd('4', '0.2', '100')})": "1e-5 1e-10 1e-20",
    f"composed({CIFAR}, {_dpsgd('10', '0.1', '1000')})": "1e-8",
    f"composed({MNIST}, gaussian(sigma=4))": "1e-6 1e-12",
    f"composed({_dpsgd('1.5', '0.02', '1000')}, laplace(scale=2))": "1e-6",
    f"composed({_dpsgd('0.6', '0.3', '50')}, gaussian(sigma=1), pure(epsilon=0.2))": "1e-7",
    f"composed({_dpsgd('2', '0.01', '2000')}, approximate(epsilon=0.2, delta=1e-9))": "1e-6",
    f"composed({_dpsgd('2', '0.05', '100')}, times=3)": "1e-6",
}


def case(text, delta):
    """A line of the table. ``order`` is the order of the neighbours that decides."""
    epsilon, order = epsilon_at(text, delta)
    return {"mechanism": text, "delta": delta, "epsilon": mp.nstr(epsilon, STORED, strip_zeros=False), "order": order}


def main():
    lines = [json.dumps(case(text, delta)) for text, deltas in CASES.items() for delta in deltas.split()]
    TABLE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
