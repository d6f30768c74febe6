"""Counterexample to Proposition 1: a task type whose signal is between two others has no specialist, not M_th.

By (15) an expert is in the set of a task type if its output for the type's signal exceeds its outputs for all other
types. Take three types with v_3 = (v_1 + v_2)/2. For every gate theta, theta'v_3 is the mean of theta'v_1 and
theta'v_2, so it never exceeds both. So the set of type 3 is always empty, and no idle specialist receives its tasks.

Robust: the proof allows any M, delta, delays, noise, ground truths, algorithm, and signal in the others' convex hull.

Objection: signals are not meant to lie like this. But Assumption 1 only limits their size. In general position with N
<= p + 1, as in Fig. 3, no signal is in the hull of the others. Then the proposition holds, which is our condition. But
several of ten Gaussian signals in two or three dimensions are inside.
"""

import sys
from fractions import Fraction
from itertools import product

VALUES = tuple(map(Fraction, (-3, -1, 0, 2, 5)))
SIGNALS = [(1, 0), (0, 1), (Fraction(1, 2), Fraction(1, 2))]

members = 0
for gate in product(VALUES, repeat=2):
    one, two, three = (gate[0] * first + gate[1] * second for first, second in SIGNALS)
    members += three > max(one, two) or 2 * three != one + two  # the mean is not above both
print(f"specialists of kind 3 among {len(VALUES) ** 2} gates: {members}; stated M_th, at least 1")
print("violated: kind 3 has no specialist" if members == 0 else "not violated")
sys.exit(members != 0)
