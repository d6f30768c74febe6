"""Fig. 3 (b), the error grows: two kinds with a part in common; the error falls from K^2 to sigma_0^2.

What all truths have in common is learned by any routing, and each task adds to it. p = N = 2, one sample, v_1 = e_1 and
v_2 = e_2, w_1 = (K + sigma_0, K), w_2 = (K, K + sigma_0): they are sigma_0 apart in each entry, as Assumption 1 asks. A
task sets one entry of its server's model, to K + sigma_0. A server that has had one kind is K away from its truth, one
that has had both sigma_0 from each of them. The first task leaves an error of K^2, and once all servers have met both
kinds, as they do if routes do not look at the task, it is sigma_0^2: at K = 1 and sigma_0 = 1/10 a hundredth.

Robust: M, delays, N, the strategy. In general, by the recursion for isotropic samples, the error of a server with L
tasks is r^L W + (1 - r^L)(1 - 1/L) Delta, W the truths' mean square: it ends below W only if W is above Delta.

Objection: truths have mean 0, as in our runs of Fig. 3. The paper says how far they are apart. With W at most Delta the
sentence holds.
"""

import sys
from fractions import Fraction
from itertools import product

COMMON, SIGMA_0 = Fraction(1), Fraction(1, 10)
TRUTHS = [(COMMON + SIGMA_0, COMMON), (COMMON, COMMON + SIGMA_0)]


def mean_error(kinds: tuple[int, ...]) -> Fraction:
    """Of the tasks so far, at one server that has had them all: its final model against each truth."""
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
