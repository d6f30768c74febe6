"""Counterexample to Assumption 2 at K = V: no weights that sum to 1 have both norm 1 and equal halves.

Candidates are weights x >= 0 that sum to 1, by (1a). They have norm 1 only at the corners of the simplex, with all
weight on one expert. This is because 1 - |x|^2 = sum_k x_k (1 - x_k) is 0 only if every x_k is 0 or 1. Candidates have
equal halves, [x]_j = [x]_(j + V/2) for j <= V/2, only away from the corners. With V = K, as in the experiments, equal
halves would repeat a corner's entry 1, so the sum would be 2. So no candidate of Algorithm 1 satisfies the assumption.

The condition M >= lambda_0 I > 0 on the NTK matrix M fails too. A leaf that is not split is a candidate of two slots in
a row, and two equal rows of M make its smallest eigenvalue 0.

Robust: the proof allows any even K = V, tree and B. If symmetry is dropped, one candidate that is no corner is enough.
With B >= 2 and more than K active leaves there is such a candidate, because each corner is in one leaf. At B = 1 all
candidates are corners.

Objection: norm and symmetry are meant for x divided by its norm and written twice, as the text below says. With this
reading, and each candidate counted once, the assumption holds and is proved.
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, PARTS = 4, 8  # K = V, and weights in eighths
candidates = [x for x in product(range(PARTS + 1), repeat=EXPERTS) if sum(x) == PARTS]
unit = [x for x in candidates if sum(part**2 for part in x) == PARTS**2]
symmetric = [x for x in candidates if all(x[j] == x[j + EXPERTS // 2] for j in range(EXPERTS // 2))]
both = set(unit) & set(symmetric)
least = min(1 - sum(Fraction(part, PARTS) ** 2 for part in x) for x in symmetric)
print(f"of {len(candidates)} weights {len(unit)} have norm 1 and {len(symmetric)} are symmetric; both: {len(both)}")
print(f"1 - |x|^2 of symmetric weights, to be 0, is at least {least}")
kernel = [[1, 1], [1, 1]]  # M of a candidate of two slots in a row, up to a factor
determinant = kernel[0][0] * kernel[1][1] - kernel[0][1] * kernel[1][0]
print(f"determinant of M on a candidate that stays, to be above 0: {determinant}")
violated = not both and least > 0 and determinant == 0
print("violated: no candidate is as assumed" if violated else "not violated")
sys.exit(not violated)
