"""How much T experts fit on the generalization of sparse MoE, against T cells of a fixed router. Needs NumPy and SciPy.

An input falls into one of T equally likely cells, each with an expert of its own, +1 or -1 everywhere. Two statements:
(29) to (32) have this class no more complex than one expert, and the remark on sparsity awareness has T experts cost a
factor of O(log T). The complexity is exact: the mean of sup_f (1/m) sum_i s_i f(x_i) over signs is T/m times that of
|S_n|, S_n the sum of n signs and n binomial.
"""

import sys

import numpy as np
from scipy import special, stats


def mean_size(n: np.ndarray) -> np.ndarray:
    """E |S_n|, which is that of n - 1 where n is even and not 0."""
    odd = (n + 1) // 2
    ratio = special.gammaln(odd + 0.5) - special.gammaln(np.maximum(odd, 1))
    return np.where(n > 0, 2 / np.sqrt(np.pi) * np.exp(ratio), 0.0)


def complexity(cells: int, inputs: int) -> float:
    center, width = inputs / cells, 10 * np.sqrt(inputs / cells) + 10
    n = np.arange(max(0, int(center - width)), min(inputs, int(center + width)) + 1)
    return float(cells / inputs * np.sum(stats.binom.pmf(n, inputs, 1 / cells) * mean_size(n)))


lone, pair = complexity(1, 2), complexity(2, 2)
print(f"Two cells and two inputs: {pair:.4f}, and {lone:.4f} for one expert.")
costs = []
for cells in (4, 64, 1024, 16384, 2**18):
    factor = complexity(cells, 10**8) / complexity(1, 10**8)
    costs.append(factor / (1 + np.log(cells)))
    print(f"T = {cells:6}, m = 10^8: {factor:6.1f} times that of one expert, {costs[-1]:5.2f} times 1 + log T")
sys.exit(0 if pair > lone and costs[-1] > 20 * costs[0] and sorted(costs) == costs else 1)
