"""Lemma 10 holds: convex combinations that are the same for all inputs do not change the complexity.

Given S and the signs, let Y(h) = (1/m) sum_i s_i h(x_i). The inner sum of (42) is sum_j lambda_j Y(h_j), a weighted
mean of T numbers. This mean is at most the largest of the numbers, and so at most sup_h Y(h). With lambda = (1, 0, ...,
0) it comes as near to sup_h Y(h) as we like. So the two suprema agree for every S and all signs, and so do their means.
This makes (42) equal to R_m(H) for every T >= 1. The proof uses lambda >= 0 with sum 1, and the same lambda and h_j for
all i. The step (31) does not satisfy this.
"""

import sys
from itertools import combinations, product

SAMPLES, EXPERTS, PARTS = 2, 2, 4  # m, T, and lambda in quarters
signs = list(product((-1, 1), repeat=SAMPLES))
weights = [each for each in product(range(PARTS + 1), repeat=EXPERTS) if sum(each) == PARTS]
holds, tried = True, 0
for size in (1, 2, 3):
    for members in combinations(product((-1, 0, 2), repeat=SAMPLES), size):  # by input of S
        for sign in signs:
            sums = [sum(s * t for s, t in zip(sign, h, strict=True)) for h in members]
            chosen = product(weights, product(sums, repeat=EXPERTS))
            mixed = max(sum(w * y for w, y in zip(each, some, strict=True)) for each, some in chosen)
            holds = holds and mixed == PARTS * max(sums)
            tried += 1
print(f"{tried} classes and sign vectors, T = {EXPERTS}: the largest mixture is the largest mean: {holds}")
print("proved: Lemma 10" if holds else "not proved")
sys.exit(not holds)
