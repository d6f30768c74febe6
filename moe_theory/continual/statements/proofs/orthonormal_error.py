"""Counterexample to Theorem 1, Eq. (20): the error tends to 2 sigma_0^2, but the bound is 4/3 sigma_0^2.

Let N = 3, M = 4 > N ln N = 3.3, w_n = sigma_0 v_n, v_n = e_n and s = 1 < d. Proof. (a) A model is the sum of the ground
truths that it has learned. After all three tasks its error on each of them is |w_1 + w_2 + w_3 - w_n|^2 = 2 sigma_0^2.
(b) The bound (20) is a mean of W = 1 and Delta = 2 (1 - 1/N) = 4/3, whatever the loads are. (c) Only arrivals of n
change outputs for n. Each arrival lowers the chosen expert's output and raises all others, and larger outputs rise
more. So experts not chosen yet for n have the largest output. (d) If u experts are left, one of them is chosen with
probability u/M or more, also after termination. So by T all experts have served all tasks with at least the probability
p of three collections of M coupons in T arrivals. Hence E[G_T] >= 2 p, and p -> 1.

Robust: For any N >= 3, E[G_T] tends to N - 1, as for a single expert, but (20) gives less than 2. The proof also allows
any M >= N ln N, d, beta, eta, alpha, lambda, Gamma and T1, and all T from some T on.

Objection: With one sample an expert learns only a signal. But signals tell tasks apart, and these are orthonormal. At N
= 6, d = 7, s = 2 the error at 2 T1 is 1.8 times the bound. At Fig. 2's sizes (20) holds after T = 100.
"""

import sys
from collections import defaultdict
from fractions import Fraction
from itertools import product

TASKS, EXPERTS, ROUNDS = 3, 4, 40  # T1 = M/eta is 8 for eta = 1/2
ARRIVALS = range(TASKS)


def collected(rounds):
    """Probability that all experts have served all tasks, if one of u left is chosen with probability u/M."""
    weights = {(EXPERTS,) * TASKS: 1}  # those left for each task; over (N M)^rounds
    for _ in range(rounds):
        after = defaultdict(int)
        for (left, weight), task in product(weights.items(), ARRIVALS):
            fewer = tuple(each - (n == task) for n, each in enumerate(left))
            after[left] += (EXPERTS - left[task]) * weight
            after[fewer] += left[task] * weight
        weights = {left: weight for left, weight in after.items() if weight}
    return Fraction(weights[(0,) * TASKS], (TASKS * EXPERTS) ** rounds)


truths = [tuple(int(n == axis) for axis in ARRIVALS) for n in ARRIVALS]
model = [sum(each) for each in zip(*truths, strict=True)]
error = min(sum((a - b) ** 2 for a, b in zip(model, truth, strict=True)) for truth in truths)
apart = Fraction(
    sum((a - b) ** 2 for one, other in product(truths, truths) for a, b in zip(one, other, strict=True)), TASKS**2
)
chance = collected(ROUNDS)
is_violated = error * chance > max(apart, 1)
print(f"E[G_T] at T = {ROUNDS}: at least {error * chance} sigma_0^2; (20) says less than {apart}")
print(f"violated: {error} times the probability exceeds it" if is_violated else "not violated")
sys.exit(not is_violated)
