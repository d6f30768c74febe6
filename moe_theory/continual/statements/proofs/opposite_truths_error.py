"""Counterexample to Proposition 4, Eq. (18): for two opposite ground truths E[G_T] is 2 - 2/T, not 2 - r^T.

Let N = 2, w and -w be the ground truths with |w| = 1, signals along w, s < d, sigma_t > 0 if s >= 2, and the first
model on that line. Proof. (a) The one expert always equals its last task's ground truth. In G_T the last of the T tasks
has error 0, and each earlier task has error 0 or |2 w|^2 = 4, each with probability 1/2. So E[G_T] = 2 - 2/T. (b) (18)
has W = 1 and, over the pairs n != n', (4 + 4)/N^2 = 2. So it says 2 - r^T with r = 1 - s/d. (c) Both are equal only if
T r^T = 2, which never holds. If r = p/q in lowest terms, p^T divides 2, so p = 1 and T = 2 q^T > T. The limit can also
be wrong. Let s = 1, d = 2, w_n = v_n, unit vectors of cosine -3/5. Neither task moves (1, 2), where both errors are 4.
From 0 the first arrival leads to distance 2 from it, across its signal. Each switch of tasks multiplies this distance
by 3/5. So E[G_T] tends to 4, and (18) to 8/5.

Robust: The proof allows any T >= 2, d, s, beta, noise and first model on that line.

Objection: Two opposite ground truths are special, and 2/T tends to 0. But (18) is an equality for any pool and every T,
and its limit may be 2.5 times too small. The claim continual.proposition-4.generalization-error finds it wrong at Fig.
2's sizes.
"""

import sys
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product


def step(model, truth):
    """(5) with the one sample v = w, of length 1: the model becomes the ground truth."""
    gap = sum(a * (a - b) for a, b in zip(truth, model, strict=True))
    return tuple(b + gap * a for a, b in zip(truth, model, strict=True))


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def ends(truths, rounds):  # all sequences of tasks, and the model after each, from 0
    return [(tasks, reduce(step, tasks, (Fraction(0), Fraction(0)))) for tasks in product(truths, repeat=rounds)]


def error(truths, rounds):  # E[G_T]
    return sum(distance(model, truth) for tasks, model in ends(truths, rounds) for truth in tasks) / rounds / 2**rounds


def apart(truths):  # what (18) tends to
    return Fraction(sum(distance(one, other) for one, other in product(truths, truths))) / 4


def printed(truths, rounds, ratio=Fraction(1, 2)):  # s = 1, d = 2; W = 1
    return ratio**rounds + (1 - ratio**rounds) * apart(truths)


opposite, oblique, limit = [(1, 0), (-1, 0)], [(1, 0), (Fraction(-3, 5), Fraction(4, 5))], (1, 2)
error_1, error_2 = (distance(limit, truth) for truth in oblique)
differ = all(error(opposite, rounds) == 2 - Fraction(2, rounds) != printed(opposite, rounds) for rounds in range(2, 7))
switches = [(sum(a != b for a, b in pairwise(tasks)), distance(model, limit)) for tasks, model in ends(oblique, 6)]
shrinks = all(square == 4 * Fraction(9, 25) ** number for number, square in switches)
print(f"opposite truths, T = 6: {error(opposite, 6)}; (18) says {printed(opposite, 6)}")
print(f"cosine -3/5, T without end: {error_1} and {error_2}; (18) tends to {apart(oblique)}")
is_violated = differ and shrinks and min(error_1, error_2) > apart(oblique)
print("violated: the two differ at T = 2, ..., 6" if is_violated else "not violated")
sys.exit(not is_violated)
