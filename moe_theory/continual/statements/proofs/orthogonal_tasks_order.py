"""Counterexample to Lemma 15: (40) fails for two specialists with probability 7/50 or more, not o(1).

As in App. A.2, let w_n = sigma_0 e_n and v_n = c w_n with a constant c. Let s = 1, beta = 1, and eta and alpha =
Theta(sigma_0^.5). Let m be a specialist of task 1, and m' of task 2. Proof. (a) Outputs are O(sigma_0^3 log). So rule
(1) is uniform up to O(sigma_0^1.75 log), and the routes of all T1 = O(sigma_0^-.5) rounds are independent and uniform,
up to a vanishing probability. (b) By (9) and (30), in units of eta alpha c^2 sigma_0^2, the output of m for n is U_n/M
- S_mn up to o(1). S_mn is the sum of L/t^2 over the rounds t that brought n to m. Here m has had L visits by round t,
and U_n = sum_m S_mn. (c) So m is in M_1, m' in M_2 and (40) fails if S_m1 - S_m2 < (U_1 - U_2)/M < S_m'1 - S_m'2 and
S_m'1 < S_m1. (d) The program takes all histories of five rounds at M = 3. Chebyshev's inequality bounds what later
rounds add, by sums of E[L^2]/t^4.

Robust: The proof allows any d and any constants in eta, alpha, lambda and c. Other M >= 3 and N >= 2 change only the
probability. Tasks of a cluster may differ by o(sigma_0^1.5).

Objection: Signals should have order 1. But the paper requires |v_n| = O(1), and App. A.2 has smaller ones. With |v_n| =
1, six tasks and M = 24, (40) fails in more than nine of ten runs (example).
"""

import sys
from fractions import Fraction
from itertools import product

M, N, EARLY, FAR = 3, 2, 5, 100
LATER = range(EARLY + 1, FAR)
# E[L^2] = (a + 1)^2 + 2 (a + 1) n/M + n^2/M^2 + n (M - 1)/M^2 if an expert has a visits at round 5, n = t - 6: sums of
# each part over t^4; those from FAR on are below integrals.
FIXED = sum(Fraction((t - 6) * (t + M - 7), M**2 * t**4) for t in LATER) + Fraction(2, M**2 * 98)
LINEAR = sum(Fraction(2 * (t - 6), M * t**4) for t in LATER) + Fraction(1, M * 98**2)
SQUARE = sum(Fraction(1, t**4) for t in LATER) + Fraction(1, 3 * 98**3)
PARTS = [Fraction(int(10**6 * part) + 1, 10**6) for part in (FIXED, LINEAR, SQUARE)]  # from above


def fails(history: tuple[int, ...]) -> Fraction:
    """Least probability that (40) fails after these rounds and any later ones."""
    visits, sums = [0] * M, [[Fraction(0)] * N for _ in range(M)]
    for time, route in enumerate(history, 1):
        visits[route // N] += 1
        sums[route // N][route % N] += Fraction(visits[route // N], time**2)
    mean = sum(one - two for one, two in sums) / M
    late = [sum(part * (a + 1) ** power for power, part in enumerate(PARTS)) for a in visits]
    best = Fraction(0)
    for m, other, n in product(range(M), range(M), range(N)):
        lead, behind = ((sums[each][n] - sums[each][1 - n] - (1 - 2 * n) * mean) for each in (other, m))
        more = sums[m][n] - sums[other][n] + Fraction(min(0, visits[m] - visits[other]), M * N * EARLY)
        if min(lead, -behind, more) > 0:
            spread = [(late[each] * (M - 1) ** 2 + sum(late) - late[each]) / M**3 for each in (other, m)]
            apart = 2 * (late[m] + late[other]) / (M * N) + Fraction(4, M**3 * N**2 * (EARLY - 1))
            best = max(best, 1 - spread[0] / lead**2 - spread[1] / behind**2 - apart / more**2)
    return best


chance = sum(fails((0, *rest)) for rest in product(range(M * N), repeat=EARLY - 1)) / (M * N) ** (EARLY - 1)
print(f"(40) fails at T1 + 1 with probability {Fraction(int(1000 * chance), 1000)} or more, claimed: o(1)")
print("violated: the probability is above 1/10 for every sigma_0" if chance > Fraction(1, 10) else "not violated")
sys.exit(chance <= Fraction(1, 10))
