"""The remark on Theorem 1: (6) ends in + T + 1, and at rho = 0.3 its d is O(T^(1/4)).

No other term of (6) is negative: it is at least T + 1. For a given d that is above K d sqrt(T) log T from some T on. d
may grow with T, but not fast enough at the paper's rho = 0.3. M is of rank D at most, D the number of different
candidates, and of trace a |X_T| at most; from some T on |X_T| <= T N, by Lemma 1. So log det(I + M/lambda) <= D log(1 +
a T N/lambda): d <= D max(1, a). Each node has one candidate, found by optimization. Let A = C^2/nu_1^2, and c =
A log(2/delta) > 0: after the root a split at depth h takes c rho^(-2h) pulls of its own or more. There are at most 2^h
splits above depth h, and T rho^(2h)/c below, and two nodes a split. As rho^2 <= 1/8, h = floor(log_2(T)/4) makes D at
most 1 + 2 T^(1/4) + 16 T^(1/4)/c. So d sqrt(T) log T is O(T^(3/4) log T), and T + 1 is not O() of it.

Robust: every constant K, and any C, nu_1, lambda, nu, S, J, delta below 1, any picks of leaves, any kernel with a
bounded diagonal; any rho up to 2^(-3/2).

Objection: T + 1 came from 2 T Gamma-bar and the sum of nu_1 rho^h, which are small. Then (6) should have them: the
first is small for wide networks, and the second, at these thresholds, can be of the order T^a, a > 1/2.
"""

import sys
from fractions import Fraction
from math import isqrt

LOG_2 = Fraction(7, 10)  # above log 2, as the first terms of exp(7/10) show
RATIO = Fraction(3, 10)  # rho
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2


def nodes(slots: int, cost: Fraction) -> Fraction:
    """The most nodes after T slots if a split at depth h >= 1 takes cost rho^(-2h) pulls and the root's none."""
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
