"""Counterexample to Proposition 4, last line: the error tends to 2.19 |w|^2, where the paper says 1.8 |w|^2.

Let w_n = v_n be orthonormal, with any beta, and noise if s >= 2. The samples of a task contain its ground truth, and
erase only a part across it. So models are longer than (22) assumes, and earlier tasks have larger errors.

As P_t w_t = w_t, a task sets w to S w + w_t. S = I - P_t is a uniformly random projector of rank p - s in the D = p - 1
dimensions across v_t. There E S = c I with c = (p - s)/D, and E[S A S] = k1 A + k2 tr(A) I with k1 + k2 D = c and k1 +
k2 = E S_11^2 = (p - s)(p - s + 2)/(D (D + 2)). Let b = 1 - 1/N, R = E|w|^2, a = E(w'v_k)^2 and m = E w'v_k.
Task-independent routing maps R to 1 + c (R - a), a to 1/N + b (k1 a + k2 (R - a)), and m to 1/N + b c m, a contraction.
At its fixed point an earlier task has the error R + 1 - 2 m. It is 2.19 |w_n|^2 for p = 15, s = 10, N = 10 of Fig. 3,
where Delta = 2 b = 1.8 |w_n|^2. At s = 1 a model is the sum of the ground truths served, and the error is N - 1.

Robust: any servers, delays, beta and amount of noise. Any s, p and N, except sizes at which the two values agree, as N
= 2 at s = 1.

Objection: signals need not lie along ground truths. But they may, as Assumption 1 only limits their size. The limit is
right if all columns are isotropic and redrawn for each task. Assumption 1 allows this, but not Section II, where tasks
of a type have similar features, nor Appendix A, where signals of a cluster are O(sigma_0^2) apart.
"""

import sys
from fractions import Fraction


def limit(features: int, samples: int, kinds: int) -> Fraction:
    """Return the error of an earlier task at the fixed point of the moments, by elimination."""
    rank, across, other = features - samples, features - 1, 1 - Fraction(1, kinds)
    c, square = Fraction(rank, across), Fraction(rank * (rank + 2), across * (across + 2))
    k2 = (c - square) / (across - 1)
    k1 = square - k2
    # a (1 - b k1 + b k2) = 1/N + b k2 R, and R = (1 - c a) / (1 - c).
    a = (Fraction(1, kinds) + other * k2 / (1 - c)) / (1 - other * k1 + other * k2 + other * k2 * c / (1 - c))
    norm = (1 - c * a) / (1 - c)
    mean = Fraction(1, kinds) / (1 - other * c)
    assert norm == 1 + c * (norm - a)
    assert a == Fraction(1, kinds) + other * (k1 * a + k2 * (norm - a))
    trace, determinant = c + other * (k1 - k2), c * other * k1  # of the map of (R, a)
    assert abs(trace) < 1 + determinant < 2  # both eigenvalues are below 1
    return norm + 1 - 2 * mean


differ = []
for features, samples, kinds in ((15, 10, 10), (15, 4, 3), (6, 4, 2), (15, 14, 10)):
    found, stated = limit(features, samples, kinds), 2 * (1 - Fraction(1, kinds))
    differ.append(found != stated)
    print(f"p = {features}, s = {samples}, N = {kinds}: the error tends to {found}, Delta = {stated}")
for kinds in (3, 10):
    differ.append(kinds - 1 != 2 * (1 - Fraction(1, kinds)))
    print(f"s = 1, N = {kinds}: the error tends to {kinds - 1}, Delta = {2 * (1 - Fraction(1, kinds))}")
print("violated: the limit is not Delta" if all(differ) else "not violated")
sys.exit(not all(differ))
