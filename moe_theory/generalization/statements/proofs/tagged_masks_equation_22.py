"""Counterexample to Eq. (22): with probability above 9/10 a gap is 2/5, but (22) is at most 1/10.

Let T = 3, k = 2, H = {+1, -1}, m = 10,000 and delta = 1/20, with fair-coin labels and the loss (1 - y f)/2. With
probability 1/(1000 m) an input is a tag, and otherwise it is uniform on N = 10 m^2 points. There is a router for each
signing s of the points, and each router has its own tag. At a point its gates are 9/10 and 1/10 on experts 1 and 2,
exchanged if s = -1. At its own tag it activates experts 1 and 3, and at other tags experts 1 and 2.

1. No router has the second mask at two tags, so masks shatter no two inputs: d_N = 1.

2. A mask belongs to one router, and leaves 8 models. L_S - L_S' has 2m terms, each in an interval of length 1/m. By
Massart's lemma, E phi is at most sqrt(log 8/m) for every mask.

3. If no input repeats and none is a tag, some s gives the labels of S. Then L_S = 1/10 and L_D = 1/2.

Robust: as m grows, (22) falls to 0 and the gap stays. If every router adds its own small number to a logit, no two
routers agree anywhere, and the dimension of whole routers is at most 1 too.

Objection: mu may be the mask that a router gives on S. But (18) to (20) treat mu as given, and E phi is for a given mu.
"""

import sys
from fractions import Fraction

SAMPLES, DELTA, EXPERTS, ACTIVE_SHARE = 10_000, Fraction(1, 20), 3, Fraction(9, 10)
NUM_MASKS, DIMENSION = 3, 1  # binom(3, 2), d_N
E_BELOW = Fraction(27, 10)


def log_above(value: Fraction) -> int:
    """Return an integer above the logarithm."""
    return next(n for n in range(100) if E_BELOW**n > value)


routers = range(4)
shown = {tuple(router == tag for tag in routers) for router in routers}  # which routers use the second mask at each tag
pairs = [(one, two) for one in routers for two in routers if one < two]
shatters_two = any(any(row[one] and row[two] for row in shown) for one, two in pairs)

mean_square = Fraction(log_above(Fraction(8)), SAMPLES)  # above (E phi)^2
patterns = NUM_MASKS ** (2 * DIMENSION) * (2 * SAMPLES) ** DIMENSION
root_square = Fraction(log_above(patterns * 4 / DELTA), 2 * SAMPLES)
mean, root = Fraction(1, 50), Fraction(3, 100)
is_bounded = mean**2 >= mean_square and root**2 >= root_square
bound = 2 * mean + 2 * root

gap = Fraction(1, 2) - (1 - (2 * ACTIVE_SHARE - 1)) / 2
repeats = Fraction(SAMPLES**2, 2 * 10 * SAMPLES**2)
tags = Fraction(1, 1000)
print(f"masks shatter two tags: {shatters_two}")
print(f"(22) is at most {bound}: {is_bounded}")
print(f"a gap of {gap} has probability at least {1 - repeats - tags}, allowed {DELTA}")
is_violated = not shatters_two and is_bounded and gap > bound and 1 - repeats - tags > DELTA
print("violated: a gap above (22) is likely" if is_violated else "not violated")
sys.exit(not is_violated)
