"""The paper's bound and the one that holds, in plain Python: shared by tests, none of the package's code."""

import math


def theorem_1(T, k, m, capacity, dimension, C=1.0, delta=0.05, log_masks=None):
    """Eq. (23); with log_masks = log binom(T, k), Eq. (22)."""
    log_masks = k * (1 + math.log(T / k)) if log_masks is None else log_masks
    inside = 2 * dimension * log_masks + dimension * math.log(2 * m) + math.log(4 / delta)
    return 4 * C * capacity + 2 * math.sqrt(inside / (2 * m))


def log_patterns(T, k, m, d):
    """Sauer and Shelah's count of the masks of linear routers, at most all there are."""
    every = m * math.log(math.comb(T, k))
    forms, parameters = m * T * (T - 1) / 2, (T - 1) * d
    return min(every, parameters * (1 + math.log(forms / parameters))) if forms >= parameters > 0 else every


def uniform(rho, patterns, m, C=1.0, delta=0.05):
    """The corrected bound."""
    return 2 * C * rho + 2 * math.sqrt(patterns / (2 * m)) + math.sqrt(math.log(2 / delta) / (2 * m))
