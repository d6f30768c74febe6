"""Lemma 3, corrected: a repeat multiplies the expected squared error by (d - s)/(d - 1).

Claim. Let task n arrive at an expert that had it last. For the expert's error e = w - w_n, the repeat gives E|(I - P)
e|^2 = (d - s)/(d - 1) |e|^2.

Proof. (a) By (5) y = X'w after the earlier arrival, so e is orthogonal to v_n. (b) On the repeat e becomes (I - P) e,
where P projects on the span of v_n and s - 1 Gaussian columns. (c) Let u be along v_n. The complement of u has
dimension D = d - 1. The s - 1 Gaussian columns, projected there, leave p = d - s directions, on which I - P projects.
(d) The columns' distribution does not change if the D coordinates are permuted or change sign. So E[I - P] commutes
with all these changes. On the complement it is therefore a multiple of I, which is p/D by its trace. (e) As e is
orthogonal to v_n, E|(I - P) e|^2 = e'E[I - P]e.

Robust: The proof allows any beta, sigma_t > 0, w_n and direction of the signal. At s = 1 the factor is 1, no model
moves, and Lemma 3 holds. With M > 1 routes must not depend on noise, because then a gate may prefer some columns.
"""

import sys
from fractions import Fraction
from itertools import permutations, product


def rest(columns: list[list[Fraction]], size: int) -> list[list[Fraction]]:
    """I - P, column by column."""
    left = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for column in columns:
        off = [sum(left[i][j] * column[j] for j in range(size)) for i in range(size)]
        square = sum(entry**2 for entry in off)
        left = [[left[i][j] - off[i] * off[j] / square for j in range(size)] for i in range(size)]
    return left


is_proved = True
for size, columns in ((3, [[1, 2, 5]]), (4, [[1, -2, 3, 7], [2, 0, 1, 1]])):  # D, and s - 1 columns in it
    kept = size - len(columns)  # p = D - (s - 1) = d - s
    group = list(product(permutations(range(size)), product((1, -1), repeat=size)))
    matrix = rest(columns, size)
    mean = [
        [sum(f[i] * f[j] * matrix[g[i]][g[j]] for g, f in group) / len(group) for j in range(size)] for i in range(size)
    ]
    factor = Fraction(kept, size)
    is_proved = is_proved and mean == [[factor * int(i == j) for j in range(size)] for i in range(size)]
    print(f"d = {size + 1}, s = {len(columns) + 1}: over {len(group)} signed permutations the mean of I - P is")
    print(f"    {mean[0][0]} on the diagonal, {mean[0][1]} off it; (d - s)/(d - 1) = {factor}; printed: 1")
print("proved: a repeat multiplies the expected square by (d - s)/(d - 1)" if is_proved else "not proved")
sys.exit(not is_proved)
