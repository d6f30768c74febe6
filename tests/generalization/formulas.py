"""The paper's bound and the one that holds, in plain Python: shared by tests, none of the package's code."""

import itertools
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


def log_network_patterns(T, k, m, d, widths):
    """Signs of a ReLU network's units, layer by layer, then of its logits' differences; at most all masks there are."""
    counts, weights, total, inputs = [*widths, T * (T - 1) / 2], 0, 0.0, d
    for layer, units in enumerate([*widths, T]):
        weights += inputs * units
        forms, degree, inputs = m * counts[layer], layer + 1, units
        warren = (
            math.log(2) + weights * math.log(2 * math.e * forms * degree / weights) if forms >= weights else math.inf
        )
        total += min(warren, forms * math.log(2))
    return min(total, m * math.log(math.comb(T, k)))


def relu(norms, c=1.0):
    """Golowich, Rakhlin and Shamir's R_n sqrt(n) for ReLU networks; a linear function's for one layer."""
    return c * math.prod(norms) * (math.sqrt(2 * math.log(2) * len(norms)) + 1 if len(norms) > 1 else 1)


def stored(weights, bits, m, delta=0.05):
    return math.sqrt((weights * bits * math.log(2) + math.log(2 / delta)) / (2 * m))


def uniform(rho, patterns, m, C=1.0, delta=0.05):
    """The corrected bound."""
    return 2 * C * rho + 2 * math.sqrt(patterns / (2 * m)) + math.sqrt(math.log(2 / delta) / (2 * m))


def natarajan_dimension(labelings):
    """Definition 3 as it stands: every set of points, every f_0 and f_1 of the class, every choice between them."""
    best = 0
    for size in range(1, labelings.shape[1] + 1):
        for points in itertools.combinations(range(labelings.shape[1]), size):
            rows = {tuple(row) for row in labelings[:, list(points)].tolist()}
            for first, second in itertools.combinations(sorted(rows), 2):
                if all(a != b for a, b in zip(first, second, strict=True)) and rows >= set(
                    itertools.product(*zip(first, second, strict=True))
                ):
                    best = size
    return best
