"""Corollary 4 on the generalization of sparse MoE, against linear experts behind a linear router. Needs NumPy.

For experts of one layer, w.x with |w| <= B and |x| <= 1, and a router of d outputs and p weights, the gap |L_S - L_D|
is to be O() of the bound (9), whose constant may not depend on T or m. Each of m inputs has a coordinate, which the
router cuts into T intervals, and one of many unit vectors, hardly ever the same as another input's. B = sqrt(m/T),
labels are fair coins, the loss is clip((1 - y f)/2, 0, 1): every classifier has L_D = 1/2, and C = 1/2.
"""

import itertools
import math
import sys

import numpy as np


def gap_of_best(T: int, m: int) -> float:
    """Of a sample: within an interval the best expert is the sum of label times vector, scaled to norm B."""
    draw = np.random.default_rng(1)
    coordinate, y = draw.random(m), 2.0 * draw.integers(2, size=m) - 1
    cuts = np.quantile(coordinate, np.arange(1, T) / T)  # a linear router on (coordinate, 1) has any such cuts
    chosen = np.searchsorted(cuts, coordinate)
    outputs = y * math.sqrt(m / T) / np.sqrt(np.bincount(chosen, minlength=T))[chosen]
    return 0.5 - float(np.mean(np.clip((1 - y * outputs) / 2, 0, 1)))


def equation_9(T: int, m: float) -> float:
    p, d = 2 * T, T  # two weights for each of the router's outputs, which are as many as experts
    router = 2 * d * p**2 * (1 + math.log(T)) + d * p**2 * math.log(2 * m) + math.log(4 / 0.05)
    return 4 * 0.5 * math.sqrt(m / T) / math.sqrt(m) + 2 * math.sqrt(router / (2 * m))


print("The gap of a sample, the same for every m and T where T divides m:")
found = [gap_of_best(T, 100 * T) for T in (16, 64, 256)]
print("   ", found)
print("Its ratio to (9), which is to stay bounded:")
ratios = []
for T in (64, 256, 1024, 4096, 16384, 2**20):
    ratios.append(found[0] / equation_9(T, float(T) ** 5))
    print(f"    T = {T:7}, m = T^5: {ratios[-1]:.2f}")
grows = all(later > 1.5 * earlier for earlier, later in itertools.pairwise(ratios))
sys.exit(0 if min(found) > 0.49 and grows and ratios[-1] > 100 else 1)
