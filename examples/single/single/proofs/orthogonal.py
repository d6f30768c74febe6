"""Orthogonal models of length 1: E F_T is the mean of 2 (1 - r)(1 - r^(T - i)) + r^i - r^T + N (r^i - r^T)/(1 - r),
positive.

All distances are 2, so that the sums in the closed form are geometric. Every term is at least 0 as 0 < r < 1 and i < T,
and for i < T the first is positive.

Robust: any length, which is a factor of all but the noise.

Objection: only as many tasks as features are orthogonal.
"""

import itertools
import sys
from fractions import Fraction

is_right = True
for (p, n), noise, count in itertools.product(((4, 2), (10, 3), (50, 48)), (Fraction(0), Fraction(3, 7)), (2, 3, 6)):
    r, total, form = 1 - Fraction(n, p), Fraction(0), Fraction(0)
    for i in range(1, count):
        found, then = Fraction(1), Fraction(0)
        for t in range(1, count + 1):
            found = r * found + (1 - r) * (0 if t == i else 2) + noise
            if t == i:
                then = found
        total += found - then
        form += 2 * (1 - r) * (1 - r ** (count - i)) + (r**i - r**count) * (1 + noise / (1 - r))
    is_right = is_right and total == form > 0
    if (p, noise) == (10, 0):
        print(f"T = {count}: by recursion {total / (count - 1)}, by its form {form / (count - 1)}")
print("proved: forgetting is positive" if is_right else "not proved")
sys.exit(not is_right)
