"""Theorem 2: a settled state stays settled, and no model moves again.

Claim. Call a state settled if, for every task n, every expert whose output for n is within lambda of the largest output
served n last. Such an expert has the model w_n. Proof. (a) The expert m that is chosen for n is one of them, because
the noise r is below lambda. It does not move, and its cost c = 0 - own b_m - (1 - own) mean, with a share own, is at
most 0. (b) With pi = 1/M its output for n rises by (M - 1) e, where e = -u c / M >= 0, and all other outputs for n fall
by e. Outputs for other tasks stay. (c) If m had the largest output, this output rises and the others fall. Otherwise
all outputs but m's fall equally, and only m comes nearer to the largest or passes it. So an expert within lambda was
there before or is m, and it served n last. The program takes every settled state of three experts with outputs for two
tasks on a grid, every choice and three sizes of e.

Robust: The proof allows any M, N, lambda, share own in [0, 1] and earlier costs.

Objection: With pi the true softmax, the others fall by unequal amounts. If m alone is within lambda, it rises and the
rest fall, so the same holds. If several are, an expert just beyond lambda can come within.

Caveat: Experts fit each task in one update, and gate inputs have no noise.
"""

import sys
from fractions import Fraction
from itertools import product

M, N, LAMBDA = 3, 2, 1
GRID = range(4)


def near(outputs):
    return [m for m in range(M) if outputs[m] >= max(outputs) - LAMBDA]


def is_settled(H, last):
    return all(last[m] == n for n in range(N) for m in near([row[n] for row in H]))


num_states, num_steps, left = 0, 0, 0
for last in product(range(N), repeat=M):
    for flat in product(GRID, repeat=M * N):
        H = [flat[m * N : (m + 1) * N] for m in range(M)]
        if not is_settled(H, last):
            continue
        num_states += 1
        for n, e in product(range(N), (Fraction(0), Fraction(1, 3), Fraction(5, 2))):
            for m in near([row[n] for row in H]):
                after = [[h + (k == n) * ((M - 1) * e if j == m else -e) for k, h in enumerate(H[j])] for j in range(M)]
                num_steps += 1
                left += not (is_settled(after, last) and last[m] == n)
print(f"settled states: {num_states}; rounds from them: {num_steps}; of these that move a model or unsettle: {left}")
is_proved = num_states > 0 and left == 0
print("proved: a settled state stays settled" if is_proved else "not proved")
sys.exit(not is_proved)
