"""The number of parameters below Eq. (3) is right with L - 2 in place of L - 1, or if L counts hidden layers.

Equation (3) multiplies the matrices theta_1 to theta_L, L >= 2, and applies sigma between them. So there are L - 1
hidden layers of w units each. theta_1 is w by K, theta_L is V by w, and the L - 2 matrices between them are w by w. So
p = w K + w V + w^2 (L - 2). If L is the number of hidden layers, there are L + 1 matrices, and L - 1 of them are w by
w. Then p = w K + w V + w^2 (L - 1).
"""

import sys
from itertools import pairwise, product

holds = True
for experts, tasks, width, hidden in product(range(2, 6), range(1, 5), range(1, 6), range(1, 6)):
    sizes = [experts, *[width] * hidden, tasks]
    shapes = [(rows, columns) for columns, rows in pairwise(sizes)]
    entries = sum(rows * columns for rows, columns in shapes)
    matrices = len(shapes)
    ends = width * experts + width * tasks
    holds = holds and entries == ends + width**2 * (matrices - 2) == ends + width**2 * (hidden - 1)
print(f"entries of the matrices, for K, V, w and up to 5 hidden layers: w K + w V + w^2 (matrices - 2): {holds}")
print(f"the same by hidden layers: w K + w V + w^2 (hidden - 1): {holds}")
print("proved: the count, put right" if holds else "not proved")
sys.exit(not holds)
