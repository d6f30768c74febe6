"""Counterexample to Lemma 9, Eq. (34): two tasks of one type leave more than r^2 |w|^2, because they share a signal.

Let v_n have a random direction, drawn separately from the ground truths but the same for each task of type n. Let a
server have served two tasks. If both are of type n, their error is E|S_2 S_1 w|^2. Each S = I - P_t projects onto a
random subspace of dimension p - s in the p - 1 dimensions across v_n. So the error is (1 - 1/p) ((p - s)/(p - 1))^2
|w|^2, but (34) gives ((p - s)/p)^2 |w|^2, which is (p - 1)/p times as large. If the two types differ, (34) is right for
the second task. With independent types the two sides therefore also differ in the mean over types.

If v_n is along w_n, the data of every arrival span its ground truth. With ground truths w and -w a model is the ground
truth of its last task, whose error is 0. But (34) has r^L |w|^2 plus a positive term for each earlier task of -w.

Robust: the proof allows any s < p, ground truths, beta and M, and noise if s >= 2. With equal delays, the task that
arrives as the first one ends is routed before any gate step. It goes to the same server with probability 1/M or more.

Objection: the proof assumes that every column is redrawn from N(0, I), and then (34) is exact for task-independent
routing. (34) is also exact if no ground truth comes twice and each has its own isotropic signal. But by Definition 1 a
type that comes again shows the same signal, by which the router recognises it.
"""

import sys
from fractions import Fraction
from itertools import product

FEATURES = 3  # p, with s = 1
TRUTHS = [(1, 0, 2), (0, 3, -1)]
AXES = range(FEATURES)  # of signals: E vv' = I/p, the only property used
RATIO = 1 - Fraction(1, FEATURES)


def distance(one, other):
    return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))


def second_error(kinds) -> tuple[Fraction, Fraction]:
    """Return the error of the second of two tasks of a server, and the value of (34)."""
    found = Fraction(0)
    for axes in product(AXES, repeat=2):  # the signals of the two types
        model = [0] * FEATURES
        for kind in kinds:
            model[axes[kind]] = TRUTHS[kind][axes[kind]]  # (9)
        found += Fraction(distance(model, TRUTHS[kinds[1]]), len(AXES) ** 2)
    first, own = (TRUTHS[kind] for kind in kinds)
    return found, RATIO**2 * distance(own, [0] * FEATURES) + (1 - RATIO) * RATIO * distance(first, own)


pairs = {kinds: second_error(kinds) for kinds in product((0, 1), repeat=2)}
for kinds, (found, stated) in pairs.items():
    print(f"types {kinds[0]}, {kinds[1]}: error {found}, (34) says {stated}")
means = [sum(errors) / 4 for errors in zip(*pairs.values(), strict=True)]
print(f"mean over types: error {means[0]}, (34) says {means[1]}")
differ = all((found != stated) == (first == second) for (first, second), (found, stated) in pairs.items())
is_violated = differ and means[0] > means[1]
print("violated: the two sides differ" if is_violated else "not violated")
sys.exit(not is_violated)
