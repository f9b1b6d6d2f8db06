"""Hockey sticks from their definitions, at 40 digits: what the floats of the package are held against."""

import mpmath

DIGITS = 40


def gaussian_hockey(mu, epsilon):
    """N(mu, 1) against N(0, 1), at any real epsilon."""
    with mpmath.workdps(DIGITS):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        # The difference of two near numbers loses what the tail has in digits: take them in more.
        with mpmath.workdps(DIGITS + 20):
            return +(mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


def laplace_hockey(scale, epsilon):
    """Laplace noise of this scale around 0 against around 1, at any real epsilon."""
    with mpmath.workdps(DIGITS):
        most, epsilon = 1 / mpmath.mpf(scale), mpmath.mpf(epsilon)
        if epsilon >= most:
            return mpmath.mpf(0)
        if epsilon <= -most:
            return -mpmath.expm1(epsilon)
        return -mpmath.expm1((epsilon - most) / 2)


def approximate_hockey(epsilon_0, delta_0, epsilon):
    """Randomised response with odds e^epsilon_0 that leaks everything with probability delta_0."""
    with mpmath.workdps(DIGITS):
        odds, leak = mpmath.exp(mpmath.mpf(epsilon_0)), mpmath.mpf(delta_0)
        high, low = odds / (1 + odds), 1 / (1 + odds)  # 1 - high would lose all digits at odds of e^700
        return leak + (1 - leak) * discrete_hockey([high, low], [low, high], epsilon)


def discrete_hockey(p, q, epsilon):
    """``sum (p - e^epsilon q)_+`` over exact masses, or floats taken as they are."""
    with mpmath.workdps(DIGITS):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        total = sum((max(exact(a) - factor * exact(b), 0) for a, b in zip(p, q, strict=True)), mpmath.mpf(0))
        return min(total, mpmath.mpf(1))  # beyond only by the fortieth digit


def exact(number):
    """A fraction, a float or a number of mpmath, without rounding."""
    return mpmath.mpf(number.numerator) / number.denominator if hasattr(number, "numerator") else mpmath.mpf(number)
