"""Counterexample below Eq. (3): K = V = 8, w = 64, L = 2 give 1,024 parameters, but the paper says 5,120.

These are the sizes of the experiments. With L = 2, (3) is sqrt(w) theta_2 sigma(theta_1 x). theta_1 maps K weights to w
units, and theta_2 maps these to V outputs. So there are w K + V w = 1,024 entries and no w by w matrix. The paper's
number counts such a matrix: w K + w V + w^2 (L - 1) = 5,120, which is w^2 = 4,096 too many.

Robust: the proof allows any K, V, w and L >= 2. In (3), L - 2 matrices have size w by w, but the paper counts L - 1.

Objection: L may count the hidden layers, as in the work that (3) is from. Then the number is right, but (3) has L + 1
matrices. Correcting either makes the statement true.
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
