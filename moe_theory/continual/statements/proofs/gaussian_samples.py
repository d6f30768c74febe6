"""Expected forgetting has a closed form if all samples are Gaussian and routes ignore tasks and data.

The samples' span is uniformly random, so E P = (s/d) I = (1 - r) I. Proof. (a) By (5) w_t - w_i = (I - P)(w_{t-1} -
w_i) + P (w_n - w_i). The two parts are orthogonal. So E|w_t - w_i|^2 = r E|w_{t-1} - w_i|^2 + (1 - r) |w_n - w_i|^2.
(b) Let an expert start at 0 and have L_t arrivals. The error for the task of its k-th arrival is r^L_t |w_i|^2 plus the
sum over l of (1 - r) r^(L_t - l) |w_{n_l} - w_i|^2. (c) Tasks are independent. So the mean square is W, and the mean
distance is Delta for l != k and 0 for l = k. The weights sum to 1 - r^L_t. (d) So the mean error is r^L_t W + (1 -
r^L_t - (1 - r) r^(L_t - k)) Delta. Right after that arrival it is r^k W + (1 - r^k - (1 - r)) Delta with k = L_tau. The
difference is the term of F_t. For one expert L_t = t and L_tau = tau. The program takes all tasks and routes of two
experts, d = 2, s = 1. Its four lines at 45 degrees have a random line's first two moments, and P enters at most twice.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = [(1, 2), (3, -1)]  # N = 2
LINES = [(1, 0), (0, 1), (1, 1), (1, -1)]
RATIO, ROUNDS = Fraction(1, 2), 3  # r = 1 - s/d, t


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def learn(model, truth, line):
    gap = Fraction(sum(v * (a - b) for v, a, b in zip(line, truth, model, strict=True)), line[0] ** 2 + line[1] ** 2)
    return tuple(b + gap * v for v, b in zip(line, model, strict=True))


def forgetting(route, tasks, lines):
    """(15)."""
    models, learned = [(Fraction(0), Fraction(0))] * 2, []
    for expert, task, line in zip(route, tasks, lines, strict=True):
        models[expert] = learn(models[expert], TRUTHS[task], line)
        learned.append(distance(models[expert], TRUTHS[task]))
    now = [distance(models[expert], TRUTHS[task]) for expert, task in zip(route, tasks, strict=True)]
    return sum(now[:-1]) - sum(learned[:-1])


def stated(route):
    norm = Fraction(sum(distance(truth, (0, 0)) for truth in TRUTHS), 2)
    apart = Fraction(sum(distance(one, other) for one in TRUTHS for other in TRUTHS), 4)
    total = Fraction(0)
    for tau, expert in enumerate(route[:-1], 1):
        last, own = route.count(expert), route[:tau].count(expert)
        fading = RATIO**own - RATIO**last
        total += (fading + (1 - RATIO) * (1 - RATIO ** (last - own))) * apart - fading * norm
    return total


pairs = []
for rest in product(range(2), repeat=ROUNDS - 1):
    route = (0, *rest)  # the other half is symmetric
    every = product(product(range(2), repeat=ROUNDS), product(LINES, repeat=ROUNDS))
    pairs.append((sum(forgetting(route, *each) for each in every) / 8**ROUNDS, stated(route)))
print(f"(t - 1) E[F_t] by route: {', '.join(str(mean) for mean, _ in pairs)}; stated: {pairs[0][1]} for one expert")
print("proved: equal for every route" if all(a == b for a, b in pairs) else "not proved")
sys.exit(not all(a == b for a, b in pairs))
