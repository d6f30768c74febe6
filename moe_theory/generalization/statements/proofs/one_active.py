"""Remark on sparsity awareness (Sections 1, 4): with free router weights, k = 1 has no larger gap than k > 1.

The bound. At the same d_N it grows with k, as k (1 + log(T/k)) does. The gap. Let the class of logits contain c g with
every g, for all c > 0. Let gates be as in (5), the loss in [0, 1] be continuous, and no logits tie. As c grows, the
gate of the largest logit tends to 1. So each f of F(T, 1) is a limit of members of F(T, k), and so are L_S and L_D. So
for every sample, sup |L_S - L_D| over F(T, 1) is at most its value over F(T, k). It can be smaller. Let T = 2, H = {+1,
-1}, logits v x and 0, x = 1 or 100, two samples, fair labels, loss clip((1 - y f)/2, 0, 1). At k = 1, f is constant,
with a gap of 1/2 if the labels agree, so 1/4 in the mean. At k = 2 there is also f = tanh(v x/2). With e^v = 2, if
labels and inputs both differ, the gap is (f(100) - f(1))/4, near 1/6. So the mean is at least nearly 7/24. With a given
router the order is reversed. Two cells at k = 1 have a mean gap of 3/8, and two equal gates have 1/4, as one expert
has.
"""

import sys
from fractions import Fraction
from itertools import product

POWER = 2  # e^v


def tanh(x: int) -> Fraction:
    """Return the gates' difference, tanh(v x/2) = (e^(v x) - 1)/(e^(v x) + 1)."""
    return Fraction(POWER**x - 1, POWER**x + 1)


inputs, samples = (1, 100), 2
constant = [{x: Fraction(sign) for x in inputs} for sign in (1, -1)]
shared = [{x: sign * tanh(x) for x in inputs} for sign in (1, -1)]
draws = list(product(product(inputs, (1, -1)), repeat=samples))


def mean_gap(members: list[dict[int, Fraction]]) -> Fraction:
    """Return the mean of the class's largest |L_S - 1/2| = |sum y f(x)|/(2m)."""
    tops = [max(abs(sum(y * f[x] for x, y in drawn)) for f in members) for drawn in draws]
    return sum(tops, Fraction(0)) / (2 * samples * len(draws))


one, both = mean_gap(constant), mean_gap(constant + shared)
print(f"free weights: {one} at k = 1; at k = 2 at least {both}")
holds = one < both
signs = list(product((1, -1), repeat=samples))
cells = sum(Fraction(abs(s + t) if a == b else 2, 4) for s, t in signs for a in range(2) for b in range(2)) / 16
equal = sum(Fraction(abs(s + t), 4) for s, t in signs) / 4  # gaps, |sum y f|/(2m)
print(f"a given router: mean gaps of {cells} at k = 1, {equal} at k = 2")
holds = holds and equal < cells
print("proved: one active expert can help" if holds else "not proved")
sys.exit(not holds)
