"""Lemma 9, Eq. (34), holds if every column is isotropic and redrawn for each task.

Suppose that the span of X_t is uniformly random and redrawn for each arrival, at any server. By symmetry and by the
trace, E P_t = (s/p) I. So E|P_t x|^2 = (s/p) |x|^2 for any x that was fixed before.

As in the paper's proof, a task counts as learned when it arrives. For a task i of a server let e_l be the server's
model minus w_i after l of its tasks. Then e_l = (I - P) e_{l-1} + P (w_l - w_i), a sum of two orthogonal parts. So
E|e_l|^2 = r E|e_{l-1}|^2 + (1 - r) |w_l - w_i|^2 with r = 1 - s/p. As |e_0| = |w_i|, induction gives (34).

Caveat: routing ignores the features. Algorithm 1 uses features, but only through outputs that are small relative to r
in the limit.
"""

import sys
from fractions import Fraction
from itertools import combinations, product

FEATURES, SAMPLES = 4, 2  # p, s
RATIO = 1 - Fraction(SAMPLES, FEATURES)
SPANS = list(combinations(range(FEATURES), SAMPLES))  # of axes: E P = (s/p) I, the only property used
TRUTHS = [(1, 0, 2, -1), (0, 3, 1, 1), (-2, 1, 0, 1)]  # of the tasks of one server
LOAD = len(TRUTHS)


def distance(one, other):
    return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))


models = []
for spans in product(SPANS, repeat=LOAD):  # every draw of the features
    model = [0] * FEATURES
    for truth, span in zip(TRUTHS, spans, strict=True):
        model = [truth[axis] if axis in span else model[axis] for axis in range(FEATURES)]  # (9)
    models.append(model)
holds = True
for task, own in enumerate(TRUTHS, 1):
    found = Fraction(sum(distance(model, own) for model in models), len(models))
    weights = [(1 - RATIO) * RATIO ** (LOAD - number) for number in range(1, LOAD + 1)]
    later = sum(weight * distance(other, own) for weight, other in zip(weights, TRUTHS, strict=True))
    stated = RATIO**LOAD * distance(own, [0] * FEATURES) + later
    holds = holds and found == stated
    print(f"task {task} of {LOAD}: error {found}, (34) {stated}")
print("proved: (34) is exact" if holds else "not proved")
sys.exit(not holds)
