"""Lemma 7, with the true risk in (34): a loss of 1,000 with probability 1/100; the chance is 1, and it says .0198.

As printed both sides are gaps between the two samples, and nothing is said of the true risk, which (10) needs on the
left. So meant, the lemma lacks a hypothesis: one function, m = 1, eps = 9.99, a loss of 1,000 with probability 1/100
and else 0. L_D = 10, and L_S is 0 or 1,000: the gap is 10 or 990, above eps for sure, and 1 - 2 exp(-eps^2/2) is near
1. L_S and L_S' are more than eps/2 apart if one loss is 1,000 and the other 0: a chance of 2 (1/100) (99/100) = .0198.

Robust: m = 1 for the napkin; for any m a loss that is rarer still does the same.

Objection: Theorem 1 has the loss in [0, 1]. The lemma is stated apart from it, for any; with it the lemma is proved.
"""

import sys
from fractions import Fraction

CHANCE, LOSS, GAP = Fraction(1, 100), 1000, Fraction(999, 100)
risk = CHANCE * LOSS
law = {0: 1 - CHANCE, LOSS: CHANCE}
left = sum(chance for loss, chance in law.items() if abs(loss - risk) > GAP)
right = sum(p * q for one, p in law.items() for other, q in law.items() if abs(one - other) > GAP / 2)
factor = 1 - 2 * Fraction(1, 2**49)  # at most 1 - 2 exp(-eps^2/2): e > 2 and eps^2/2 > 49
assert GAP**2 / 2 > 49
print(f"the chance of a gap is {left}, times a factor of {factor} or more; of half of it between two samples {right}")
violated = factor * left > right
print("violated: ghost sampling fails" if violated else "not violated")
sys.exit(not violated)
