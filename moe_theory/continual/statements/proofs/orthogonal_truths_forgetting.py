"""Theorem 1, Eq. (19): two orthogonal truths; at t = 2 forgetting is sigma_0^2/(2 M) in mean, the bound is 0.

Truths of one length at right angles have W = Delta = sigma_0^2: the two terms of (19) cancel, and it says E[F_t] < 0
whatever the loads are. But no expert improves on an earlier task here, and one that gets both of them forgets the
first. N = 2, M >= 3 experts (more than N ln N = 1.4), w_n = sigma_0 e_n, v_n = e_n, s = 1 < d. Delta = (2 + 2)
sigma_0^2/4 = W. F_t >= 0: with s = 1 a model is the sum of the truths that it has met, and an earlier task's error only
grows. E[F_2] > 0: let n_2 differ from n_1, chance 1/2. The first step of the gates was along beta v_1, v_1 the signal
of n_1, orthogonal to n_2's, so that all outputs are 0 and m_2 = m_1 has chance 1/M. The expert then is w_1 + w_2, wrong
about task n_1 by sigma_0^2. In every other case F_2 = 0: E[F_2] = sigma_0^2/(2 M).

Robust: every t from 2 to T1, all M, d, beta, alpha, lambda, eta. With s > 1 and noise W = Delta still, and at t = 2 the
step P (w_2 - w_1) has at least its part along v_2: F_2 >= sigma_0^2 where one expert has both. For N tasks E[F_2] is (1
- 1/N)/M, and (19) says at most (1 - 2/N) r (1 - r)/M.

Objection: forgetting of early rounds is small, and signals are all that is learned. It is a strict bound for each t of
exploration, and the experts need not be alike; at N = 6 and s = 2 the witness of the statement finds forgetting at T1
far above (19).
"""

import sys
from fractions import Fraction
from itertools import product

TASKS, EXPERTS, FEATURES = 2, 3, 3  # N, M, d; s = 1, and units of sigma_0
RATIO = 1 - Fraction(1, FEATURES)  # r


def forgetting(tasks, experts):
    """F_2 of (15)."""
    models = [[0] * FEATURES for _ in range(EXPERTS)]
    errors = []
    for task, expert in zip(tasks, experts, strict=True):
        models[expert][task] = 1  # (5): the one sample is along the axis of the truth
        errors += [sum((model - (n == tasks[0])) ** 2 for n, model in enumerate(models[experts[0]]))]
    return errors[1] - errors[0]


def routed(tasks, experts):
    """Its probability, but for a repeated task, at whose routes (15) is 0."""
    assert tasks[0] != tasks[1] or forgetting(tasks, experts) == 0
    return Fraction(1, EXPERTS) ** 2


found = printed = Fraction(0)
apart = Fraction(2 * TASKS * (TASKS - 1), TASKS**2)  # Delta; W = 1
for tasks in product(range(TASKS), repeat=2):
    for experts in product(range(EXPERTS), repeat=2):
        chance = routed(tasks, experts) / TASKS**2
        found += chance * forgetting(tasks, experts)
        fading = RATIO ** (1 + (experts[0] == experts[1])) - RATIO  # r^L_t - r^L_tau of the first arrival
        printed += chance * (fading - fading * apart)
print(f"E[F_2] = {found} sigma_0^2")
print(f"(19) says less than {printed}, on every path")
print("violated: forgetting is positive" if found > 0 == printed else "not violated")
sys.exit(not found > 0 == printed)
