"""Counterexample to Eqs. (29) to (32): with two cells and two samples (30) is 3/4, but its bound (31) is 1/2.

Experts of two cells can take two signs at once. In (31) one convex combination serves all inputs, so it cannot. Let
each input be in one of two cells with probability 1/2, with a mask that sends each cell to its own expert, +1 or -1. So
T = 2, k = 1, H = {+1, -1}.

If both inputs are in one cell, the largest signed mean is |s_1 + s_2|/2, which is 1/2 in the mean over the signs s. If
they are in two cells, each expert takes the sign of its input, and the mean is 1. So (29) and (30) are 1/2 * 1/2 + 1/2
* 1 = 3/4. But (31) and (32) are R_2(H) = 1/2, so (31) says 3/4 <= 1/2.

Robust: no constant factor helps. With T cells and m >= T samples, E|sum of n signs| >= sqrt(n/2) makes (30) at least
1/2 sqrt(T/(2m)), and (32) is at most 1/sqrt(m). The loss, the labels and C do not matter.

Objection: the gates sum to 1 for each input, as the text under (32) says. But (31) has one point of the simplex for all
inputs, and (30) one for each. With one input, or one expert that serves all, (31) holds.
"""

import sys
from fractions import Fraction
from itertools import product

SAMPLES, CELLS = 2, 2
H = (-1, 1)


def equation_30(cells: tuple[int, ...], signs: tuple[int, ...]) -> Fraction:
    """Return the largest signed mean of f(x) = h_j, where j is the cell of x, over all choices of experts."""
    choices = product(H, repeat=CELLS)
    return max(Fraction(sum(s * experts[j] for s, j in zip(signs, cells, strict=True)), SAMPLES) for experts in choices)


def equation_31(signs: tuple[int, ...]) -> Fraction:
    """Return the largest signed mean for one simplex point for all inputs, reached at a corner by linearity."""
    choices = product(product(H, repeat=CELLS), range(CELLS))
    return max(Fraction(sum(s * experts[corner] for s in signs), SAMPLES) for experts, corner in choices)


every_cells = list(product(range(CELLS), repeat=SAMPLES))
every_signs = list(product((-1, 1), repeat=SAMPLES))
left = sum(equation_30(cells, signs) for cells in every_cells for signs in every_signs)
left /= len(every_cells) * len(every_signs)
right = sum(map(equation_31, every_signs)) / len(every_signs)
print(f"(30), over all inputs and signs: {left}")
print(f"(31), which is to be no less: {right}")
print("violated: (30) is larger" if left > right else "not violated")
sys.exit(left <= right)
