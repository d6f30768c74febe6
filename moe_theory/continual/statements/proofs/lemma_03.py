"""Counterexample to Lemma 3: a repeated task moves its expert by sigma_0^2/4 in mean square, not by 0.

The repeat's Gaussian sample is in a direction in which the expert still remembers an earlier task. Let d = 3 and s = 2:
one sample is the signal, and the other is Gaussian. In units of sigma_0, let v_n = w_n = e_n. An expert gets task 2,
then task 1 twice. Proof. (a) After task 2 its model is e_2. (b) From task 1 it learns e_1. Let g be the random
direction of the second sample in the plane of e_2 and e_3. The error -e_2 loses its part along g, so the expert keeps
e_2 - (g'e_2) g. (c) The second arrival of task 1 has another direction h. The expert moves by -h'(e_2 - (g'e_2) g) h.
This is 0 only if h is along g or g is along e_2, so with probability 0. (d) On average half of a vector's square lies
along a random direction of a plane. So the mean square is 1/2 (1 - 1/2) = 1/4.

Robust: The argument works for any s >= 2 and sigma_t > 0. If an expert differs from the ground truth, a Gaussian sample
g of the repeat has <g, w_n - w> = 0 only with probability 0. The lemma holds only for s = 1, where a repeat's data are
the same up to beta, or where the model is the ground truth.

Objection: (5) is stationary where the data are fitted. But by Definition 1 the repeat has new samples.
"""

import sys
from fractions import Fraction

TRUTHS = {1: (1, 0, 0), 2: (0, 1, 0)}
# Four lines at 45 degrees: their second moments in the plane of e_2 and e_3 are those of a random direction.
LINES = [(0, 1, 0), (0, 0, 1), (0, 1, 1), (0, 1, -1)]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def learn(model, truth, line):
    """(5) with the samples v = w, of length 1, and one whose part across v is along a line."""
    for sample in (truth, line):
        gap = Fraction(dot(sample, truth) - dot(sample, model)) / dot(sample, sample)
        model = tuple(b + gap * a for a, b in zip(sample, model, strict=True))
    return model


def square_of_move(first, second):
    before = learn(TRUTHS[2], TRUTHS[1], first)
    moved = [a - b for a, b in zip(learn(before, TRUTHS[1], second), before, strict=True)]
    return dot(moved, moved)


mean = sum(square_of_move(first, second) for first in LINES for second in LINES) / 16
print(f"mean squared move at the repeat: {mean} sigma_0^2; Lemma 3 says 0")
print("violated: the expert moves" if mean > 0 else "not violated")
sys.exit(mean == 0)
