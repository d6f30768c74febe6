"""Lemma 9, Eq. (34), holds if every column is isotropic and redrawn for each task.

Suppose that the span of X_t is uniformly random and redrawn for each arrival, whichever server receives it. By symmetry
and its trace E P_t = (s/p) I. So E|P_t x|^2 = (s/p) |x|^2 for any x that was fixed before.

As in the paper's proof, a task counts as learned when it arrives. For a task i of a server let e_l be the server's
model minus w_i after l of its tasks. Then e_l = (I - P) e_{l-1} + P (w_l - w_i), a sum of two orthogonal parts. So
E|e_l|^2 = r E|e_{l-1}|^2 + (1 - r) |w_l - w_i|^2 with r = 1 - s/p. Since |e_0| = |w_i|, this unrolls to (34).

Caveat: routing ignores the features. The routing of Algorithm 1 uses them, through outputs that are small compared with
r in the limit.
"""

import sys
from fractions import Fraction
from itertools import combinations, product
from math import comb

FEATURES, SAMPLES, LOAD = 4, 2, 3  # p, s, tasks of one server
RATIO = 1 - Fraction(SAMPLES, FEATURES)
SPANS = list(combinations(range(FEATURES), SAMPLES))  # of axes: E P = (s/p) I, which is all that is used
TRUTHS = [(1, 0, 2, -1), (0, 3, 1, 1), (-2, 1, 0, 1)]


def distance(one, other):
    return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))


met = [TRUTHS[n] for n in (0, 1, 2)]
found = [Fraction(0)] * LOAD
for spans in product(SPANS, repeat=LOAD):  # every draw of the features
    model = [0] * FEATURES
    for truth, span in zip(met, spans, strict=True):
        model = [truth[axis] if axis in span else model[axis] for axis in range(FEATURES)]  # (9)
    found = [total + distance(model, truth) for total, truth in zip(found, met, strict=True)]
found = [total / len(SPANS) ** LOAD for total in found]
nothing = [0] * FEATURES
stated = [
    RATIO**LOAD * distance(own, nothing)
    + sum((1 - RATIO) * RATIO ** (LOAD - 1 - at) * distance(other, own) for at, other in enumerate(met))
    for own in met
]
for task, (one, other) in enumerate(zip(found, stated, strict=True)):
    print(f"task {task + 1} of {LOAD}: error {one}, (34) {other}")
holds = found == stated and len(SPANS) == comb(FEATURES, SAMPLES)
print("proved: (34) is exact" if holds else "not proved")
sys.exit(not holds)
