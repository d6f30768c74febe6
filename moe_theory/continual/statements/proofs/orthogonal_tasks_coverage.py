"""Counterexample to Lemma 11: with probability .92 or more, some task of 64 has no specialist.

All experts prefer an early task, so the set M_n of some late task n is empty. As in App. A.2, let w_n = sigma_0 e_n and
v_n = c w_n with a constant c, and s = 1. Proof. (a) Only arrivals of n change outputs for n. In units of eta alpha c^2
sigma_0^2, by (9) and (30) round t lowers its expert's output by L/t^2 and raises all outputs by L/(M t^2), up to a
share O(sigma_0/alpha). L counts the expert's visits. (b) So the tasks a, b, c of t = 1, 2, 3 are raised by 1/(9 M) or
more for all. (c) Of N = 64 tasks some n first comes at t >= N. It is raised by at most (2/63 + o(1))/M if no expert has
three of the first R = 32 M^.5 tasks. (d) To prefer n an expert must have been lowered for a, b and c, by at least .07/M
each. (e) Outputs are O(sigma_0^3 log), so rule (1) chooses any expert with probability at most 2/M. So with probability
.97 no expert gets three tasks up to R, nor enough later.

Robust: The proof allows N or K from 64 on, any d, eta, lambda, M from log^3(1/sigma_0) to 1/sigma_0, sigma_0 =
o(alpha). In a cluster tasks may differ by o(sigma_0^1.5). Lemma 11 has M = Omega(N ln(N/delta)), so delta tends to 0.

Objection: We take a huge M to count easily. M = 29, six tasks and signals of length 1 also suffice (example).

Caveat: M grows slowly as sigma_0 falls.
"""

import sys
from fractions import Fraction
from itertools import product

TASKS, EXPERTS, EARLY, LAST = 64, 2**40, 2**25, 2**280  # N, M, R, T1
ETA, ALPHA, SCALE, LAMBDA = (Fraction(1, 2**power) for power in (240, 240, 480, 600))  # SCALE: sigma_0


def are_lifted(routes: tuple[int, ...], count: int = 4, rate: Fraction = Fraction(1, 2**12)) -> bool:
    """Whether outputs for a task that came each time are its lift minus its payments, to 1/1000, by steps of (9)."""
    outputs, paid = [Fraction(0)] * count, [Fraction(0)] * count
    for time, m in enumerate(routes, 1):
        weights = [1 + x * (1 + x / 2 * (1 + x / 3)) for x in outputs]  # exponentials, to x^4/20
        pi, visits = [weight / sum(weights) for weight in weights], routes[:time].count(m)
        step = rate * (rate**4 * (visits == 1) + rate * count * visits / time**2) * pi[m]
        outputs = [h - step * ((j == m) - pi[j]) for j, h in enumerate(outputs)]
        paid[m] += rate * rate * visits / time**2
    return all(abs(outputs[m] + paid[m] - sum(paid) / count) < sum(paid) / 1000 for m in range(count))


def chance_of(visits: int, rounds: int) -> Fraction:
    """Bound M C(rounds, k) (2/M)^k <= M (6 rounds/(k M))^k of the probability that some expert has k visits."""
    return EXPERTS * Fraction(6 * rounds, visits * EXPERTS) ** min(visits, 1024)


largest = 2 * ETA * SCALE**2 * (TASKS * SCALE + ALPHA * LAST.bit_length())  # outputs: (1) has no probability above 2/M
is_lemma = all(are_lifted(routes) for routes in product(range(4), repeat=3)) and largest < LAMBDA / (3 * EXPERTS)
# Up to R: sum_m p^3 <= (2/M)^2 sum_m p = 4/M^2 for three rounds, as no p, given the past, is above 2/M; R^3/6 triples.
fails, late, lift, rounds = Fraction(4 * EARLY**3, 6 * EXPERTS**2), SCALE / ALPHA, Fraction(2, TASKS - 1), EARLY
while rounds < LAST:  # up to twice as many; paid and lifted are in units of 1/M
    visits = max(4, 32 * rounds // EXPERTS)
    while visits < 1024 and chance_of(visits, 2 * rounds) > Fraction(1, 2**20):
        visits += 1
    fails, late = fails + chance_of(visits, 2 * rounds), late + EXPERTS * Fraction(visits, rounds) ** 2
    lift, rounds = lift + Fraction(visits, rounds), 2 * rounds
is_lemma = is_lemma and late < Fraction(7, 100) < Fraction(1, 9) - lift and fails < Fraction(3, 100)
empty = Fraction((TASKS - 1) * (TASKS - 2), TASKS**2) - Fraction(3, 100)  # a, b, c are three tasks
print(f"M = 2^40, N = 64: some task has no specialist with probability {empty} or more, claimed: delta")
print("violated: a larger M does not help" if is_lemma and empty > Fraction(9, 10) else "not violated")
sys.exit(not (is_lemma and empty > Fraction(9, 10)))
