"""Theorem 1, Eq. (8): one fixed router, T = 10 m^2 experts; the gap is 1/2, and it says o(1).

With many more cells than samples each sample has an expert of its own, which repeats its label, a fair coin: no error
on the sample, and 1/2 in truth. The router sends x, uniform on [0, 1], to the expert of its cell, one of T equal ones,
k = 1; H = {+1, -1}. y is a fair coin, the loss clip((1 - y f)/2, 0, 1), C = 1/2, so that every f has L_D = 1/2. If the
m inputs are in m cells, L_S = 0: a gap of 1/2. At T = 10 m^2 two inputs share a cell with probability m^2/(2T) = 1/20
at most. R_m(H) = E|sum of m signs|/m is at most 1/sqrt(m). A single router shatters nothing: d_N = 0, of its masks and
of the whole router; grant it 1. With K for the constant of (8)'s O(), (8) is at most K (2/sqrt(m) + 2 sqrt((2 + 2 log T
+ log(2m) + log(4/delta))/(2m))), which tends to 0 at T = 10 m^2: from some m on it is below 1/2.

Robust: every constant K in O(), every delta below 19/20 (below 1, with more cells), every d_N that is granted; with
d_N = 0 the bound does not depend on T at all. The classifier is the one that (2) finds. With a learned linear router it
fails too: the instance that disproves Corollary 4.

Objection: nobody has more experts than samples. With m = T^2 samples the cells' majorities have a mean gap of
T E|sum of n signs|/(2m), n binomial, at least sqrt(T/m)/4, and a sample moves the gap by 1/m at most, so that it is
near its mean; (8) is of order sqrt(log(T)/m). The proof loses all experts but one from (30) to (31).
"""

import sys
from fractions import Fraction

LOG_2 = Fraction(7, 10)  # above log 2, as the first terms of exp(7/10) show
DIMENSION, LIPSCHITZ, DELTA = 1, Fraction(1, 2), Fraction(1, 20)
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2


def log_above(number: int) -> Fraction:
    return number.bit_length() * LOG_2


def inside(samples: int, cells: int) -> Fraction:
    """At least 2 k d_N (1 + log(T/k)) + d_N log(2m) + log(4/delta), at k = 1."""
    return DIMENSION * (2 + 2 * log_above(cells) + log_above(2 * samples)) + log_above(int(4 / DELTA))


def most_squared(samples: int, cells: int) -> Fraction:
    """At least the square of (8) without its K: (a + b)^2 <= 2 a^2 + 2 b^2, a = 4 C / sqrt(m)."""
    return 2 * (4 * LIPSCHITZ) ** 2 / samples + 2 * 4 * inside(samples, cells) / (2 * samples)


violated = True
for constant in (1, 1000):
    samples = 10**4 * constant**3
    cells = 10 * samples**2
    chance = 1 - Fraction(samples * (samples - 1), 2 * cells)  # of a gap of 1/2, at least
    bound = constant**2 * most_squared(samples, cells)
    print(f"K = {constant}, m = {samples}: gap 1/2, its square {Fraction(1, 4)}, with probability {chance} or more")
    print(f"the square of (8) is at most {bound}, which may fail with probability {DELTA}")
    violated = violated and bound < Fraction(1, 4) and chance > DELTA
cells = 2**40  # with T^2 samples: sqrt(T/m)/4 against (8)
print(
    f"T = {cells}, m = T^2, K = 1000: {cells}/16 against {1000**2 * most_squared(cells**2, cells) * cells**2}, over m"
)
violated = violated and Fraction(cells, 16) > 1000**2 * most_squared(cells**2, cells) * cells**2
print("violated: the gap is above (8)" if violated else "not violated")
sys.exit(not violated)
