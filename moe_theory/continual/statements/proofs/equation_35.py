"""Counterexample to (35), tasks on a line: probabilities are O(sigma_0 log) apart, not Omega(sigma_0^.5).

This holds up to T1 on every path. Let w_n = a_n e and v_n = c_n e lie on a line, with |a_n| <= sigma_0, C |c_n| <= 1
and |e| = 1. So |beta_t c_n| <= 1. Proof. (a) Because X_t spans e, a model is its last task's ground truth and moves by
at most 2 sigma_0. (b) By (9), (27) and (30) round t changes theta_m'e by at most eta (2 sigma_0 + alpha M f_t/t) pi_mt
(1 - pi_mt) <= (eta/4) (2 sigma_0 + alpha M/t). (c) Over T1 = ceil(M/eta) rounds this adds up to b = (M + eta) sigma_0/2
+ eta alpha (M/4) (1 + 1/2 + ... + 1/T1) = O(sigma_0 log(1/sigma_0)). (d) An expert's outputs for two tasks differ by at
most 2 b, and the logarithms of its probabilities by at most 4 b. So probabilities differ by at most e^(4 b) - 1 <= 5 b
for 4 b <= 1/3. For small sigma_0 this is below any multiple of sigma_0^.5.

Robust: The proof allows any N, M, d, s, lambda, Gamma and path, and any constants in eta = O(sigma_0^.5) and alpha =
O(sigma_0^.5). The bound also holds in earlier rounds. If C |c_n| <= x, the bound 4 b gains a factor x^2. With noise, a
gate's mean length is at most b times that of the features' sum, so (35) fails with probability 1 - o(1).

Objection: A line is special. But we used only moves of O(sigma_0) and signals of O(1), and the proof of Lemma 5 has
both for every pool. More experts cannot help, because M drops out of b if probabilities are of order 1/M.
"""

import sys
from fractions import Fraction
from itertools import pairwise, product

EXPERTS = 3  # M; N = 2 tasks, truths +-sigma_0 e and signals +-e
SCALES = [Fraction(1, 4**power) for power in range(2, 5)]  # q, where sigma_0 = q^4, eta = alpha = q^2


def exponential(x: Fraction) -> Fraction:
    return 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))  # below it by less than |x|^5/60 for |x| <= 1


def most_moved(q: Fraction, until: int) -> Fraction:
    """Largest |theta_m . e| after these rounds, over all paths."""
    largest, eta, alpha = Fraction(0), q**2, q**2
    for tasks, routes in product(product((1, -1), repeat=until), product(range(EXPERTS), repeat=until)):
        gates, models = [Fraction(0)] * EXPERTS, [Fraction(0)] * EXPERTS
        for time, (task, chosen) in enumerate(zip(tasks, routes, strict=True), 1):
            weights = [exponential(task * gate) for gate in gates]
            pi = [weight / sum(weights) for weight in weights]
            visits = routes[:time].count(chosen)
            cost = abs(task * q**4 - models[chosen]) + alpha * EXPERTS * visits / time**2
            step = eta * cost * pi[chosen] * task
            gates = [g - step * ((m == chosen) - pi[m]) for m, g in enumerate(gates)]
            models[chosen] = task * q**4
        largest = max(largest, *(abs(gate) for gate in gates))
    return largest


def bound(q: Fraction, rounds: int) -> Fraction:
    harmonic = Fraction(sum(10**12 // time + 1 for time in range(1, rounds + 1)), 10**12)  # from above
    return q**2 / 4 * (2 * q**4 * rounds + q**2 * EXPERTS * harmonic)


is_bounded = all(most_moved(q, until) <= bound(q, until) for q in SCALES[:2] for until in (1, 2))
ratios = [5 * bound(q, int(EXPERTS / q**2)) / q**2 for q in SCALES]
for q, ratio in zip(SCALES, ratios, strict=True):
    print(f"sigma_0 = {q**4}: |pi_m(X_n) - pi_m(X_n')| is at most 1/{int(1 / ratio)} of sigma_0^.5, on every path")
is_small = all(later < earlier / 8 for earlier, later in pairwise(ratios)) and ratios[-1] < 1
print("violated: no multiple of sigma_0^.5 is below" if is_bounded and is_small else "not violated")
sys.exit(not (is_bounded and is_small))
