"""Proposition 1: three kinds, the third signal half way between the others; it has no specialist, stated M_th.

(15) has an expert in the set of a kind whose signal's output is larger than those of all other kinds. Let v_3 = (v_1 +
v_2)/2: for every gate theta'v_3 is the mean of theta'v_1 and theta'v_2, and never above both. The set of kind 3 is
empty for ever, and no idle specialist meets its tasks.

Robust: M, delta, delays, noise, truths, the algorithm itself; any signal in the convex hull of the others.

Objection: signals are not meant to lie so. Assumption 1 asks of them no more than their size. In general position with
N <= p + 1, as in Fig. 3 with N = 10 and p = 15, none is in the hull of the others, and there the proposition holds:
this is the clause that we add. Ten Gaussian signals in two or three dimensions have several inside.
"""

import sys
from fractions import Fraction
from itertools import product

VALUES = tuple(map(Fraction, (-3, -1, 0, 2, 5)))
first, second = (1, 0), (0, 1)
between = tuple((a + b) / Fraction(2) for a, b in zip(first, second, strict=True))


def output(gate, signal):
    return sum(a * b for a, b in zip(gate, signal, strict=True))


is_violated, members, gates = True, 0, 0
for gate in product(VALUES, repeat=2):
    one, two, three = (output(gate, signal) for signal in (first, second, between))
    is_violated = is_violated and 2 * three == one + two  # so that it is not above both
    members += three > max(one, two)
    gates += 1
is_violated = is_violated and members == 0
print(f"specialists of kind 3 among {gates} gates: {members}; stated M_th, at least {1}")
print("violated: kind 3 has no specialist" if is_violated else "not violated")
sys.exit(not is_violated)
