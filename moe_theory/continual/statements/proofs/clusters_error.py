"""Counterexample to Theorem 2, Eq. (22): the error tends to sigma_0^2 or more, but the bound to sigma_0^3/2.

An expert that has served both clusters has error 1 or more, but (22) tends to Psi_1 = eps^2/2. In units of sigma_0 let
w_n be e_k and e_k + eps f for k = 1, 2, with v_n = e_k and (1 + eps^3) e_k, eps = sigma_0^.5 = 1/10, e_1, e_2, f
orthonormal, s = 1, d = 3, N = 4 and M = 3. Proof. (a) A model is the sum of the e_k that it has learned. (b) Only a
cluster's arrivals change outputs for it, and they lower the chosen expert's output. So experts not chosen for it have
the largest output. (c) By T all experts have served both with at least the probability p of two collections of M
coupons. Then E[G_T] >= p -> 1. (d) Let A = max(W, Delta, Psi_2). In (22) an arrival up to T1 adds at most A, and an
expert's k later ones add r^k A + Psi_1 each. As k r^k <= r + ... = d - 1, (22) is at most A (T1 + M (d - 1))/T + Psi_1.

Robust: The proof allows any d, beta, eta, alpha, lambda and Gamma. Clusters of J tasks, e_k + j eps f/(J - 1) with (1 +
j eps^3) e_k, j < J, allow 3 <= M < 2 J. Appendix J's exponents, lower by 1, lower (22).

Objection: With one sample an expert learns only a signal. But signals tell clusters apart and are orthogonal. With s =
2, N = 24, K = 6 the script finds the error at 2 T1 far above the bound.
"""

import sys
from collections import defaultdict
from fractions import Fraction
from itertools import product

FEATURES, EPS = 3, Fraction(1, 10)  # d


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def collected(experts, rounds):
    """Probability that all experts have served both clusters, if one of u left is chosen with probability u/M."""
    weights = {(experts, experts): 1}  # those left for each cluster; over (2 M)^rounds
    for _ in range(rounds):
        after = defaultdict(int)
        for (left, weight), cluster in product(weights.items(), range(2)):
            fewer = tuple(each - (k == cluster) for k, each in enumerate(left))
            after[left] += (experts - left[cluster]) * weight
            after[fewer] += left[cluster] * weight
        weights = {left: weight for left, weight in after.items() if weight}
    return Fraction(weights[0, 0], (2 * experts) ** rounds)


def sides(tasks, experts, rounds):  # E[G_T] at least, in thousandths, and (22) at most, for eta = 1/2, T1 = M/eta
    truths = [(1 - k, k, EPS * Fraction(j, tasks - 1)) for k in range(2) for j in range(tasks)]
    pairs = list(product(truths, truths))
    norm = sum(distance(truth, (0, 0, 0)) for truth in truths) / (2 * tasks)
    apart = sum(distance(*pair) for pair in pairs) / len(pairs)  # Delta, and Psi_2 too
    inside = 2 * sum(distance(*pair) for pair in pairs if pair[0][:2] == pair[1][:2]) / len(pairs)  # Psi_1
    found = min(distance((1, 1, 0), truth) for truth in truths) * collected(experts, rounds)
    bound = max(norm, apart) * Fraction(2 * experts + experts * (FEATURES - 1), rounds) + inside
    return Fraction(found * 1000 // 1, 1000), bound


is_violated = True
for tasks, experts, rounds in ((2, 3, 40), (3, 5, 80)):
    found, bound = sides(tasks, experts, rounds)
    is_violated = is_violated and found > bound
    print(f"J = {tasks}, M = {experts}, T = {rounds}: E[G_T] is {found} sigma_0^2 or more; (22) says less than {bound}")
print("violated: the error is above it" if is_violated else "not violated")
sys.exit(not is_violated)
