"""Below Eq. (3): K = V = 8, w = 64, L = 2, as in the experiments; 1,024 parameters, stated 5,120.

With L = 2, (3) is sqrt(w) theta_2 sigma(theta_1 x), which has no w by w matrix, and the paper's number counts one.
theta_1 maps K weights to w units, theta_2 maps these to V outputs: w K + V w = 1,024 entries. The number of parameters
is given as w K + w V + w^2 (L - 1) = 5,120, w^2 = 4,096 too many.

Robust: any K, V and w, and any L >= 2: of the L matrices in (3) L - 2 are of size w by w, and the number counts L - 1.

Objection: L may count the hidden layers, as in the work that (3) is from. Then the number is right and (3) has L + 1
matrices, theta_1 to theta_(L+1): one of the two is a slip, and the statement holds with either put right.
"""

import sys
from itertools import pairwise

EXPERTS, TASKS, WIDTH, DEPTH = 8, 8, 64, 2  # K, V, w, L
sizes = [EXPERTS, *[WIDTH] * (DEPTH - 1), TASKS]  # what goes into theta_1, comes out of it, and so on
entries = sum(rows * columns for columns, rows in pairwise(sizes))
printed = WIDTH * EXPERTS + WIDTH * TASKS + WIDTH**2 * (DEPTH - 1)
print(f"entries of theta_1 to theta_{DEPTH}: {entries}")
print(f"the paper's p: {printed}")
print("violated: the two differ" if entries != printed else "not violated")
sys.exit(entries == printed)
