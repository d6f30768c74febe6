"""Counterexample to Theorem 1, below Eq. (19): the expected sum behind F_t still grows after T1.

Claim. In expectation the sum S_t = (t - 1) F_t grows by at least 2^(-T1) (T1/M) sigma_0^2 in round T1 + 1. In the
theorem it is constant from t = T1 on. Let N = 2, M = 3, w_n = sigma_0 v_n, v_n = e_n, s = 1. Proof. (a) A model is the
sum of the ground truths that it has learned, and |w_n - w|^2 is sigma_0^2 for each other ground truth in it. So S_t
never falls. (b) The first T1 tasks are all the same with probability 2^(1 - T1), and the next task is the other one
with probability 1/2. (c) Gates have moved along the first signal only. So all outputs for the other task are 0, and
each expert gets it with probability 1/M. (d) This expert forgets all its L_m arrivals. So S_t grows on average by sum_m
L_m/M = T1/M, in units of sigma_0^2.

Robust: The proof allows any t > T1, M, N, d, beta, eta, alpha, lambda and Gamma, with or without termination. An expert
not chosen yet for a task has the largest output for it. So the growth in a round is at least E[sum_m L_m (1 - K_m/N)]/M
in units of sigma_0^2, where expert m has had L_m arrivals of K_m tasks.

Objection: For N fixed and eta -> 0 this is small. But the theorem has an equality, with eta = 0.5 in Fig. 2. For s = 2,
N = 6 the script finds forgetting at 2 T1 well above the theorem's value, because experts then keep moving.
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, EXPLORED = 3, 4  # M and T1 = M/eta, for eta = 3/4


def forgotten(tasks, experts):
    """(t - 1) F_t of (15) over sigma_0^2, at each t."""
    met = [set() for _ in range(EXPERTS)]
    at_first, sums = [], []
    for task, expert in zip(tasks, experts, strict=True):
        met[expert].add(task)
        errors = [len(met[by] - {of}) for of, by in zip(tasks, experts, strict=True)][: len(at_first) + 1]
        at_first += errors[len(at_first) :]
        sums.append(sum(errors) - sum(at_first))
    return sums


growth = Fraction(0)
for tasks in product(range(2), repeat=EXPLORED + 1):
    for first in product(range(EXPERTS), repeat=EXPLORED):
        grown = [sums[-1] - sums[-2] for last in range(EXPERTS) if (sums := forgotten(tasks, (*first, last)))]
        assert min(grown) >= 0
        if len(set(tasks[:-1])) == 1 and tasks[-1] != tasks[0]:
            least = Fraction(sum(grown), EXPERTS)  # the same for all first routes, whatever their probabilities are
            assert least == Fraction(EXPLORED, EXPERTS)
    if len(set(tasks[:-1])) == 1 and tasks[-1] != tasks[0]:
        growth += least / 2 ** (EXPLORED + 1)
print(f"E[T1 F_(T1+1)] - E[(T1 - 1) F_T1] is at least {growth} sigma_0^2; the theorem says 0")
print("violated: forgetting goes on after T1" if growth > 0 else "not violated")
sys.exit(growth == 0)
