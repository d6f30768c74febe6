"""Counterexample to Lemma 1, (10): if two tasks end in one round, two models change, not one as the lemma says.

(9) gives the model of the task that ends, and (10) leaves all other models as they are. Let a task of two rounds go to
server 1, and the next task, of one round, to server 2. Both end together, and (9) changes both models. But (10) for
either task says that the other server's model stays. Take two features, X = (1, 0)', y = sigma_0, and models 0.

Robust: features, samples and the number of servers may be any. The paper allows delays that differ by one round.

Objection: (10) is about the servers that do not have this task. Then it holds. If one task ends per round, it holds as
printed. X'X must also have an inverse. It has none if s > p, or if several samples have no noise.
"""

import sys

SAMPLE, OUTPUT = (1, 0), 1  # in units of sigma_0
models = [(0, 0), (0, 0)]
ends = [1 + 2, 2 + 1]  # the round of arrival and the delay
moved = 0
for server, model in enumerate(models):
    left = OUTPUT - sum(x * w for x, w in zip(SAMPLE, model, strict=True))  # (9): X (X'X)^-1 (y - X'w), X'X = 1
    models[server] = tuple(w + x * left for x, w in zip(SAMPLE, model, strict=True))
    moved += models[server] != model
is_violated = ends[0] == ends[1] and moved > 1
print(f"models that move in round {ends[0]}: {moved}; stated 1")
print("violated: two models move" if is_violated else "not violated")
sys.exit(not is_violated)
