"""Proposition 1, expert models: two opposite tasks, or two clusters of such; gates that telescope.

Truths +-sigma_0 e, signals +-e, beta = 1: a model is the truth it met last, and |dw| v = dw, so that at pi = 1/M steps
(9) of the locality loss add up to theta_m . e = -(eta/M) (w_m - mean w) . e, at most 2 eta sigma_0/M. As long as all
|theta_m . e| <= B <= 1/8, a step differs from that by at most 6 eta sigma_0 B/M, and the auxiliary loss adds at most
2 eta alpha (1 + ln t) in all. So by induction B = 4 eta sigma_0/M + 4 eta alpha (1 + ln t) serves up to t =
M/(12 eta sigma_0), far beyond T1: the law of (1) is within M B/lambda -> 0 of uniform, whatever arrives. After T1 + 1
an arrival is + or - with equal chance: with chance 1/2 - M B/lambda or more it moves the expert that gets it, by
2 sigma_0, or by sigma_0 if it is its first. No move up to T: (1/2 + M B/lambda)^(T - T1 - 1), not 1 - o(1).

Robust: M, N, s < d, noise of O(sigma_0), Gamma and whether gates are fixed, any constants in eta = O(sigma_0^.5) and
lambda = Theta(sigma_0^1.25). Tasks of a cluster may differ by O(sigma_0^1.5); a move is no O(sigma_0^1.5) either.

Objection: two opposite tasks are special. With six orthogonal ones and alpha = sigma_0^.5 every run drifts by sigma_0.

Caveat: eta alpha log(1/sigma_0) = o(lambda), as O(sigma_0^.5) allows: at eta = sigma_0^.5 alpha = o(sigma_0^.75/log).
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, ROUNDS = 3, 10  # M, rounds after T1 + 1
SCALES = [Fraction(1, 2**power) for power in (12, 16, 20)]  # q, sigma_0 = alpha = q^4, eta = q^2, lambda = q^5
HERE = Fraction(1, EXPERTS)


def is_telescoping(models: tuple[int, ...], task: int, chosen: int) -> bool:
    """Whether a step of (9) at pi = 1/M, over eta sigma_0, is that of -(w - mean w)/M; 0 is no task yet."""
    after = [task if m == chosen else w for m, w in enumerate(models)]
    steps = [-abs(task - models[chosen]) * HERE * ((m == chosen) - HERE) * task for m in range(EXPERTS)]
    old, new = ([-HERE * (w - HERE * sum(each)) for w in each] for each in (models, after))
    return steps == [b - a for a, b in zip(old, new, strict=True)]


def is_curvature_bounded(gates: tuple[Fraction, ...], limit: Fraction) -> bool:
    """Whether pi_mt (1[m = mt] - pi_m) is within 3 B/M of its value at pi = 1/M, for all mt and m."""
    weights = [1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4))) for x in gates]  # exponentials, to |x|^5/60
    pi = [weight / sum(weights) for weight in weights]
    pairs = product(range(EXPERTS), repeat=2)
    return all(abs(pi[c] * ((m == c) - pi[m]) - HERE * ((m == c) - HERE)) <= 3 * limit * HERE for c, m in pairs)


def unmoved(models: tuple[int, ...]) -> Fraction:  # chance of a round without a move, by uniform routing
    return Fraction(sum(task == model for task in (1, -1) for model in models), 2 * EXPERTS)


paths, limits, tasks = list(product((-1, 0, 1), repeat=EXPERTS)), (Fraction(1, 8), Fraction(1, 64)), (1, -1)
grid = [(gates, limit) for limit in limits for gates in product((-limit, limit / 2, limit), repeat=EXPERTS)]
steps = [is_telescoping(models, *route) for models in paths for route in product(tasks, range(EXPERTS))]
is_lemma = all(steps + [is_curvature_bounded(*each) for each in grid])
for q in SCALES:
    last = int(EXPERTS / q**2) + 1 + ROUNDS
    bound = 4 * q**6 * HERE + 4 * q**6 * last.bit_length()  # B: n of k bits has 1 + 1/2 + ... + 1/n <= k
    is_lemma = is_lemma and bound <= limits[0] and last <= EXPERTS / (12 * q**6)
    chance = max(map(unmoved, paths)) + EXPERTS * bound / q**5
    print(f"sigma_0 = {q**4}: no model moves in {ROUNDS} rounds with chance {chance}^{ROUNDS} at most, 1 - o(1) stated")
is_violated = is_lemma and chance**ROUNDS < Fraction(1, 100)
print("violated: models move by 2 sigma_0 with chance above .99" if is_violated else "not violated")
sys.exit(not is_violated)
