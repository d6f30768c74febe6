"""Theorem 1: the lengths of last moves determine the sum of each expert's outputs, to first order.

Claim. Let each cost be compared with the expert's last move. Then S_j = -u (b_j - sum b / M) at every round, to first
order in outputs. S_j is the sum of expert j's outputs H = theta'v, and b_j the length of its last move, 0 before its
first.

Proof. (a) Let m learn task n from a signal orthogonal to all others. This changes only outputs for n, and S_j by -u c
(1{j = m} - 1/M), with u = eta |v|^2 / M and c = |dw| - b_m. (b) The length b_m grows by this c, and no other b changes.
So S_j and -u (b_j - sum b / M) change by the same, and both are 0 at the start. The program takes every run of three
rounds with three experts, two tasks and three lengths. So each kind of round occurs before and after each other kind.

Robust: M, N and eta may be any. How experts learn or which one is chosen does not matter, as induction has one step.

Objection: pi is 1/M only where outputs are 0. To first order in outputs this holds, as the statement says.

Caveat: first order holds for a fixed number of rounds. The terms that the softmax adds in each round are not bounded
here. Noise may be present if it is orthogonal to all signals. Delays change the order of rounds, not their sum, once
all pending rounds are complete.
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
