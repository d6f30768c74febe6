"""Theorem 1, Eq. (8): two experts, both always active; the gap is 1/2, and it says o(1).

The bound charges for one expert and for which ones are active, and not for how gates mix them. T = k = 2, H = {+1, -1}.
Let h_1 = 1, h_2 = -1, and the gates be the softmax of g(x) and -g(x): f = tanh(g(x)) has what signs g has. x is uniform
on n = 10 m^2 points, y a fair coin, the loss clip((1 - y f)/2, 0, 1), C = 1/2: every f has L_D = 1/2. The router's
class has for each pattern s of signs on the points g = 20 s(x) + e_s, with distinct e_s in (0, 1). If no input comes
twice (a chance of m^2/(2n) = 1/20 at most is against it) some s has y on the sample: losses below e^-36. Both experts
are active everywhere, so that there is one mask and d_N = 0; as functions to pairs of gates no two members agree at any
x, which shatters no two points: d_N <= 1. R_m(H) = E|sum of m signs|/m is at most 1/sqrt(m), and (8) at most K
(2/sqrt(m) + 2 sqrt((4 + log(2m) + log(4/delta))/(2m))), which tends to 0.

Robust: every K, any factor that is made of T and k, every delta below 19/20, d_N of masks or of gates.

Objection: no router is so rich. Then (8) lacks a factor: with k = 1 and T fixed cells, m = T^2, the gap is sqrt(T)
times what (8) allows, up to a logarithm. The proof loses all experts but one from (30) to (31)."""

import sys
from fractions import Fraction
from itertools import product

LOG_2 = Fraction(7, 10)  # above log 2, as the first terms of exp(7/10) show
DIMENSION, LIPSCHITZ, DELTA, ACTIVE = 1, Fraction(1, 2), Fraction(1, 20), 2
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2


def log_above(number: int) -> Fraction:
    return number.bit_length() * LOG_2


def most_squared(samples: int) -> Fraction:
    """At least the square of (8) without its K: (a + b)^2 <= 2 a^2 + 2 b^2, a = 4 C / sqrt(m)."""
    inside = DIMENSION * (2 * ACTIVE + log_above(2 * samples)) + log_above(int(4 / DELTA))  # T = k: log(T/k) = 0
    return 2 * (4 * LIPSCHITZ) ** 2 / samples + 2 * 4 * inside / (2 * samples)


# No two points are shattered by functions of which no two agree anywhere: on two points and four such functions.
members = [
    (20 * one + Fraction(n, 5), 20 * other + Fraction(n, 5))
    for n, (one, other) in enumerate(product((-1, 1), repeat=2))
]
apart = all(a[x] != b[x] for a, b in product(members, repeat=2) if a is not b for x in (0, 1))
shattered = any(
    all((first[0], second[1]) in members for first, second in product((f, g), repeat=2))
    for f, g in product(members, repeat=2)
    if f[0] != g[0] and f[1] != g[1]
)
violated = apart and not shattered
for constant in (1, 1000):
    samples = 10**4 * constant**3
    points = 10 * samples**2
    chance = 1 - Fraction(samples * (samples - 1), 2 * points)  # of a gap near 1/2, at least
    gap = Fraction(1, 2) - Fraction(1, 2**36)  # as e > 2
    bound = constant**2 * most_squared(samples)
    print(f"K = {constant}, m = {samples}: gap {gap} or more, with probability {chance} or more")
    print(f"the square of (8) is at most {bound}, that of the gap {gap**2}; it may fail with probability {DELTA}")
    violated = violated and bound < gap**2 and chance > DELTA
print("violated: the gap is above (8)" if violated else "not violated")
sys.exit(not violated)
