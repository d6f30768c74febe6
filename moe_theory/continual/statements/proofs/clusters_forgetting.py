"""Theorem 2, Eqs. (19) and (21): two clusters of two tasks, N = 4, and M = 3 experts.

In units of sigma_0 truths are e_k and e_k + eps f, k = 1, 2, eps = sigma_0^.5 = 1/10, signals e_k and (1 + eps^3) e_k,
all orthogonal, s = 1, d = 3. M >= K ln K = 1.4. A model is the sum of the e_k that it has met, its error 1 for the
other cluster's and eps^2 where f is in the truth, which no sample shows: an earlier task's error never falls. If task 2
is of the other cluster, chance 1/2, gates have not moved along its signal: it meets the first expert with chance 1/M.
So (t - 1) E[F_t] >= 1/(2 M) for every t >= 2. W = Delta = 1 + eps^2/2. So (19) is 0 for any loads. In (21) the first
two sums add up to 0 or less, as L_t >= L_T1; the third is at most Psi_1 k r^(k - 1) for an expert with k arrivals after
T1, in all M d Psi_1, Psi_1 = eps^2/2.

Robust: all t, beta, eta, alpha, lambda, Gamma, and all M, d with eps^2 < 1/(2 M^2 d), so all small sigma_0; Appendix
J's exponent L_tau - L_T1 in the third sum of (21) has the bound M d Psi_1 too, and Psi_1 with another factor 2 changes
nothing.

Objection: one sample, and little forgetting. The theorem has a strict bound for each t; at N = 24, K = 6, s = 2
forgetting at T1 and 2 T1 is of order sigma_0^2, many times both bounds.
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, FEATURES, EPS = 3, 3, Fraction(1, 10)  # M, d
RATIO = 1 - Fraction(1, FEATURES)  # r
TRUTHS = [(1, 0, 0), (1, 0, EPS), (0, 1, 0), (0, 1, EPS)]
CLUSTER = (0, 0, 1, 1)


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def forgetting(one, other):
    """F_2 of (15) where one expert gets both tasks."""
    first, second = (
        [int(axis in met) for axis in range(3)] for met in ({CLUSTER[one]}, {CLUSTER[one], CLUSTER[other]})
    )
    return distance(second, TRUTHS[one]) - distance(first, TRUTHS[one])


pairs = list(product(range(4), repeat=2))
found = sum(Fraction(forgetting(one, other), EXPERTS) for one, other in pairs) / 16  # 0 where they are of one cluster
norm = sum(distance(truth, (0, 0, 0)) for truth in TRUTHS) / 4
apart = sum(distance(TRUTHS[one], TRUTHS[other]) for one, other in pairs) / 16
inside = sum(distance(TRUTHS[one], TRUTHS[other]) for one, other in pairs if CLUSTER[one] == CLUSTER[other]) / 8
largest = max(max(k * RATIO ** (k - 1), sum(RATIO**j for j in range(1, k + 1))) for k in range(1, 60))
assert largest <= FEATURES
print(f"in sigma_0^2, (t - 1) E[F_t] is at least {found} for every t, and E[F_2] is {found}")
print(f"(19) is {norm - apart} times a sum of loads; (t - 1) times (21) is at most {EXPERTS * FEATURES * inside}")
is_violated = norm == apart and found > 2 * EXPERTS * FEATURES * inside
print("violated: both bounds are below it" if is_violated else "not violated")
sys.exit(not is_violated)
