"""Counterexample to Theorem 1, Eq. (19): at t = 2 mean forgetting is sigma_0^2/(2 M), but the bound is 0.

Let N = 2, M >= 3 > N ln N = 1.4, w_n = sigma_0 e_n, v_n = e_n and s = 1 < d. Proof. (a) Delta = (2 + 2) sigma_0^2/4 =
sigma_0^2 = W, so the two terms of (19) cancel for any loads. (b) F_t >= 0, because for s = 1 a model is the sum of the
ground truths that it has learned, and an earlier task's error never falls. (c) With probability 1/2, n_2 differs from
n_1. The gates' first step was along the signal of n_1, which is orthogonal to n_2's. So all outputs for n_2 are 0, and
m_2 = m_1 has probability 1/M. (d) The model is then w_1 + w_2, with error sigma_0^2 on task n_1. Otherwise F_2 = 0.

Robust: The proof allows any M, d, beta, alpha, lambda and eta, and every t from 2 to T1. With s > 1 and noise, W =
Delta still holds. At t = 2 the step P (w_2 - w_1) has at least its part along v_2, so F_2 >= sigma_0^2 if one expert
has both tasks. For N tasks E[F_2] is (1 - 1/N)/M, but (19) says at most (1 - 2/N) r (1 - r)/M.

Objection: In early rounds forgetting is small, and only signals are learned. But the bound is strict for each t of
exploration. At N = 6 and s = 2 the script finds forgetting at T1 far above (19).
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


found = printed = Fraction(0)
chance = Fraction(1, TASKS * EXPERTS) ** 2
apart = Fraction(2 * TASKS * (TASKS - 1), TASKS**2)  # Delta; W = 1
for tasks in product(range(TASKS), repeat=2):
    for experts in product(range(EXPERTS), repeat=2):
        forgotten = forgetting(tasks, experts)
        assert tasks[0] != tasks[1] or forgotten == 0  # so the routes of a repeat do not matter
        found += chance * forgotten
        fading = RATIO ** (1 + (experts[0] == experts[1])) - RATIO  # r^L_t - r^L_tau of the first arrival
        printed += chance * (fading - fading * apart)
print(f"E[F_2] = {found} sigma_0^2; (19) says less than {printed}, on every path")
print("violated: forgetting is positive" if found > 0 == printed else "not violated")
sys.exit(not found > 0 == printed)
