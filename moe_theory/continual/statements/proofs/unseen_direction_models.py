"""Counterexample to Lemma 16, first sentence: an arrival after T1 lowers its own error.

Claim. In round i = T1 + 1 the squared error falls with probability 1: |w_i - w_n|^2 < |w_T1 - w_n|^2. The lemma, with t
= i, says that they are equal. Let w_n = sigma_0 (v_n + e_0), signals be orthogonal to e_0, M > N, 2 <= s < d and
sigma_t > 0. Proof. (a) Only the Gaussian samples have a part along e_0. After any given sequence of tasks an expert's
model is a rational function of the Gaussian samples that it has received. (b) If all of these are orthogonal to e_0,
the model has no part along e_0 and is no ground truth. So it is a ground truth only with probability 0, for each of the
finitely many sequences and any router. (c) In round i a Gaussian sample g of task n has g'(w_n - w) = 0 for the model w
of any of the M experts only with probability 0. So m_i moves, although its choice depends on g, and the move is
orthogonal to the error that is left.

Robust: The proof allows any N, M, d, s >= 2, sigma_t > 0, beta, T1, router, gates and termination. Ground truths must
not lie along their signals. If they do, an expert that has served two tasks also moves.

Objection: Moves are small where an expert has repeated a task often. But the lemma is an equality, and experts do not
only repeat. The script, with w_n along v_n, finds changes of order sigma_0^2 within T1/2 rounds after T1.
"""

import sys
from fractions import Fraction
from itertools import product

SIGNALS = [(1, 0, 0, 0), (0, 1, 0, 0)]  # N = 2, d = 4, s = 2
TRUTHS = [(1, 0, 0, 1), (0, 1, 0, 1)]  # e_0 last
INSIDE = [(1, 1, 1, 0), (1, -1, 2, 0), (2, 1, -1, 0)]  # Gaussian samples off e_0, one a round
GENERIC = [(1, 2, 3, 4), (2, -1, 1, 3), (-1, 3, 2, 1)]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def learn(model, task, sample):
    """(5): the signal, and then the sample's part orthogonal to it."""
    signal = SIGNALS[task]
    beside = [Fraction(b) - dot(signal, sample) * a for a, b in zip(signal, sample, strict=True)]
    for row in (signal, beside):
        gap = Fraction(dot(row, TRUTHS[task]) - dot(row, model)) / dot(row, row)
        model = tuple(b + gap * a for a, b in zip(row, model, strict=True))
    return model


def distance(model, task):
    return sum((a - b) ** 2 for a, b in zip(model, TRUTHS[task], strict=True))


off, falls = [], []
for length in range(4):
    for tasks in product(range(2), repeat=length):
        inside = generic = (Fraction(0),) * 4
        for task, sample, other in zip(tasks, INSIDE, GENERIC, strict=False):
            inside, generic = learn(inside, task, sample), learn(generic, task, other)
        for task in range(2):
            off.append(inside[3] == 0 and distance(inside, task) > 0)
            falls.append(distance(generic, task) - distance(learn(generic, task, (3, 1, -2, 7)), task))
print(f"least fall of the squared error in round T1 + 1, at one draw of samples: {min(falls)} sigma_0^2, not 0")
is_violated = all(off) and min(falls) > 0
print("violated: the error falls at every arrival, with probability 1" if is_violated else "not violated")
sys.exit(not is_violated)
