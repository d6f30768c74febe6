"""Lemmas 1 and 2, Eqs. (5), (7): C = 4, two slots; one candidate, stated below 1/2, and depth 0, stated below 0.

The tree begins as its root, [0, 1]^K, which has a candidate, so that from the first slot on N_t >= 1 and the depth H(t)
>= 0; a large C makes both bounds smaller than that. With C = 4, nu_1 = 1, rho = delta = 1/2, T = 2 the bounds' common
factor is T nu_1^2/(C^2 log(T/delta)) = 2/(16 log 4) < 1/8, as log 4 > 1: (5) allows fewer than 2^2/8 = 1/2 candidates,
and (7) a depth of 2 log(1/8) at most, which is below 0.

Robust: any nu_1, rho, delta <= 1 and T: as C grows (5) falls to 0 and (7) below 0, while the root is there. At
T = 10,000, nu_1 = delta = 1 and rho = 0.3 it happens from C = 55 on for (5), and from C = 33 on for (7).

Objection: C is fixed and T large. Then both lemmas hold, from a T on that depends on C; neither says so, and (2) has C
without a bound. Where (5) is at least 2, and (7) at least 1, they are proved: the status is "holds amended".
"""

import sys
from fractions import Fraction
from math import factorial

CONSTANT, SMOOTHNESS, RATIO, DELTA, SLOTS = 4, 1, Fraction(1, 2), Fraction(1, 2), 2  # C, nu_1, rho, delta, T
ROOT, DEPTH = [(0, 1)] * 2, 0  # K = 2

e_above = sum(Fraction(1, factorial(n)) for n in range(10)) + Fraction(2, factorial(10))
log_below = max(n for n in range(100) if e_above**n < SLOTS / DELTA)  # an integer below log(T/delta)
inner = Fraction(SLOTS * SMOOTHNESS**2, CONSTANT**2) / log_below  # above T nu_1^2 / (C^2 log(T/delta))
power = 1 / (1 - RATIO)
assert power.denominator == 1
candidates = int(sum(low for low, _ in ROOT) <= 1 <= sum(high for _, high in ROOT))
print(f"candidates in slot 1: {candidates}; (5) says fewer than {2**power.numerator * inner}")
print(f"depth in slot 1: {DEPTH}; (7) says {power} times the logarithm of less than {inner}")
violated = candidates >= 2**power.numerator * inner and inner < 1 and DEPTH >= 0
print("violated: both are exceeded" if violated else "not violated")
sys.exit(not violated)
