"""Assumption 2, corrected: distinct normalized candidates have a positive definite NTK matrix (ReLU, L >= 2).

Write x/|x| twice and divide by sqrt(2). This input has norm 1 and equal halves. Inner products of such inputs, and so
the NTK matrix M, are those of x/|x|. Distinct weights that sum to 1 are not parallel.

The matrix M is half the sum of the last covariance S and the last H. From layer to layer, H' = 2 H o E[sigma' sigma'] +
S' with the entrywise product o. By Schur's theorem H o E is positive semidefinite, so H >= S and M >= S/2. The first
covariance behind a ReLU is 2 E phi(g x_i) phi(g x_j) with a normal vector g. This covariance is singular only if sum_i
c_i phi(g x_i) = 0 for all g. Take a g_0 with g_0 x_i = 0 for one i alone. Near g_0 all terms except the i-th are
linear, and the i-th has a kink, so c_i = 0. If a covariance is positive definite, so is the next one: its normal vector
z has a density, so the phi(z_i) are linearly independent. So M has a least eigenvalue lambda_0 > 0.

Caveat: the activation is ReLU, as in the cited work. The paper leaves it open. We read j + V/2 as j + K, the place of
the copy in x written twice. The added output layer psi_t is held fixed and multiplies M by |psi_t|^2 > 0. The value
lambda_0 depends on the candidates, so it depends on T.
"""

import sys
from fractions import Fraction
from itertools import product


def relu(value: Fraction) -> Fraction:
    return max(value, Fraction(0))


def dot(one: tuple[Fraction, ...], two: tuple[Fraction, ...]) -> Fraction:
    return sum((a * b for a, b in zip(one, two, strict=True)), Fraction(0))


holds = True
for size, parts in ((2, 8), (3, 4)):  # K, and weights in eighths or quarters
    points = [x for x in product(range(parts + 1), repeat=size) if sum(x) == parts]
    reach = range(-parts, parts + 1)
    for place, own in enumerate(points):
        others = [x for x in points if x != own]
        spots = (g for g in product(reach, repeat=size) if dot(g, own) == 0 and all(dot(g, x) for x in others))
        spot = next(spots)  # g_0: on the kink of this candidate alone
        step = min(Fraction(abs(dot(spot, x)), 1 + abs(dot(own, x))) for x in others) / 2
        ends = [tuple(g + sign * step * a for g, a in zip(spot, own, strict=True)) for sign in (-1, 1)]
        bends = [relu(dot(ends[0], x)) + relu(dot(ends[1], x)) - 2 * relu(dot(spot, x)) for x in points]
        holds = holds and all((bend > 0) == (n == place) and bend >= 0 for n, bend in enumerate(bends))
    print(f"K = {size}: {len(points)} candidates, each with a second difference that all others have 0: {holds}")
print("proved: the covariance is above 0" if holds else "not proved")
sys.exit(not holds)
