"""A single expert's E[G_T] is an independent task's error minus 2/T times a sum of covariances.

Claim. E[G_T] = g_T - (2/T) sum_tau tr C_{T,tau}, where g_T is an independent task's error and C_{T,tau} = Cov(w_T,
w_{n_tau}). Let M = 1, w_0 = 0, and sigma_t > 0 if s >= 2. Proof. (a) In |w_T|^2 + |w_{n_tau}|^2 - 2 <w_T, w_{n_tau}>
the last mean is 2 <E w_T, E w_n> + 2 tr C_{T,tau}. Without C the sum is g_T. (b) By (5) w_t = Q w_{t-1} + P w_n, and Q
and n are independent of the past. So C_{t,tau} = S C_{t-1,tau} for t > tau with S = E[Q] = (d - s)/(d - 1) (I - E[u
u']). Here Q leaves d - s random dimensions of the d - 1 across the signal's direction u. (c) If all samples are
Gaussian, S = r I, tr C_{tau,tau} = (1 - r) Delta/2, g_T = r^T W + (1 - r^T) Delta. The sum over tau of r^(T - tau) is
(1 - r^T)/(1 - r), so E[G_T] = r^T W + (1 - r^T) (1 - 1/T) Delta. The program takes all tasks. Its four lines at 45
degrees have the needed moments of a random line.
"""

import sys
from fractions import Fraction
from functools import reduce
from itertools import product

ROUNDS, LINES = 3, [(1, 0), (0, 1), (1, 1), (1, -1)]  # T


def mean(values):
    return Fraction(sum(values)) / len(values)


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def learn(model, task):
    truth, rows = task
    for row in rows:  # orthogonal ones
        gap = Fraction(dot(row, truth) - dot(row, model)) / dot(row, row)
        model = tuple(b + gap * v for v, b in zip(row, model, strict=True))
    return model


def checked(tasks, spread):
    """E[G_T] by all draws of ground truths and spans, and by the recursion whose S has the diagonal `spread`."""
    axes, traces = range(len(spread)), []
    average, norm = [mean([w[k] for w, _ in tasks]) for k in axes], mean([dot(w, w) for w, _ in tasks])
    for rounds in range(1, ROUNDS + 1):
        ends = [(reduce(learn, path, (0,) * len(spread)), path) for path in product(tasks, repeat=rounds)]
        center = [mean([w[k] for w, _ in ends]) for k in axes]
        last = [mean([w[k] * path[-1][0][k] for w, path in ends]) - center[k] * average[k] for k in axes]
        traces = [[a * b for a, b in zip(spread, each, strict=True)] for each in traces] + [last]  # diagonals of C
    square = mean([dot(w, w) for w, _ in ends]) + norm
    found = square - 2 * mean([dot(w, truth) for w, path in ends for truth, _ in path])
    return found, square - 2 * dot(center, average) - Fraction(2, ROUNDS) * sum(map(sum, traces))


half = Fraction(1, 2)
gaussian = checked([(truth, [line]) for truth in [(1, 2), (3, -1)] for line in LINES], [half] * 2)  # d = 2, s = 1
closed = half**ROUNDS * Fraction(15, 2) + (1 - half**ROUNDS) * (1 - Fraction(1, ROUNDS)) * Fraction(13, 2)
first = [((1, 2, 1), [(1, 0, 0), (0, *line)]) for line in LINES]  # d = 3, s = 2
second = [((3, -1, 2), [(0, 1, 0), (line[0], 0, line[1])]) for line in LINES]
signal = checked([*first, *second], [half * half, half * half, half])
print(f"Gaussian: E[G_3] = {gaussian[0]}, {gaussian[1]}, closed form {closed}; with signals: {signal[0]}, {signal[1]}")
holds = gaussian == (closed, closed) and signal[0] == signal[1]
print("proved: equal" if holds else "not proved")
sys.exit(not holds)
