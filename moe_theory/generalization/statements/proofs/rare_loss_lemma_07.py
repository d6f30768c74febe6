"""Counterexample to Lemma 7, with the true risk in (34): a gap is certain, but the lemma says at most .0198.

As printed both sides are gaps between the two samples, and the lemma says nothing about the true risk, which (10) needs
on the left. With the true risk the lemma lacks a hypothesis. Take one function, m = 1 and eps = 9.99. The loss is 1,000
with probability 1/100 and otherwise 0.

L_D = 10, and L_S is 0 or 1,000. So the gap is 10 or 990, always above eps, and 1 - 2 exp(-eps^2/2) is near 1. L_S and
L_S' are more than eps/2 apart if one loss is 1,000 and the other 0. This has probability 2 (1/100) (99/100) = .0198.

Robust: any m, with a loss that is rarer still. We take m = 1 for simplicity.

Objection: Theorem 1 has the loss in [0, 1]. The lemma is stated separately, for any loss. With a loss in [0, 1] it is
proved.
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
