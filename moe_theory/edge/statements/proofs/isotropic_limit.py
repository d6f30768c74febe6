"""Proposition 4, last line, holds if every column is isotropic and redrawn for each task.

Offloading to the nearest or the fastest server ignores features and task types. If every column of X_t is isotropic and
redrawn, then E P_t = (s/p) I. As for (34), a task w_i at a server with L tasks has the error r^L |w_i|^2 + sum_l (1 -
r) r^{L - l} |w_l - w_i|^2 with r = 1 - s/p.

Task types are independent, so E|w_l - w_i|^2 = Delta, except for l = i, where it is 0. The sum over a server's tasks is
L r^L W + (L - 1) (1 - r^L) Delta. Let K servers be in use. Over all servers T E[G_T] = sum_m L_m r^{L_m} (W - Delta) +
T Delta - sum_m (1 - r^{L_m}) Delta. Here L r^L <= r + ... + r^L <= r/(1 - r) = (p - s)/s <= p/s, and K <= M. So E[G_T]
is within M (p |W - Delta| + Delta) / T of Delta, for any loads.
"""

import sys
from fractions import Fraction
from itertools import product

FEATURES = 3  # p, with s = 1
RATIO = 1 - Fraction(1, FEATURES)
AXES = range(FEATURES)  # of samples: E P = I/p, the only property used
TRUTHS = [(1, 0, 2), (0, 3, -1)]


def distance(one, other):
    return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))


W = Fraction(sum(distance(one, (0, 0, 0)) for one in TRUTHS), 2)
DELTA = Fraction(sum(distance(one, other) for one, other in product(TRUTHS, repeat=2)), 4)
holds = True
for load in (1, 2, 3, 4):
    total = 0
    for arrivals in product(product(TRUTHS, AXES), repeat=load):  # every sequence of types and draws
        model = [0] * FEATURES
        for truth, axis in arrivals:
            model[axis] = truth[axis]  # (9)
        total += sum(distance(model, truth) for truth, _ in arrivals)
    found = Fraction(total, (len(TRUTHS) * FEATURES) ** load)
    stated = load * RATIO**load * W + (load - 1) * (1 - RATIO**load) * DELTA
    holds = holds and found == stated
    print(f"L = {load}: summed error {found}, by the formula {stated}")
print("proved: the error tends to Delta" if holds else "not proved")
sys.exit(not holds)
