"""Lemma 5, corrected: the bound has the complexity of all models with the given mask, not of one expert.

For a given mask, phi is the supremum of L_S - L_S' over the class of losses l o F_mu. By Lemma 8 its mean is at most 2
R_m(l o F_mu). By Lemma 9 this is at most 2 C R_m(F_mu). These are (26) to (28) of the paper. We leave out the step to
one expert, (29) to (32). At k = 1 the class F_mu is a product over the experts, each with its own inputs. Then
R_S(F_mu) = sum_j (m_j/m) R_{S_j}(H), where expert j has m_j inputs. The program computes both sides for two cells, an
expert +1 or -1 in each, and one to three samples. It counts every draw.
"""

import sys
from fractions import Fraction
from itertools import product

CELLS, LIPSCHITZ = 2, Fraction(1, 2)
EXPERTS = list(product((-1, 1), repeat=CELLS))
POINTS = list(product(range(CELLS), (-1, 1)))  # a cell, and a label or a sign
holds = True
for samples in (1, 2, 3):
    draws = list(product(POINTS, repeat=samples))
    sums = [[sum(y * h[j] for j, y in drawn) for h in EXPERTS] for drawn in draws]
    # L_S = 1/2 - sum/(2m). The signed sums of f have the same distribution, as a sign is as likely as a label
    phi = Fraction(
        sum(max(b - a for a, b in zip(one, two, strict=True)) for one in sums for two in sums),
        2 * samples * len(draws) ** 2,
    )
    masked = Fraction(sum(map(max, sums)), samples * len(draws))
    alone = sum(abs(sum(y for j, y in drawn if j == cell)) for drawn in draws for cell in range(CELLS))
    print(f"m = {samples}: the mean of phi is {phi}, 2 C R_m(F_mu) is {2 * LIPSCHITZ * masked}")
    holds = holds and phi <= 2 * LIPSCHITZ * masked and masked == Fraction(alone, samples * len(draws))
print("proved: with the masked class" if holds else "not proved")
sys.exit(not holds)
