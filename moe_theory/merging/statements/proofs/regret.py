"""The definition of the regret is right with the task mix inside the argmax.

In slot t Problem (1) earns psi_t' r_t = psi_t' f^*(x_t), and f_1^*(x) is psi_t' f^*(x). So x_t^* = argmax psi_t' f^*(x)
is the best of all weights by definition. Hence R_t = f_1^*(x_t^*) - f_1^*(x_t) is not negative, for any x_t. The
printed psi_t argmax f^* is a mean of the tasks' best weights. It has this property only if it happens to be such an
argmax, as for a single task, or for tasks that share their best weights.
"""

import sys
from fractions import Fraction
from itertools import product

PARTS = 4
feasible = [(Fraction(n, PARTS), 1 - Fraction(n, PARTS)) for n in range(PARTS + 1)]
mixes = [(Fraction(n, 5), 1 - Fraction(n, 5)) for n in range(6)]
holds, shared, tried = True, True, 0
for tables in product(product(range(3), repeat=len(feasible)), [(0, 1, 2, 1, 0), (2, 2, 0, 1, 0)]):  # by task
    for mix in mixes:
        earned = [mix[0] * one + mix[1] * two for one, two in zip(*tables, strict=True)]
        best = earned.index(max(earned))
        holds = holds and all(earned[best] - each >= 0 for each in earned)
        tops = [table.index(max(table)) for table in tables]
        shared = shared and (tops[0] != tops[1] or earned[tops[0]] == earned[best])
    tried += 1
print(f"{tried} tables of rewards, {len(mixes)} mixes: no slot's regret is negative: {holds}")
print(f"if the tasks share their best weights, these are best for every mix: {shared}")
print("proved: with the mix inside" if holds and shared else "not proved")
sys.exit(not (holds and shared))
