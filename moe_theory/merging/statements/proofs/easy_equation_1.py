"""Counterexample to Section III-C: Problem (1) with a linear reward reduces to knapsack, but it is easy.

Let rewards be linear in the weights, f(x) = sum_k r_k x_k, with one slot and one task. This problem reduces to
knapsack: take K items with values r_k and weights 1, and a knapsack of size 1. Its best item k gives the best merging
weights, x_k = 1. But a maximum over K numbers solves the problem, so it is not hard. A problem that can be reduced to a
hard problem need not be hard.

Robust: K, B and the values may be any. Every problem that is solved in polynomial time can be reduced to knapsack.

Objection: the converse reduction is meant. The paper gives none. For general rewards there is one, from maximum clique,
so the conclusion is right.
"""

import sys
from fractions import Fraction
from itertools import product

PARTS = 6  # weights in sixths
is_easy = True
for values in ((1, 3, 2), (5, 5, 0), (2, 0, 7)):
    weights = [x for x in product(range(PARTS + 1), repeat=len(values)) if sum(x) == PARTS]
    best = max(sum(Fraction(part, PARTS) * value for part, value in zip(x, values, strict=True)) for x in weights)
    knapsack = max(values)  # one item fits
    is_easy = is_easy and best == knapsack
    print(f"rewards {values}: best weights give {best}, knapsack gives {knapsack}")
print("violated: it reduces to knapsack, and one maximum solves it" if is_easy else "not violated")
sys.exit(not is_easy)
