"""Remark on sparsity awareness, corrected: T <= m fixed cells with an expert +1 or -1 in each cost sqrt(T).

R_m is (T/m) E|sum of n signs|, with n binomial of mean z = m/T. Upper bound: E|sum of n signs| <= sqrt(n) and E sqrt(n)
<= sqrt(z) give sqrt(T/m). Lower bound: E|sum of n signs| >= sqrt(n/2). For n = 2h and 2h - 1 it is 2h binom(2h, h)/4^h,
and 4h (binom(2h, h)/4^h)^2 >= 1 by induction, as (2h + 1)^2 (h + 1) >= 4h (h + 1)^2. sqrt(y) >= (3y - y^2)/2: with r =
sqrt(y) the difference is r (1 - r)^2 (1 + r/2). With y = n/z and E n^2 <= z^2 + z, E sqrt(n) >= sqrt(z)(1 - 1/(2z)). So
sqrt(T/(2m)) (1 - T/(2m)) <= R_m <= sqrt(T/m). One expert has order 1/sqrt(m).

Other classes: n R_S' on the n inputs S' of a cell is at most m R_S of one expert, as other signs have mean 0. So T
experts have at most T times the complexity of one. Let experts take any values +1 and -1 in one cell and 0 elsewhere,
and no input occur twice. One expert has E max n/m <= 1/T + 1/sqrt(m), as sum E (n - m/T)^2 <= m. T experts fit all
signs, T/(1 + T/sqrt(m)) times as much or more.
"""

import sys
from fractions import Fraction
from itertools import combinations, product
from math import comb

import sympy

h, r, z = sympy.symbols("h r z", positive=True)
steps = [
    (2 * h + 1) ** 2 * (h + 1) - 4 * h * (h + 1) ** 2 - (h + 1),
    r - (3 * r**2 - r**4) / 2 - r * (1 - r) ** 2 * (1 + r / 2),
    (3 - (z**2 + z) / z**2) / 2 - (1 - 1 / (2 * z)),
]
holds = all(sympy.expand(step) == 0 for step in steps)
print(f"the induction, the parabola under the root, and its mean: {holds}")


def mean_size(signs: int) -> Fraction:
    """Return E|sum of n signs| for n = `signs`."""
    return Fraction(sum(comb(signs, ups) * abs(2 * ups - signs) for ups in range(signs + 1)), 2**signs)


sizes = [mean_size(n) for n in range(65)]
for half in range(1, 33):
    closed = Fraction(2 * half * comb(2 * half, half), 4**half)
    holds = holds and sizes[2 * half] == sizes[2 * half - 1] == closed and closed**2 >= half
for cells, samples in ((1, 16), (2, 16), (4, 16), (8, 32), (16, 64)):
    chances = [Fraction(comb(samples, n) * (cells - 1) ** (samples - n), cells**samples) for n in range(samples + 1)]
    found = Fraction(cells, samples) * sum(chance * sizes[n] for n, chance in enumerate(chances))
    least = Fraction(cells, 2 * samples) * (1 - Fraction(cells, 2 * samples)) ** 2
    holds = holds and least <= found**2 <= Fraction(cells, samples)
    if samples == 16:
        print(f"T = {cells}, m = {samples}: {least} <= R_m^2 = {found**2} <= {Fraction(cells, samples)}")
SIGNS = list(product((-1, 1), repeat=3))  # T = 2, m = 3: two inputs in the first cell
for one, two in combinations(product((-1, 0, 2), repeat=3), 2):
    sums = [[[s * h for s, h in zip(sign, each, strict=True)] for each in (one, two)] for sign in SIGNS]
    parts = sum(max(sum(each[:2]) for each in pair) + max(each[2] for each in pair) for pair in sums)
    holds = holds and parts <= 2 * sum(max(map(sum, pair)) for pair in sums)
for cells, samples in ((2, 8), (3, 6), (4, 5)):
    most = Fraction(sum(max(map(x.count, x)) for x in product(range(cells), repeat=samples)), cells**samples)
    holds = holds and (most - Fraction(samples, cells)) ** 2 <= samples
    print(f"T = {cells}, m = {samples}: any signs in one cell, R_m = {most / samples}, and in each cell 1: {holds}")
print("proved: the square root of T, and T for other classes" if holds else "not proved")
sys.exit(not holds)
