"""Proposition 4, corrected: the moments of a single expert's model follow an exact recursion.

Let p >= 3, u = v_t/|v_t|, D = p - 1, and s = 1 or sigma_t > 0. Across u, the noise columns span a uniformly random
subspace of dimension s - 1. So S = I - P_t is a random projector of rank q = p - s in the D dimensions across u.

By symmetry E S = (q/D) I across u, and E[S A S] = k1 A + k2 tr(A) I for symmetric A. The trace gives k1 + k2 D = q/D.
For A = e_1 e_1' the entry (1, 1) is S_11^2, where S_11 has the distribution Beta(q/2, (D - q)/2) of a squared projected
length. So k1 + k2 = q (q + 2)/(D (D + 2)). So k2 = q (D - q)/(D (D - 1)(D + 2)) and k1 = q (D q + D - 2)/(D (D - 1)(D +
2)).

Let e = w - w_t before a task and e+ = S e after it. With Pi = I - u u', E e+ e+' = k1 Pi E[e e'] Pi + k2 tr(Pi E[e e'])
Pi. Task-independent offloading gives each server independent tasks. So given the loads, G_T is exactly the mean over
single experts after all T tasks are done.
"""

import sys

from sympy import cancel, gamma, gammasimp, solve, symbols

rank, across, first, second = symbols("q D k1 k2", positive=True)
a, b = rank / 2, (across - rank) / 2
# The second moment of Beta(a, b) is B(a + 2, b)/B(a, b).
square = gammasimp(gamma(a + 2) * gamma(a + b) / (gamma(a) * gamma(a + b + 2)))
stated = rank * (rank + 2) / (across * (across + 2))
is_beta = cancel(square - stated)
found = solve([first + second * across - rank / across, first + second - stated], [first, second], dict=True)[0]
bottom = across * (across - 1) * (across + 2)
ones = cancel(found[first] - rank * (across * rank + across - 2) / bottom)
twos = cancel(found[second] - rank * (across - rank) / bottom)
print(f"E S_11^2 less q (q + 2)/(D (D + 2)) = {is_beta}; k1, k2 less the stated = {ones}, {twos}")
holds = (is_beta, ones, twos) == (0, 0, 0)
print("proved: the recursion has these constants" if holds else "not proved")
sys.exit(not holds)
