"""Lemma 1, (10): two servers whose tasks end in one round; both models move, stated that one does.

(9) gives the model of the task that ends and (10) leaves all others as they are. Let a task of two rounds go to server
1 and the next, of one round, to server 2: both end together, (9) moves both, and (10) of either says that the other
stays. One feature, one sample X = 1, y = 1, models 0.

Robust: features, samples, the number of servers; delays that differ by one round, which the model is made for.

Objection: (10) speaks of the servers that have not this task. Read so it holds, and with one task that ends a round as
printed; X'X must have an inverse too, which s > p or samples without noise deny: these are the clauses.
"""

import sys
from fractions import Fraction

models = [Fraction(0), Fraction(0)]
ends = [1 + 2, 2 + 1]  # the round of arrival and the delay
before = list(models)
for server in (0, 1):
    models[server] += (1 - models[server]) / Fraction(1)  # (9): X (X'X)^-1 (y - X'w)
moved = sum(after != first for after, first in zip(models, before, strict=True))
is_violated = ends[0] == ends[1] and moved > 1
print(f"models that move in round {ends[0]}: {moved}; stated {1}")
print("violated: two models move" if is_violated else "not violated")
sys.exit(not is_violated)
