"""Proposition 4, Eq. (18): two tasks, the one the opposite of the other.

Let N = 2 with truths w and -w, |w| = 1, and signals along them, s < d samples, any beta, noise and first model on that
line. Every arrival's data span the line of w, so that the model is the truth of the last task. Of the T tasks that G_T
averages over, the last has error 0, and each earlier one has 0 or |2 w|^2 = 4 with chance 1/2: E[G_T] = 2 - 2/T. (18)
has W = 1 and, over the pairs n != n', (4 + 4)/N^2 = 2, so that it says r^T + 2 (1 - r^T) = 2 - r^T, r = 1 - s/d. They
are equal only if T r^T = 2. With r = p/q in lowest terms p^T divides 2, so p = 1 and T = 2 q^T > T: never. The limit
may be missed as well: with s = 1, d = 2 and unit truths w_n = v_n of cosine -3/5, arrivals of neither task move (1, 2),
where the errors are 4 and 4. (18) tends to 8/5.

Robust: T >= 2, d, s, beta, the noise and the first model on the line do not matter.

Objection: two opposite truths are special, and 2/T tends to 0. (18) is an equality for any pool of truths and every T;
for the second pair its limit is 2.5 times too small, and with signals along truths it is off at Fig. 2's sizes, too.
"""

import sys
from fractions import Fraction
from itertools import product


def step(model, truth):
    """(5) with the one sample v = w: along the truth, of length 1, the model becomes the truth."""
    gap = sum(a * (a - b) for a, b in zip(truth, model, strict=True))
    return tuple(b + gap * a for a, b in zip(truth, model, strict=True))


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def error(truths, rounds):
    """E[G_T]: all sequences of tasks are gone through."""
    total = Fraction(0)
    for tasks in product(truths, repeat=rounds):
        model = (Fraction(0), Fraction(0))
        for truth in tasks:
            model = step(model, truth)
        total += sum(distance(model, truth) for truth in tasks)
    return total / rounds / 2**rounds


def apart(truths):  # what (18) tends to
    return Fraction(sum(distance(one, other) for one in truths for other in truths)) / 4


def printed(truths, rounds, ratio=Fraction(1, 2)):  # s = 1, d = 2
    return ratio**rounds + (1 - ratio**rounds) * apart(truths)


opposite, oblique = [(1, 0), (-1, 0)], [(1, 0), (Fraction(-3, 5), Fraction(4, 5))]
differ = [error(opposite, rounds) != printed(opposite, rounds) for rounds in range(2, 7)]
print(f"opposite truths, T = 6: {error(opposite, 6)}; (18) says {printed(opposite, 6)}")
limit = (1, 2)
still = all(step(limit, truth) == limit for truth in oblique)
errors = [distance(limit, truth) for truth in oblique]
print(f"cosine -3/5, T without end: {errors[0]} and {errors[1]}; (18) tends to {apart(oblique)}")
is_violated = all(differ) and still and min(errors) > apart(oblique)
print("violated: the two differ at T = 2, ..., 6" if is_violated else "not violated")
sys.exit(not is_violated)
