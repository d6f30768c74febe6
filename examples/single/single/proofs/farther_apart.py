"""Four tasks, p = 4, n = 2, no noise: forgetting falls where the first two tasks move apart and nothing else changes.

The first two models have length 1 and the last two are 0, so that of all distances only that of the first two changes
with their angle. By the recursion E|w_t - w|^2 = r E|w_(t-1) - w|^2 + (1 - r)|w*_t - w|^2 with r = 1 - n/p, computed
for equal, orthogonal and opposite models.

Robust: any r with r + r^2 < 1, and later tasks of any kind that stay where they are.

Objection: it is about tasks next to one another and long ago. The distance to the last task does raise forgetting.
"""

import sys
from fractions import Fraction

r = 1 - Fraction(2, 4)


def forgetting(second):
    """F_4 of (1, 0), `second`, 0, 0."""
    truths, total = [(1, 0), second, (0, 0), (0, 0)], Fraction(0)
    for i in range(3):
        found, then = Fraction(sum(x * x for x in truths[i])), Fraction(0)
        for t, truth in enumerate(truths):
            found = r * found + (1 - r) * sum((x - y) ** 2 for x, y in zip(truth, truths[i], strict=True))
            if t == i:
                then = found
        total += found - then
    return total / 3


equal, orthogonal, opposite = forgetting((1, 0)), forgetting((0, 1)), forgetting((-1, 0))
print(f"stated: F rises with the distance; exact: equal {equal}, orthogonal {orthogonal}, opposite {opposite}")
is_violated = equal > orthogonal > opposite
print("violated: the farther apart, the less is forgotten" if is_violated else "not violated")
sys.exit(not is_violated)
