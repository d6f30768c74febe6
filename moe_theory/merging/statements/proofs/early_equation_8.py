"""Eq. (8), first inequality: slot 1, rho = 1/2, C = nu_1 = 1, T = 81; one candidate, and it says less than one.

In slot 1 the tree is its root, [0, 1]^K, and has one candidate: N_1 = 1. The bound at t = 1 falls as the horizon T
grows, and is below 1 already at T = 81: (8) says at most 2^(1/(1 - rho)) nu_1^2/(C^2 log(T/delta)) = 4/log(T/delta),
and log 81 = 4 log 3 > 4, as e < 3; delta <= 1 makes the logarithm larger still. At the paper's T = 10,000 it is below
1/2. (7) at t has log(t/delta), which (8) replaces by log(T/delta), though it is the larger one: t <= T.

Robust: for every rho, C, nu_1 and delta <= 1 the right side at a fixed t tends to 0 as T grows, and there is always a
candidate. So no constant in front helps.

Objection: at t = T it is Lemma 1, and earlier slots matter less. But (8) says it at every t, and is how Lemma 1 is
derived: N_t at t = T is bounded through 2 to the power of (7), which is a power of T and not 2^(1/(1 - rho)) times T.
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
# log_below is 4, and log T is above it, as e^4 < T strictly: the right side is below `allowed`
print(f"candidates in slot 1: {candidates}")
print(f"(8) says fewer than {allowed}")
violated = e_above**log_below < SLOTS and candidates >= allowed
print("violated: there is one more" if violated else "not violated")
sys.exit(not violated)
