"""Counterexample to Fig. 3 (b): with a common part in all ground truths the error falls from K^2 to sigma_0^2.

The figure's text says that the error grows under offloading. Any routing learns the common part. Let p = N = 2, s = 1,
v_1 = e_1, v_2 = e_2, w_1 = (K + sigma_0, K) and w_2 = (K, K + sigma_0). They differ by sigma_0 in each entry, as
Assumption 1 requires.

A task sets one entry of its server's model to K + sigma_0. A server that has served one task type is K away from its
ground truth. A server that has served both is sigma_0 away from each. So the first task leaves an error of K^2. Under
task-independent routing every server serves both types in the end, and then the error is sigma_0^2. At K = 1 and
sigma_0 = 1/10 it falls to a hundredth.

Robust: any M, delays, N and strategy. In general, with isotropic samples, a server with L tasks has the error r^L W +
(1 - r^L)(1 - 1/L) Delta, where W is the mean of |w_n|^2. It ends below W only if W is above Delta.

Objection: the ground truths have mean 0, as in our runs of Fig. 3. But the paper only says how far apart they are. The
sentence holds if W is at most Delta.
"""

import sys
from fractions import Fraction
from itertools import product

COMMON, SIGMA_0 = Fraction(1), Fraction(1, 10)
TRUTHS = [(COMMON + SIGMA_0, COMMON), (COMMON, COMMON + SIGMA_0)]


def mean_error(kinds: tuple[int, ...]) -> Fraction:
    """Return the mean error of a server's final model over all its tasks."""
    model = [Fraction(0), Fraction(0)]
    for kind in kinds:
        model[kind] = TRUTHS[kind][kind]
    errors = [sum((own - truth) ** 2 for own, truth in zip(model, TRUTHS[kind], strict=True)) for kind in kinds]
    return sum(errors, Fraction(0)) / len(kinds)


means = []
for length in (1, 2, 4, 8):
    arrivals = list(product((0, 1), repeat=length))
    means.append(sum(map(mean_error, arrivals), Fraction(0)) / len(arrivals))
    print(f"after {length} tasks at a server: {means[-1]}")
print(f"once it has met both kinds: {mean_error((0, 1))}")
violated = means == sorted(means, reverse=True) and means[0] == COMMON**2 and mean_error((0, 1)) == SIGMA_0**2
print("violated: the error falls" if violated else "not violated")
sys.exit(not violated)
