"""Counterexample to (12), different sets: outputs at t1 are O(sigma_0) apart, not Theta(sigma_0^.75).

This holds on every path. Let w_n = +-sigma_0 e, v_n = +-e, beta = 1 and s = 1. For clusters let w_n = a_n e and v_n =
c_n e be O(sigma_0^1.5) away, with |a_n| <= sigma_0, |c_n| <= 1. Proof. (a) Let g_m = theta_m'e, let D be their largest
gap, and K_t = eta (|dw| + alpha M f_t/t) pi_mt. If a task with c_n > 0 arrives, the chosen g is within lambda/c_n of
the largest. (b) By (9) it falls by K c_n (1 - pi_mt), and the others rise by K c_n pi_j. So it ends at most 2 lambda +
2 K below any other. The others' gaps grow by at most a factor 1 + K, because |pi_i - pi_j| <= |g_i - g_j|. (c) If c_n <
0 this also holds. So D <= (2 lambda + 2 max K) exp(sum K). (d) A model is its last ground truth, so |dw| <= 2 sigma_0.
So sum K <= eta (2 sigma_0 t + alpha M (1 + ln t)) -> 0 at t1, and max K = O(sigma_0).

Robust: The proof allows any N, K, d, constants in eta, alpha = O(sigma_0^.5), lambda = O(sigma_0), beta bounded below,
and M >= 3, which follows from M > N (M > K). Noise of O(sigma_0), s < d, raises lambda by O(sigma_0^1.75 log). Both
sets have experts, because outputs sum to 0 (Lemma 4) and not all are 0 for both possible tasks at t1 - 1.

Objection: Two opposite tasks are special. But no two are farther apart. With orthogonal tasks the script also finds a
largest gap below sigma_0^.75.
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS = 3  # M
SIGNALS = [sign * (1 - off) for sign, off in product((1, -1), (0, Fraction(1, 8**6)))]  # c_n of N = 4, two clusters
SCALES = [Fraction(1, 2**power) for power in (3, 4, 5)]  # q, where sigma_0 = q^4, eta = alpha = q^2, lambda = q^5


def exponential(x: Fraction) -> Fraction:
    return 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))  # below it by less than |x|^5/60 for |x| <= 1


def is_step_bounded(gates: tuple[Fraction, ...], signal: Fraction, size: Fraction, noise: Fraction) -> bool:
    """Whether one step (9) of any expert that (1) can choose keeps the spread below the bound, with step size K."""
    spread, outputs = max(gates) - min(gates), [signal * gate for gate in gates]
    pi = [exponential(output) / sum(map(exponential, outputs)) for output in outputs]
    for chosen in (m for m, output in enumerate(outputs) if output + noise >= max(outputs)):
        after = [g - size * signal * ((m == chosen) - pi[m]) for m, g in enumerate(gates)]
        if max(after) - min(after) > max((1 + size) * spread, 2 * noise + 2 * size):
            return False
    return True


def largest_gap(q: Fraction) -> Fraction:
    """Bound of D at t1 = M / (eta sigma_0^.25): (2 lambda + 2 K) exp(sum K), from above."""
    eta, rounds = q**2, int(EXPERTS / q**3)
    harmonic = Fraction(sum(10**9 // time + 1 for time in range(1, rounds + 1)), 10**9)
    steps = eta * (2 * q**4 * rounds + q**2 * EXPERTS * harmonic)
    largest = eta * (2 * q**4 + q**2 * EXPERTS)
    return (2 * q**5 + 2 * largest) / (1 - steps)  # exp(x) <= 1/(1 - x)


POINTS, SIZES, NOISES = [Fraction(each, 16) for each in (-3, -1, 0, 2)], (Fraction(1, 64), Fraction(1, 8)), (0, 1)
states = product(product(POINTS, repeat=EXPERTS), SIGNALS, SIZES, (Fraction(noise, 16) for noise in NOISES))
is_lemma = all(is_step_bounded(*state) for state in states)
gaps = [largest_gap(q) for q in SCALES]
for q, gap in zip(SCALES, gaps, strict=True):
    print(f"sigma_0 = {q**4}: outputs at t1 are within {int(gap / q**4) + 1} sigma_0, Theta({1 / q} sigma_0) stated")
is_violated = is_lemma and all(gap < 9 * q**4 for q, gap in zip(SCALES, gaps, strict=True))
print("violated: O(sigma_0) on every path, Theta(sigma_0^.75) stated" if is_violated else "not violated")
sys.exit(not is_violated)
