"""The closed forms of E G_T and E F_T are the recursion E|w_t - w|^2 = r E|w_(t-1) - w|^2 + (1 - r)|w*_t - w|^2 + N,
unrolled.

With P the projection on the columns of X_t, w_t - w = (I - P)(w_(t-1) - w) + P (w*_t - w) + X_t (X_t' X_t)^-1 z_t. The
columns span n random dimensions of p, independent of the past, so that P leaves n/p of any squared length in mean; the
three parts are orthogonal or of mean 0; and the last has the mean sigma^2 tr E (X_t' X_t)^-1 = n sigma^2/(p - n - 1),
the mean of an inverse Wishart matrix. So r = 1 - n/p and N are exact, and the rest is the sum of a geometric series:
computed here both ways.

Robust: any w*, of any lengths and angles.

Objection: entries are normal. Only the mean of (X' X)^-1 needs that; without noise any rotation-invariant law does.
"""

import itertools
import sys
from fractions import Fraction

TRUTHS = [(1, 0, 0), (0, 1, 0), (2, -1, 3), (1, 1, 1), (-1, 0, 2)]


def square(a, b):
    return Fraction(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def error(w, truths, r, noise):
    """E|w_t - w|^2 after these tasks, by the recursion."""
    found = square(w, (0, 0, 0))
    for truth in truths:
        found = r * found + (1 - r) * square(truth, w) + noise
    return found


is_right = True
for (p, n), sigma2, count in itertools.product(
    ((4, 2), (10, 3), (7, 5), (50, 48)), (Fraction(0), Fraction(1, 9), Fraction(4)), (2, 3, 5)
):
    r, noise, truths = 1 - Fraction(n, p), n * sigma2 / (p - n - 1), TRUTHS[:count]
    last = [error(w, truths, r, noise) for w in truths]
    then = [error(truths[i], truths[: i + 1], r, noise) for i in range(count)]
    generalization = sum(last) / count
    forgetting = sum(last[i] - then[i] for i in range(count - 1)) / (count - 1)
    apart = [[square(one, other) for other in truths] for one in truths]
    size = [square(w, (0, 0, 0)) for w in truths]
    still = [(1 - r) * sum(r ** (count - 1 - t) * apart[i][t] for t in range(count)) for i in range(count)]
    once = [(1 - r) * sum(r ** (i - t) * apart[i][t] for t in range(i)) for i in range(count)]
    g = sum(r**count * size[i] + still[i] for i in range(count)) / count + noise * (1 - r**count) / (1 - r)
    f = sum(
        (r**count - r ** (i + 1)) * size[i] + still[i] - once[i] + noise * (r ** (i + 1) - r**count) / (1 - r)
        for i in range(count - 1)
    ) / (count - 1)
    is_right = is_right and g == generalization and f == forgetting
    if (p, sigma2) == (10, Fraction(1, 9)):
        print(f"T = {count}: G by recursion {generalization}, by its form {g}; F {forgetting}, {f}")
print("proved: both closed forms are the recursion" if is_right else "not proved")
sys.exit(not is_right)
