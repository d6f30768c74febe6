"""Counterexample to Proposition 3: after T2 a share near 1/M or more of each task leaves its set.

As in App. A.2, let w_n = +-sigma_0 e and v_n = c w_n with a constant c. Proof. (a) X_t spans e. A model is its last
ground truth, so |dw| <= 2 sigma_0. (b) Gates change along x_t = beta c w_n, |x_t| <= x = C c sigma_0. By (9), (27),
(30) and pi (1 - pi) <= 1/4 they change by at most (eta/4) (2 sigma_0 + alpha M f_t/t) x. (c) So outputs are at most B =
(eta x^2/4) (2 sigma_0 t + alpha M (1 + ln t)), which is O(sigma_0^2.75) at T2, when gates are fixed. (d) A shift of
r(m) by h changes its distribution by |h|/lambda. So rule (1) chooses each expert with probability 1/M, up to M B/lambda
-> 0. (e) By Lemma 4 outputs sum to 0 over experts. So by (11) each set lacks an expert unless all outputs are 0. The
last update can cause this only for one of the two tasks.

Robust: The argument works for any N, Gamma > 0 and distribution of beta, for s < d and noise of O(sigma_0). The
constants in alpha, eta and lambda do not matter. In a cluster tasks may differ by O(sigma_0^1.5). The argument needs M
>= 3, which follows from M > N = 2 (M > K). Task + then lowers one output and raises two or more, and task - does the
reverse. So only one of these two tasks can bring all outputs to 0.

Objection: Signals should have order 1. But the paper requires O(1), and App. A.2 has smaller ones. At length 1 half of
the arrivals leave their set for six orthogonal tasks (example), and for these two tasks if alpha = o(sigma_0^.75/log).
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS = 3  # M
SCALES = [Fraction(1, 2**power) for power in (6, 8, 10)]  # q: sigma_0 = q^4, alpha = eta = q^2, lambda = q^5; c = 1


def bound(q: Fraction, rounds: int) -> Fraction:
    """B, where a number of k bits has 1 + 1/2 + ... <= k."""
    return q**2 * q**8 / 4 * (2 * q**4 * rounds + q**2 * EXPERTS * rounds.bit_length())


def outputs_after(tasks: tuple[int, ...], routes: tuple[int, ...], q: Fraction) -> list[Fraction]:
    """Outputs for the signal sigma_0 e after these rounds of (5) and (9)."""
    outputs, models = [Fraction(0)] * EXPERTS, [0] * EXPERTS
    for time, (task, chosen) in enumerate(zip(tasks, routes, strict=True), 1):
        weights = [1 + x * (1 + x / 2 * (1 + x / 3)) for x in (task * h for h in outputs)]  # exponentials, to x^4/20
        pi = [weight / sum(weights) for weight in weights]
        cost = abs(task - models[chosen]) * q**4 + q**2 * EXPERTS * routes[:time].count(chosen) / time**2
        step = q**2 * cost * pi[chosen] * task * q**8
        outputs = [h - step * ((m == chosen) - pi[m]) for m, h in enumerate(outputs)]
        models[chosen] = task
    return outputs


is_lemma, shares = True, []
for tasks, routes in product(product((1, -1), repeat=2), product(range(EXPERTS), repeat=2)):
    outputs = outputs_after(tasks, routes, SCALES[0])
    is_lemma = is_lemma and sum(outputs) == 0 and max(map(abs, outputs)) <= bound(SCALES[0], 2)
    shares += [Fraction(sum(task * h < 0 for h in outputs), EXPERTS) for task in (1, -1) if any(outputs)]  # not in (11)
for q in SCALES:
    excess = EXPERTS * bound(q, int(EXPERTS / q**3)) / q**5  # at T2
    print(
        f"sigma_0 = {q**4}: {min(shares)} - 1/{int(1 / excess)} or more of a task's arrivals leave its set, none stated"
    )
is_violated = is_lemma and min(shares) - excess > Fraction(3, 10)
print("violated: about 1/M or more leave their set" if is_violated else "not violated")
sys.exit(not is_violated)
