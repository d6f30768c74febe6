"""Eqs. (29) to (32), corrected: with a given router, T linear experts have complexity at most B c sqrt(T A/m).

Let |w| <= B and |x| <= c, and let the gates a(x) be given. Given S and signs s_i, sup_f sum_i s_i f(x_i) = sum_j B
|sum_i s_i a_j(x_i) x_i|, as each expert has its own w. The mean of a norm is at most the root of the mean square. In
the mean square all products of different signs have mean 0. So E |sum_i s_i a_j(x_i) x_i| <= c sqrt(sum_i a_j(x_i)^2).

By the Cauchy-Schwarz inequality the sum over j of T such roots is at most sqrt(T sum_ij a_j(x_i)^2) = sqrt(T m A),
where A is the mean of |a(x_i)|^2. So R_S(F_a) <= B c sqrt(T A/m). At k = 1 the gates are 0 or 1, so A = 1, and at most
min(T, m) experts have inputs. The bound is then B c sqrt(min(T, m)/m). For k gates of sum 1, A is between 1/k and 1.
"""

import sys
from fractions import Fraction
from itertools import product

INPUTS = [(3, 4), (5, 0), (-4, 3), (0, -5)]  # |x| = 5
GATES = [  # a row for each input, T = 3
    [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)],
    [(Fraction(1, 2), Fraction(1, 2), 0), (0, Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 3), Fraction(2, 3), 0)] * 2,
    [(Fraction(1, 3),) * 3] * 4,
]
holds = True
for gates in (each[: len(INPUTS)] for each in GATES):
    number, experts = len(INPUTS), len(gates[0])
    signs = list(product((-1, 1), repeat=number))
    squares = Fraction(0)
    for j in range(experts):
        mean = Fraction(0)  # of |sum_i s_i a_j(x_i) x_i|^2
        for sign in signs:
            rows = list(zip(sign, gates, INPUTS, strict=True))
            mean += sum(sum(s * a[j] * x[axis] for s, a, x in rows) ** 2 for axis in range(2)) / Fraction(len(signs))
        own = sum(Fraction(a[j]) ** 2 for a in gates) * 25
        holds = holds and mean == own  # products of different signs have mean 0
        squares += own
    gate = sum(Fraction(value) ** 2 for a in gates for value in a) / number  # A
    active = max(sum(value != 0 for value in a) for a in gates)
    print(f"k = {active}: A = {gate}, the mean squares sum to {squares}, m A c^2 = {number * gate * 25}")
    holds = holds and squares == number * gate * 25 and Fraction(1, active) <= gate <= 1
print("proved: B c sqrt(T A/m)" if holds else "not proved")
sys.exit(not holds)
