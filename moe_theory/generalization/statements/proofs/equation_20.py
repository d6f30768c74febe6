"""Eqs. (18) to (20) hold with m in place of 2m in the exponent, for a loss in [0, 1] and eps/2 >= E phi.

Here phi = sup (L_S - L_S') depends on 2m independent samples, m of S and m of S'. If one sample is replaced, L_S or
L_S' changes by at most 1/m for every f, as the loss is in [0, 1]. So phi does too. McDiarmid's inequality is P(phi - E
phi >= x) <= exp(-2 x^2 / sum of squared differences) for x >= 0. The sum is 2m (1/m)^2 = 2/m, which gives exp(-m x^2).

Proof of McDiarmid's inequality. phi - E phi is a sum of 2m differences E[phi | first i] - E[phi | first i - 1]. Given
the earlier samples, each difference z is within an interval of length 1/m. By Hoeffding's lemma (proved with Lemma 7),
E exp(s z) is at most exp(s^2 / (8 m^2)). By Markov's inequality, the product gives exp(-s x + 2m s^2/(8 m^2)), which is
exp(-m x^2) at s = 2 m x. For x < 0 the probability may be 1, but (20) bounds it by less than 1.
"""

import sys
from fractions import Fraction
from itertools import product
from math import comb, factorial

import sympy

m, x = sympy.symbols("m x", positive=True)
s = 2 * m * x
steps = [2 * x**2 / (2 * m * (1 / m) ** 2) - m * x**2, -s * x + 2 * m * s**2 * (1 / m) ** 2 / 8 + m * x**2]
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"both exponents are -m x^2: {holds}")

SAMPLES, experts = 2, list(product((1, -1), repeat=2))  # two cells, an expert +1 or -1 in each
points = list(product(range(2), (1, -1)))


def phi(drawn: tuple[tuple[int, int], ...]) -> Fraction:
    lost = [[int(y != h[j]) for j, y in drawn] for h in experts]
    return Fraction(max(sum(each[:SAMPLES]) - sum(each[SAMPLES:]) for each in lost), SAMPLES)


moved = 0
for drawn in product(points, repeat=2 * SAMPLES):
    for place, other in product(range(2 * SAMPLES), points):
        moved = max(moved, abs(phi(drawn) - phi((*drawn[:place], other, *drawn[place + 1 :]))))
print(f"two cells, m = {SAMPLES}: another sample moves phi by {moved} at most, which is to be 1/{SAMPLES}")
holds = holds and moved <= Fraction(1, SAMPLES)

for samples in (1, 4, 10, 30):  # a fair coin: the exact tail against exp(-m x^2)
    for excess in range(samples + 1):
        tail = Fraction(sum(comb(2 * samples, n) for n in range(samples + excess, 2 * samples + 1)), 4**samples)
        power = Fraction(excess**2, samples)
        above = sum(power**n / factorial(n) for n in range(60)) + Fraction(2) * power**60 / factorial(60)
        holds = holds and power < 31 and tail * above <= 1  # the rest of the series is below twice its first term
print("a fair coin, m = 1, 4, 10 and 30, every x: the exact tail is below exp(-m x^2)")
print("proved: (20) with half the exponent" if holds else "not proved")
sys.exit(not holds)
