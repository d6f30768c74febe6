"""Counterexample to Lemmas 5 and 14, s = 1: after T1 some gradient is above sigma_0^.75/10, not O(sigma_0).

Let M = 2, s = 1, beta = 1, alpha = 0, q = sigma_0^(1/8), e = q^4, f = q^2, v = (1, 0), (1, e), (1, f), w = 0, (sigma_0,
0), 0. K = 9/e^2, L = 4 K + 3, H = n L 4^L, eta = 2/H. Proof. (a) Only task 2 lengthens a model, never beyond 3/2
sigma_0/e. (b) Tasks 1 and 2 in turn divide its gap to (0, sigma_0/e) by 1 + e^2. After 2 K + 1 of these arrivals task 3
moves it by 7/10 f sigma_0/e or more. (c) As in the proof of Lemma 9, sum |theta_m|^2 <= 9 q^18 in 2 H rounds. So an
expert's outputs for the tasks are within 3 q^11, and (1) chooses one expert for all tasks with probability 1 - 12 q.
(d) So the chosen expert gets the task that it needs with probability 1/4 or more: 1 and 2 in turn, and then 3. With
probability 1 - e^-n one of n 4^L stretches of L rounds from T1 = H to t1 has only such rounds. (e) A gradient is the
move times pi (1 - pi), with pi near 1/2. Two gates' gradients (Lemma 14) differ by twice that.

Robust: The proof allows any M, d, Gamma, termination, constant of lambda, smaller eta and further tasks of these kinds.

Objection: eta is meant to be as large as sigma_0^.5, but Algorithm 1 requires only O(sigma_0^.5). Such rounds are rare.
In mean square the moves are O(sigma_0) for any signals (proof). For s = 1 and fixed signals every move is O(sigma_0).
"""

import sys
from fractions import Fraction


def projected(model: tuple[Fraction, Fraction], slope: Fraction, product: Fraction) -> tuple[Fraction, Fraction]:
    """The point with x + slope y = product that is nearest to the model, (5) for one sample (1, slope)."""
    step = (product - model[0] - slope * model[1]) / (1 + slope**2)
    return model[0] + step, model[1] + slope * step


def is_gap_divided(slope: Fraction) -> bool:
    """Whether tasks 1, 2 and 1 divide the gap to (0, 1/slope) by 1 + slope^2, in units of sigma_0."""
    height = Fraction(-3, 2) / slope
    after = projected(projected((Fraction(0), height), slope, Fraction(1)), Fraction(0), Fraction(0))
    return after == (0, 1 / slope - (1 / slope - height) / (1 + slope**2))


violated = []
for power in (6, 9, 12):
    q = Fraction(1, 2**power)
    scale, wide, narrow = q**8, q**2, q**4  # sigma_0, f, e
    # (a) By Pythagoras task 2 lengthens a model if |v_2'w| < sigma_0. After tasks 1 or 3 it is then below sigma_0/e.
    is_bounded = (wide - narrow) ** 2 >= narrow**2 * (1 + wide**2)
    is_bounded &= (scale / narrow) ** 2 + scale**2 <= (scale * 3 / 2 / narrow) ** 2
    rounds = 9 / narrow**2  # K; (1 + e^2)^K >= 1 + K e^2 = 10, and the gap was at most 5/2 sigma_0/e
    height = (1 - Fraction(5, 2) / (1 + rounds * narrow**2)) * scale / narrow
    move = wide * height * Fraction(99, 100)  # divided by |v_3|, at most 100/99
    is_long = is_gap_divided(narrow) and (1 + wide**2) * 99**2 <= 100**2 and move >= Fraction(7, 10) * q**6
    # (c) The sum is eta t (lambda sigma_0 + eta sigma_0^2) at most, eta t = 4, eta < q^2. Two sums h + r of (1) are
    # within 6 q^11 of one another with probability 12 q.
    is_alike = 4 * (q**10 * scale + q**2 * scale**2) <= 9 * q**18 and 12 * q < Fraction(1, 4)
    softmax = Fraction(1, 2) - 3 * q**9  # outputs are at most 3 q^9 (1 + f)
    gradient = move * softmax * (1 - softmax)
    print(f"sigma_0 = 2^-{8 * power}: a gradient of {gradient // scale} sigma_0 between T1 and t1")
    violated.append(is_bounded and is_long and is_alike and gradient > q**6 / 10)
print("violated: no multiple of sigma_0 is above" if all(violated) else "not violated")
sys.exit(not all(violated))
