"""Counterexample to Lemmas 1 and 2: at C = 4, T = 2 they allow less than 1/2 candidate and a negative depth.

The tree begins as its root [0, 1]^K, which has a candidate, so N_t >= 1 and the depth H(t) >= 0 from the first slot on.
A large C makes both bounds smaller than that. Let C = 4, nu_1 = 1, rho = delta = 1/2 and T = 2. The common factor of
the bounds is T nu_1^2/(C^2 log(T/delta)) = 2/(16 log 4) < 1/8, as log 4 > 1. So (5) allows fewer than 2^2/8 = 1/2
candidates. And (7) allows a depth of at most 2 log(1/8), which is below 0.

Robust: the proof allows any nu_1, rho, delta <= 1 and T. As C grows, (5) falls to 0 and (7) falls below 0, but the root
remains. At T = 10,000, nu_1 = delta = 1 and rho = 0.3 this happens from C = 55 on for (5), and from C = 33 on for (7).

Objection: C is fixed and T is large. Then both lemmas hold from some T on, but neither says so, and (2) has no bound on
C. Where (5) is at least 2, and (7) at least 1, the lemmas are proved.
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
