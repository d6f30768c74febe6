"""Counterexample to Eq. (8), first inequality: slot 1 has one candidate, but at T = 81 the bound is below 1.

Let rho = 1/2, C = nu_1 = 1 and T = 81. In slot 1 the tree is its root [0, 1]^K, which has one candidate, so N_1 = 1. At
t = 1 the inequality (8) allows at most 2^(1/(1 - rho)) nu_1^2/(C^2 log(T/delta)) = 4/log(T/delta). As e < 3, log 81 = 4
log 3 is above 4. If delta is below 1, the logarithm is larger still. So the bound is below 1. It falls as the horizon T
grows, and at the paper's T = 10,000 it is below 1/2. The error is in one step of the proof: (8) replaces log(t/delta)
in (7) by log(T/delta), which is larger because t <= T.

Robust: the argument works for every rho, C, nu_1 and delta <= 1. The right side at a fixed t tends to 0 as T grows, and
there is always a candidate. So no constant factor helps.

Objection: at t = T, (8) is Lemma 1, and earlier slots matter less. But (8) is stated for every t, and Lemma 1 is
derived from it. The derivation bounds N_t at t = T by 2 to the power of (7), a power of T, not 2^(1/(1 - rho)) times T.
"""

import sys
from fractions import Fraction
from math import factorial

SLOTS, RATIO, CONSTANT, SMOOTHNESS = 81, Fraction(1, 2), 1, 1  # T, rho, C, nu_1; delta = 1, which is best for (8)
ROOT = [[0, 1]] * 2  # K = 2

e_above = sum(Fraction(1, factorial(n)) for n in range(10)) + Fraction(2, factorial(10))
log_below = max(n for n in range(SLOTS) if e_above**n < SLOTS)  # an integer below log T
candidates = int(sum(low for low, _ in ROOT) <= 1 <= sum(high for _, high in ROOT))  # of the root, which is feasible
power = 1 / (1 - RATIO)
assert power.denominator == 1
allowed = 2**power.numerator * Fraction(SMOOTHNESS**2, CONSTANT**2) / log_below
# log_below is 4. As e^4 < T, log T is above 4, and the right side is below `allowed`
print(f"candidates in slot 1: {candidates}")
print(f"(8) says fewer than {allowed}")
violated = e_above**log_below < SLOTS and candidates >= allowed
print("violated: there is one more" if violated else "not violated")
sys.exit(not violated)
