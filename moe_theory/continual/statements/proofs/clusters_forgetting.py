"""Counterexample to (19), (21) of Theorem 2: (t - 1) E[F_t] >= sigma_0^2/6, but the bounds are 0 and O(sigma_0^3).

With probability 1/(2 M) the first expert also gets the second task, of the other cluster, and forgets by sigma_0^2. But
(19) and (21) count only the spread inside clusters. In units of sigma_0, let w_n be e_k and e_k + eps f, and v_n be e_k
and (1 + eps^3) e_k for k = 1, 2. Let eps = sigma_0^.5 = 1/20, e_1, e_2, f orthonormal, s = 1, d = 3, M = 3 >= K ln K =
1.4. Proof. (a) A model is the sum of the e_k that it has learned. The other cluster's e_k adds 1 to an earlier task's
error, which never falls. (b) No gate has moved along the other signal, so each expert gets the second task with
probability 1/M. So (t - 1) E[F_t] >= 1/(2 M) for t >= 2. (c) W = Delta = 1 + eps^2/2, so (19) is 0 for any loads. (d)
In (21) the first two sums add up to at most 0, because L_t >= L_T1. An expert with k arrivals after T1 adds to the
third sum at most Psi_1 k r^(k - 1) <= Psi_1 (1 + r + ...) = d Psi_1. All add at most M d Psi_1, with Psi_1 = eps^2/2.

Robust: The proof allows any t, beta, eta, alpha, lambda and Gamma, and any M and d with eps^2 < 1/(2 M^2 d), so all
small sigma_0. Clusters of J tasks, e_k + j eps f/(J - 1) with (1 + j eps^3) e_k for j < J, allow any M from 3 to 2 J -
1, with W >= Delta. Appendix J prints the exponent in the third sum of (21) as L_t - L_T1 and as L_t - L_T1 - 1, and its
sums give L_tau - L_T1. The bound M d Psi_1 holds for all three.

Objection: With one sample there is little forgetting. But the theorem has a strict bound for each t. With s = 2, N = 24
and K = 6 the script finds forgetting at T1 and 2 T1 of order sigma_0^2, many times both bounds.
"""

import sys
from fractions import Fraction
from itertools import product

FEATURES, EPS = 3, Fraction(1, 20)  # d
RATIO = 1 - Fraction(1, FEATURES)  # r


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def forgetting(one, other):
    """F_2 of (15) where one expert gets both tasks: a model is the sum of the e_k that it has served."""
    first = (*one[:2], 0)
    second = (*map(max, one[:2], other[:2]), 0)
    return distance(second, one) - distance(first, one)


is_violated = all(max(k * RATIO ** (k - 1), sum(RATIO**j for j in range(1, k + 1))) <= FEATURES for k in range(1, 60))
for tasks, experts in ((2, 3), (3, 5)):  # J, M
    truths = [(1 - k, k, EPS * Fraction(j, tasks - 1)) for k in range(2) for j in range(tasks)]
    pairs = list(product(truths, truths))
    found = sum(Fraction(forgetting(*pair)) for pair in pairs) / len(pairs) / experts  # 0 if of one cluster
    norm = sum(distance(truth, (0, 0, 0)) for truth in truths) / len(truths)
    apart = sum(distance(*pair) for pair in pairs) / len(pairs)
    inside = 2 * sum(distance(*pair) for pair in pairs if pair[0][:2] == pair[1][:2]) / len(pairs)
    most = experts * FEATURES * inside
    print(f"M = {experts}: in sigma_0^2 E[F_2] is {found}, and (t - 1) E[F_t] is that or more for every t")
    print(f"(19) is {norm - apart} times a sum that is not positive; (t - 1) times (21) is at most {most}")
    is_violated = is_violated and norm >= apart and found == Fraction(1, 2 * experts) > 2 * most
print("violated: both bounds are below it" if is_violated else "not violated")
sys.exit(not is_violated)
