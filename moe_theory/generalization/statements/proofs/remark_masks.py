"""Remark on sparsity awareness: linear routers do not need the factor k of its term, but others do.

Linear routers. Top-k masks of m inputs follow from the signs (>= 0 or < 0) of N = m T (T - 1)/2 forms (v_i - v_j).x,
linear in D = (T - 1) d parameters. Any D + 1 forms z have sum a z = 0 with some a > 0. Those with a > 0 are not all < 0
if the others are >= 0. So (Sauer, Shelah) Gamma(m) <= sum_{i<=D} binom(N, i) <= (e N/D)^D for N >= D, and log Gamma <=
(T - 1) d log(e m T/(2 d)) for every k.

Other routers. Let T = 2 k, H = {1, -1}, x uniform on k = 8 m points, y a fair coin. As binom(2 k, k) >= 2^k, each point
set A has its own mask mu_A. Its router uses mu_A on A, and elsewhere the first k experts, all -1. In mu_A a later
expert, which is 1, has nearly all weight. As mu_A identifies its router, d_N = 1. Labels are fitted up to one error per
pair of equal inputs. There are m/16 pairs in the mean, and m/4 or more with probability at most 1/4. Otherwise the gap
exceeds 1/5. With o(k) in place of k, (23) tends to 0 as m grows, for any constant.
"""

import sys
from fractions import Fraction
from itertools import combinations, product
from math import comb, isqrt

E, LOG_2 = Fraction(271, 100), Fraction(7, 10)  # below e, above log 2: exp(7/10) > 2
assert sum(Fraction(1, n) for n in (1, 1, 2, 6, 24, 120)) > E
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2
holds = True
for experts, size, grid in ((2, 2, 4), (3, 2, 3), (4, 1, 3), (5, 1, 2)):
    inputs = [(1, 0), (1, 1), (-1, 2), (2, -1)] if size == 2 else [(1,), (2,), (-1,), (-3,)]
    found = {k: set() for k in range(1, experts)}
    for free in product(range(-grid, grid + 1), repeat=(experts - 1) * size):
        rows = [*[free[size * j : size * j + size] for j in range(experts - 1)], (0,) * size]
        scores = [[sum(v * x for v, x in zip(row, each, strict=True)) for row in rows] for each in inputs]
        order = [sorted(range(experts), key=lambda j, s=s: (-s[j], j)) for s in scores]
        for k, seen in found.items():
            seen.add(tuple(frozenset(each[:k]) for each in order))
    forms, parameters = len(inputs) * comb(experts, 2), (experts - 1) * size
    sauer = sum(comb(forms, i) for i in range(parameters + 1))
    counts = [len(seen) for seen in found.values()]
    print(f"T = {experts}, d = {size}, m = {len(inputs)}: {min(counts)} to {max(counts)} patterns, at most {sauer}")
    holds = holds and max(counts) <= sauer <= (E * forms / parameters) ** parameters

POINTS = 4  # k. Mask 0 is the mask of the first k experts
assert comb(2 * POINTS, POINTS) > 2**POINTS
sets = list(product((0, 1), repeat=POINTS))
routers = [tuple((number + 1) * is_in for is_in in each) for number, each in enumerate(sets)]
for x, y in combinations(range(POINTS), 2):
    pairs = {(each[x], each[y]) for each in routers}
    both = [(a, b) for a, b in product(pairs, repeat=2) if a[0] != b[0] and a[1] != b[1]]
    holds = holds and not any((a[0], b[1]) in pairs and (b[0], a[1]) in pairs for a, b in both)
for drawn in product(range(POINTS), repeat=3):
    for labels in product((0, 1), repeat=3):
        wrong = min(sum((router[x] > 0) != y for x, y in zip(drawn, labels, strict=True)) for router in routers)
        holds = holds and wrong <= sum(a == b for a, b in combinations(drawn, 2))
print(f"{len(routers)} routers on {POINTS} points shatter no two, and fit labels equal for like inputs: {holds}")
for constant in (1, 10):  # (23) with sqrt(k) for k, squared, by (a + b)^2 <= 2 a^2 + 2 b^2; delta = 1/20, C = 1/2
    samples = 10**7 * constant**4
    inside = 2 * (isqrt(8 * samples) + 1) * (1 + LOG_2) + ((2 * samples).bit_length() + (80).bit_length()) * LOG_2
    bound = constant**2 * (Fraction(8, samples) + 8 * inside / (2 * samples))
    print(f"{constant} times (23) with sqrt(k) for k, m = {samples}: at most the root of {bound}, gap above 1/5")
    holds = holds and bound < Fraction(1, 25)
print("proved: no k for linear routers, and k for others" if holds else "not proved")
sys.exit(not holds)
