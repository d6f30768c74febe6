"""Lemma 3: a task twice in a row, at an expert that met another before; it moves by sigma_0^2/4 in mean square, not 0.

The repeat brings a Gaussian sample of its own, and with it a direction in which the expert still remembers an earlier
task: so it moves. d = 3, s = 2: one sample is the signal, the other one Gaussian. Signals are v_n = e_n, truths sigma_0
e_n, or e_n in units of sigma_0. An expert gets task 2, then task 1, then task 1 again. After task 2 it is e_2. Task 1
shows it e_1, and of its error -e_2 beside e_1 the part along a random direction g, the second sample's in the plane of
e_2 and e_3: it keeps e_2 - (g'e_2) g. The second arrival of task 1 has another direction h: the expert moves by -h'(e_2
- (g'e_2) g) h, which is 0 only for h along g or g along e_2, with probability 0. As half of a vector's square lies
along a random direction of a plane, the mean square of the move is 1/2 (1 - 1/2) = 1/4. Lemma 3 says that it does not
move.

Robust: true of any s >= 2 and sigma_t > 0: as long as an expert differs from the truth, a Gaussian sample g of the
repeat has <g, w_n - w> = 0 with probability 0 only. Only for s = 1, where a repeat's data are the same but for beta, or
where the model is the truth already, does the lemma hold.

Objection: both arrivals have the same ground truth, and (5) is stationary where the data are fitted. It is so for the
first arrival's data; by Definition 1 the second has samples of its own.
"""

import sys
from fractions import Fraction

TRUTHS = {1: (1, 0, 0), 2: (0, 1, 0)}
# Four lines at 45 degrees: their second moments in the plane of e_2 and e_3 are those of a random direction.
LINES = [(0, 1, 0), (0, 0, 1), (0, 1, 1), (0, 1, -1)]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def learn(model, truth, line):
    """(5) with the samples v = w, of length 1, and one whose part beside v is along a line."""
    for sample in (truth, line):
        gap = Fraction(dot(sample, truth) - dot(sample, model)) / dot(sample, sample)
        model = tuple(b + gap * a for a, b in zip(sample, model, strict=True))
    return model


def square_of_move(first, second):
    before = learn(TRUTHS[2], TRUTHS[1], first)
    moved = [a - b for a, b in zip(learn(before, TRUTHS[1], second), before, strict=True)]
    return dot(moved, moved)


mean = sum(square_of_move(first, second) for first in LINES for second in LINES) / 16
print(f"mean squared move at the repeat: {mean} sigma_0^2")
print("Lemma 3 says 0")
print("violated: the expert moves" if mean > 0 else "not violated")
sys.exit(mean == 0)
