"""Counterexample to Proposition 1 (models): after T1 each arrival moves a model with probability near 1/2.

Claim. The probability that no model moves after round T1 + 1 up to T is at most (1/2 + M B/lambda)^(T - T1 - 1). By
Proposition 1 it is 1 - o(1). As in App. A.2, let w_n = +-sigma_0 e and v_n = c w_n with a constant c. Proof. (a) X_t
spans e. A model is its last ground truth, so |dw| <= 2 sigma_0. (b) Gates change along x_t = beta c w_n, |x_t| <= x = C
c sigma_0. By (9), (27), (30) and pi (1 - pi) <= 1/4 they change by at most (eta/4) (2 sigma_0 + alpha M f_t/t) x. (c)
So outputs are at most B = (eta x^2/4) (2 sigma_0 t + alpha M (1 + ln t)), which is O(sigma_0^3 log) at T1. (d) A shift
of r(m) by h changes its distribution by |h|/lambda. So rule (1) chooses each expert with probability 1/M, up to M
B/lambda -> 0, for any arrival. (e) Tasks are + or - with equal probability. So with probability at least 1/2 - M
B/lambda an arrival's expert last had the other task and moves by 2 sigma_0, or by sigma_0 at its first task.

Robust: The argument works for any M, N, Gamma and distribution of beta, s < d and noise of O(sigma_0). The constants in
alpha, eta and lambda do not matter. In a cluster tasks may differ by O(sigma_0^1.5).

Objection: Signals should have order 1. But the paper requires |v_n| = O(1), and App. A.2 has smaller ones. With six
orthogonal signals of length 1 every run drifts by sigma_0 (example). So it does with these two for alpha =
o(sigma_0^.75/log).
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, ROUNDS = 3, 10  # M, rounds after T1 + 1
SCALES = [Fraction(1, 2**power) for power in (6, 8, 10)]  # q: sigma_0 = q^4, alpha = eta = q^2, lambda = q^5; c = 1


def bound(q: Fraction, rounds: int) -> Fraction:
    """B, where a number of k bits has 1 + 1/2 + ... <= k."""
    return q**2 * q**8 / 4 * (2 * q**4 * rounds + q**2 * EXPERTS * rounds.bit_length())


def largest_output(tasks: tuple[int, ...], routes: tuple[int, ...], q: Fraction) -> Fraction:
    """Largest output after these rounds of (5) and (9), for the signals sigma_0 e and -sigma_0 e."""
    outputs, models = [Fraction(0)] * EXPERTS, [0] * EXPERTS  # outputs for +
    for time, (task, chosen) in enumerate(zip(tasks, routes, strict=True), 1):
        weights = [1 + x * (1 + x / 2 * (1 + x / 3)) for x in (task * h for h in outputs)]  # exponentials, to x^4/20
        pi = [weight / sum(weights) for weight in weights]
        cost = abs(task - models[chosen]) * q**4 + q**2 * EXPERTS * routes[:time].count(chosen) / time**2
        step = q**2 * cost * pi[chosen] * task * q**8
        outputs = [h - step * ((m == chosen) - pi[m]) for m, h in enumerate(outputs)]
        models[chosen] = task
    return max(map(abs, outputs))


paths = list(product(product((1, -1), repeat=2), product(range(EXPERTS), repeat=2)))
is_lemma = all(largest_output(*path, q) <= bound(q, 2) for q in SCALES for path in paths)
agree = [sum(task == w for task in (1, -1) for w in models) for models in product((-1, 0, 1), repeat=EXPERTS)]
still = Fraction(max(agree), 2 * EXPERTS)  # of all tasks and experts: no move
for q in SCALES:
    excess = EXPERTS * bound(q, int(EXPERTS / q**2) + 1 + ROUNDS) / q**5
    chance = still + Fraction(1, int(1 / excess))
    print(f"sigma_0 = {q**4}: no move in {ROUNDS} rounds: ({still} + 1/{int(1 / excess)})^{ROUNDS} at most")
is_violated = is_lemma and chance**ROUNDS < Fraction(1, 100)
print("violated: some model moves by sigma_0 or more with probability above .99" if is_violated else "not violated")
sys.exit(not is_violated)
