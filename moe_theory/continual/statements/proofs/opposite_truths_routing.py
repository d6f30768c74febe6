"""Proposition 3, routing after T2: two opposite tasks, or two clusters of such; arrivals go everywhere.

Truths +-sigma_0 e, signals +-e, beta = 1: a model is the truth it met last, and |dw| v = dw, so that at pi = 1/M steps
(9) of the locality loss add up to theta_m . e = -(eta/M) (w_m - mean w) . e, at most 2 eta sigma_0/M. As long as all
|theta_m . e| <= B <= 1/8, a step differs from that by at most 6 eta sigma_0 B/M, and the auxiliary loss adds at most
2 eta alpha (1 + ln t) in all. So by induction B = 4 eta sigma_0/M + 4 eta alpha (1 + ln t) serves up to t =
M/(12 eta sigma_0) > T2, and for ever once gates are fixed. A shift of r(m) by h moves its law by |h|/lambda: (1) takes
each expert with chance 1/M, up to M B/lambda -> 0, for either task. By (11) and as gates sum to 0 (Lemma 4) each set
lacks an expert, unless all gates along e are 0; the latter not for both tasks that the last update may have had. So of
each task a share 1/M or more leaves its set; 0 stated, and 1/|M_n| to each of the set.

Robust: M, N, s < d, noise of O(sigma_0), Gamma > 0, the sets, any constants in eta = O(sigma_0^.5) and lambda =
Theta(sigma_0^1.25). A cluster's tasks may differ by O(sigma_0^1.5).

Objection: two opposite tasks are special. With six orthogonal ones and alpha = sigma_0^.5 half of the arrivals do so.

Caveat: eta alpha log(1/sigma_0) = o(lambda), as O(sigma_0^.5) allows: at eta = sigma_0^.5 alpha = o(sigma_0^.75/log).
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS = 3  # M
SCALES = [Fraction(1, 2**power) for power in (12, 16, 20)]  # q, sigma_0 = alpha = q^4, eta = q^2, lambda = q^5


def after(tasks: tuple[int, ...], routes: tuple[int, ...], q: Fraction) -> tuple[list[Fraction], list[int]]:
    """Gates along e and models over sigma_0 after these rounds of (5) and (9)."""
    gates, models = [Fraction(0)] * EXPERTS, [0] * EXPERTS
    for time, (task, chosen) in enumerate(zip(tasks, routes, strict=True), 1):
        weights = [1 + x * (1 + x / 2 * (1 + x / 3)) for x in (task * g for g in gates)]  # exponentials, to |x|^4/20
        pi = [weight / sum(weights) for weight in weights]
        cost = abs(task - models[chosen]) * q**4 + q**4 * EXPERTS * routes[:time].count(chosen) / time**2
        gates = [g - q**2 * cost * pi[chosen] * ((m == chosen) - pi[m]) * task for m, g in enumerate(gates)]
        models[chosen] = task
    return gates, models


def is_close(gates: list[Fraction], models: list[int], q: Fraction, rounds: int) -> bool:
    """Whether gates sum to 0 and are within the bound of -(eta/M) (w - mean w)."""
    mean, bound = Fraction(sum(models), EXPERTS), 4 * q**6 / EXPERTS + 4 * q**6 * rounds.bit_length()
    error = 6 * q**6 * bound * rounds / EXPERTS + 2 * q**6 * rounds.bit_length()
    return sum(gates) == 0 and all(abs(gates[m] + q**6 / EXPERTS * (models[m] - mean)) <= error for m in range(EXPERTS))


rounds, is_lemma, shares = 3, True, []
for tasks, routes in product(product((1, -1), repeat=rounds), product(range(EXPERTS), repeat=rounds)):
    gates, models = after(tasks, routes, SCALES[0])
    is_lemma = is_lemma and is_close(gates, models, SCALES[0], rounds)
    shares += [Fraction(sum(task * g < 0 for g in gates), EXPERTS) for task in (1, -1) if any(gates)]  # out of (11)
for q in SCALES:
    last = int(EXPERTS / q**3)  # T2; a number of k bits has 1 + 1/2 + ... <= k
    bound = 4 * q**6 / EXPERTS + 4 * q**6 * last.bit_length()
    is_lemma = is_lemma and bound <= Fraction(1, 8) and last <= EXPERTS / (12 * q**6)
    out = min(shares) - EXPERTS * bound / q**5
    print(f"sigma_0 = {q**4}: a share {out} or more of each task's arrivals goes outside of its set, none stated")
is_violated = is_lemma and out > Fraction(3, 10)
print("violated: about 1/M or more leave their set" if is_violated else "not violated")
sys.exit(not is_violated)
