"""Theorem 1: against each expert's own last move the sum of an expert's outputs is what its last move leaves.

Let H be the outputs theta'v, S_j the sum of expert j's, b_j the length of its last move, 0 before its first. A round in
which m learns task n from a signal orthogonal to all others changes outputs for n alone, and S_j by -u c (1{j = m} -
1/M), u = eta |v|^2 / M, where c = |dw| - b_m. That c is what b_m grows by, and no other b changes: S_j and -u (b_j -
sum b / M) change by the same, and both are 0 at the start. The program takes every run of three rounds with three
experts, two tasks and three lengths, so that each kind of round stands before and after each other one.

Robust: M, N, eta, what experts learn by and which of them is chosen enter nowhere: the induction has one step.

Objection: pi is 1/M only where outputs are 0. To first order in outputs it is, which is what the statement says.

Caveat: beta = 1, and noise orthogonal to all signals. Delays change the order of rounds, not their sum, once all
pending rounds are in. First order is said of a fixed number of rounds: what the softmax adds to each is not bounded
here.
"""

import sys
from fractions import Fraction
from itertools import product

M, N, u = 3, 2, Fraction(1, 7)
rounds = list(product(range(M), range(N), (0, 1, 5)))
off, num_runs = Fraction(0), 0
for run in product(rounds, repeat=3):
    H, b = [[Fraction(0)] * N for _ in range(M)], [Fraction(0)] * M
    for m, n, length in run:
        c = length - b[m]
        for j in range(M):
            H[j][n] -= u * c * (int(j == m) - Fraction(1, M))
        b[m] = Fraction(length)
        off = max(off, *(abs(sum(H[j]) + u * (b[j] - sum(b) / M)) for j in range(M)))
    num_runs += 1
print(f"sums of outputs less what last moves leave, largest of {num_runs} runs: {off}; stated: 0")
print("proved: experts trade outputs between tasks, and gain none" if off == 0 else "not proved")
sys.exit(off != 0)
