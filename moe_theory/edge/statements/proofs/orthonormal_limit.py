"""Counterexample to Proposition 4, last line: at s = 1 the error tends to 5/4 |w|^2, but the paper says 4/3 |w|^2.

Let s = 1. Let N < p orthonormal signals have random directions, drawn separately from the ground truths. In the end a
server in use has served all types, and its model is sum_k (v_k'w_k) v_k. The error of type n is |w_n|^2 plus, for each
k, (v_k'(w_k - w_n))^2 - (v_k'w_n)^2. Because E v v' = I/p, the mean error over n is (N/p) Delta + (1 - N/p) W, where W
is the mean of |w_n|^2. This is not Delta unless W = Delta. For orthonormal ground truths this mean is 1 + (N - 2)/p,
but Delta = 2 (1 - 1/N).

If instead signals lie along orthonormal ground truths, a task sets w to S w + w_t, with S = I - P_t. The moments of S
(as for Proposition 4) map R = E|w|^2, a = E(w'v_k)^2 and m = E w'v_k linearly. At the fixed point an earlier task has
the error R + 1 - 2 m. This is 2.19 for Fig. 3's p = 15, s = 10, N = 10. There Delta = 1.8.

Robust: the proof allows any servers, delays and beta, and ground truths with W not equal to Delta, in units of sigma_0.

Objection: the limit is right if all columns are isotropic and redrawn for each task. Assumption 1 allows this. But in
Section II tasks of a type have similar features, and in Appendix A signals of a cluster are O(sigma_0^2) apart.
"""

import sys
from fractions import Fraction
from itertools import permutations


def apart(features: int, kinds: int) -> tuple[Fraction, Fraction]:
    """Return the error at s = 1, with signals on random axes, for which E v v' = I/p, and Delta."""
    truths = [tuple(int(axis == n) for axis in range(features)) for n in range(kinds)]
    errors = []
    for axes in permutations(range(features), kinds):
        model = [0] * features
        for truth, axis in zip(truths, axes, strict=True):
            model[axis] = truth[axis]
        errors += [sum((x - y) ** 2 for x, y in zip(model, truth, strict=True)) for truth in truths]
    return Fraction(sum(errors), len(errors)), 2 * (1 - Fraction(1, kinds))


def along(features: int, samples: int, kinds: int) -> Fraction:
    """Return the error of an earlier task at the fixed point of the moments, with signals along ground truths."""
    rank, across, b = features - samples, features - 1, 1 - Fraction(1, kinds)
    c, square = Fraction(rank, across), Fraction(rank * (rank + 2), across * (across + 2))
    k2 = (c - square) / (across - 1)
    k1 = square - k2
    a = (Fraction(1, kinds) + b * k2 / (1 - c)) / (1 - b * k1 + b * k2 + b * k2 * c / (1 - c))
    norm = (1 - c * a) / (1 - c)
    assert norm == 1 + c * (norm - a)
    assert a == Fraction(1, kinds) + b * (k1 * a + k2 * (norm - a))
    return norm + 1 - 2 * Fraction(1, kinds) / (1 - b * c)


is_violated = True
for features, kinds in ((4, 3), (6, 3), (6, 5)):
    found, stated = apart(features, kinds)
    is_violated = is_violated and found == 1 + Fraction(kinds - 2, features) != stated
    print(f"p = {features}, s = 1, N = {kinds}, signals drawn separately: the error tends to {found}, Delta = {stated}")
print(f"p = 15, s = 10, N = 10, signals along truths: the error tends to {along(15, 10, 10)}, Delta = {Fraction(9, 5)}")
print("violated: the limit is not Delta" if is_violated else "not violated")
sys.exit(not is_violated)
