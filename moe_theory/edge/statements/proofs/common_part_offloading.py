"""Counterexample to Fig. 3 (b): with a common part in all ground truths the error falls from 4 to 1 sigma_0^2.

The figure's text says that the error grows under offloading. But any routing learns the common part. Let p = N = 2, s =
1, v_1 = e_1, v_2 = e_2, w_1 = (3, 2) sigma_0 and w_2 = (2, 3) sigma_0. They have the size of sigma_0, and differ by
sigma_0 in each entry, as Assumption 1 requires. Their common part is K = 2 sigma_0 in each entry.

A task sets one entry of its server's model to 3 sigma_0. A server that has served one task type is K away from this
type's ground truth. A server that has served both types is sigma_0 away from each ground truth. So the first task
leaves an error of K^2. Under task-independent routing every server serves both types in the end, and then the error is
sigma_0^2.

Robust: the argument works for any M, delays and strategy, and any K above sigma_0. In general, with isotropic samples,
a server with L tasks has the error r^L W + (1 - r^L)(1 - 1/L) Delta, where W is the mean of |w_n|^2. This error starts
at r W and tends to Delta. So it falls if W is above Delta/r. If W is at most Delta, the error grows with L.

Objection: the ground truths should have mean 0, as in our runs of Fig. 3. But the paper only says how far apart they
are and how much they vary.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = [(3, 2), (2, 3)]  # in units of sigma_0


def mean_error(kinds: tuple[int, ...]) -> Fraction:
    """Return the mean error of a server's final model over all its tasks."""
    model = [TRUTHS[kind][kind] if kind in kinds else 0 for kind in (0, 1)]
    errors = [sum((own - truth) ** 2 for own, truth in zip(model, TRUTHS[kind], strict=True)) for kind in kinds]
    return Fraction(sum(errors), len(kinds))


means = []
for length in (1, 2, 4, 8):
    arrivals = list(product((0, 1), repeat=length))
    means.append(sum(map(mean_error, arrivals)) / len(arrivals))
    print(f"after {length} tasks at a server: {means[-1]}")
print(f"once it has met both kinds: {mean_error((0, 1))}")
violated = means == sorted(means, reverse=True) and means[0] == 4 and mean_error((0, 1)) == 1
print("violated: the error falls" if violated else "not violated")
sys.exit(not violated)
