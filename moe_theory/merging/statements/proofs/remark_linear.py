"""Counterexample to the remark on Theorem 1: (6) exceeds T, but d sqrt(T) log T is O(T^(3/4) log T) at rho = 0.3.

The bound (6) ends in + T + 1, and its other terms are not negative. So it is O(d sqrt(T) log T) only if the effective
dimension d grows at least like sqrt(T)/log T. At the paper's rho = 0.3, d is O(T^(1/4)).

The dimension d is log det(I + M/lambda)/log(1 + T N/lambda), with the NTK matrix M of all candidates X_T. Let D be the
number of different candidates, and a the largest diagonal entry of M. M has rank at most D and trace at most a |X_T|,
and |X_T| <= T N from some T on, by Lemma 1. So log det(I + M/lambda) <= D log(1 + a T N/lambda), and d <= D max(1, a).
A node has one candidate. Let c = (C^2/nu_1^2) log(2/delta) > 0. After the root, a split at depth h takes at least c
rho^(-2h) pulls of its own. There are at most 2^h splits above depth h, at most T rho^(2h)/c below, and two nodes per
split. As rho^2 <= 1/8, h = floor(log_2(T)/4) gives D <= 1 + 2 T^(1/4) + 16 T^(1/4)/c. If d does not grow, T + 1 exceeds
the order even more.

Robust: the proof allows any constant K, C, nu_1, lambda, v, S, J and delta below 1, any picks of leaves, any kernel
with a bounded diagonal, and any rho up to 2^(-3/2).

Objection: T + 1 came from 2 T Gamma-bar and the sum of nu_1 rho^h, which are small. But (6) should then contain them.
With these thresholds the sum can be of the order T^a, a > 1/2.
"""

import sys
from fractions import Fraction
from math import isqrt

LOG_2 = Fraction(7, 10)  # above log 2, as the first terms of exp(7/10) show
RATIO = Fraction(3, 10)  # rho
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2


def nodes(slots: int, cost: Fraction) -> Fraction:
    """Return the most nodes after T slots if a split at depth h >= 1 takes cost rho^(-2h) pulls, the root's none."""
    splits, left, depth = Fraction(1), Fraction(slots), 1
    while left > 0:
        here = min(Fraction(2**depth), left / max(1, cost / RATIO ** (2 * depth)))
        splits, left, depth = splits + here, left - here * max(1, cost / RATIO ** (2 * depth)), depth + 1
    return 1 + 2 * splits


violated = 8 * RATIO**2 <= 1
for constant, power in ((1, 80), (1000, 160)):
    slots, cost = 2**power, Fraction(1, constant)  # T, and c = A log(2/delta)
    root = isqrt(isqrt(slots))
    most = 1 + 2 * root + 16 * root / cost
    side = constant * most * isqrt(slots) * (power * LOG_2)  # K d sqrt(T) log T, with d <= D
    print(f"K = {constant}, T = 2^{power}: (6) is at least {slots + 1}; K d sqrt(T) log T is at most {side}")
    violated = violated and nodes(slots, cost) <= most and slots + 1 > side
print("violated: (6) is above it" if violated else "not violated")
sys.exit(not violated)
