"""Theorem 2, Eq. (22): two clusters of two tasks, whose every expert meets both.

In units of sigma_0 truths are e_k and e_k + eps f, k = 1, 2, eps = sigma_0^.5 = 1/10, signals e_k and (1 + eps^3) e_k,
all orthogonal, s = 1, d = 3; N = 4, M = 3. A model is the sum of the e_k that it has met: one that has met both is
wrong about each task by 1 or more. As in (20), experts not chosen yet for a cluster have the largest output for it, as
only its arrivals move outputs for it and lower the chosen one: by T all have met both with the chance p of two
collections of M coupons, or more. Hence E[G_T] >= p, and p -> 1. With A = max(W, Delta, Psi_2), (22) is at most A for
an arrival up to T1 and r^k A + Psi_1 for one after it, where its expert has k of these: in all A (T1 + M (d - 1))/T +
Psi_1, for k r^k <= r + r^2 + ... = d - 1. It tends to Psi_1.

Robust: M, d, beta, eta, alpha, lambda, Gamma, smaller eps; Appendix J's exponents lower by 1 make the bound smaller;
all T from some T on.

Objection: with one sample an expert learns a signal and nothing else. Signals are what tells clusters apart, and these
are orthogonal; at N = 24, K = 6, d = 8, s = 2 the error at 2 T1 is 3.3 sigma_0^2 and the bound at most 0.89.
"""

import sys
from collections import defaultdict
from fractions import Fraction
from itertools import product

EXPERTS, FEATURES, EPS, EXPLORED, ROUNDS = 3, 3, Fraction(1, 10), 6, 40  # M, d, eps, T1 = M/eta for eta = 1/2, T
TRUTHS = [(1, 0, 0), (1, 0, EPS), (0, 1, 0), (0, 1, EPS)]


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def collected(rounds):
    """Chance that all have met both, where one of u left is chosen with chance u/M and no more."""
    weights = {(EXPERTS, EXPERTS): 1}  # those left for each cluster; over (2 M)^rounds
    for _ in range(rounds):
        after = defaultdict(int)
        for (left, weight), cluster in product(weights.items(), range(2)):
            fewer = tuple(each - (k == cluster) for k, each in enumerate(left))
            after[left] += (EXPERTS - left[cluster]) * weight
            after[fewer] += left[cluster] * weight
        weights = {left: weight for left, weight in after.items() if weight}
    return Fraction(weights[0, 0], (2 * EXPERTS) ** rounds)


norm = sum(distance(truth, (0, 0, 0)) for truth in TRUTHS) / 4
apart = sum(distance(one, other) for one, other in product(TRUTHS, TRUTHS)) / 16  # Delta, and Psi_2 too
inside = sum(distance(one, other) for one, other in product(TRUTHS, TRUTHS) if one[:2] == other[:2]) / 8  # Psi_1
found = min(distance((1, 1, 0), truth) for truth in TRUTHS) * collected(ROUNDS)
bound = max(norm, apart) * Fraction(EXPLORED + EXPERTS * (FEATURES - 1), ROUNDS) + inside
print(f"E[G_T] at T = {ROUNDS}: at least {found} sigma_0^2")
print(f"(22) says less than {bound}, whatever the loads are")
print("violated: the error is above it" if found > bound else "not violated")
sys.exit(found <= bound)
