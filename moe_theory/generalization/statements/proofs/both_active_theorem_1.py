"""Counterexample to Theorem 1, Eq. (8): two experts, both always active, have a gap of 1/2, but (8) tends to 0.

The bound counts the complexity of one expert and of the active set, not of the gates. Let T = k = 2, H = {+1, -1}, h_1
= 1, h_2 = -1, and let the gates be the softmax of g(x) and -g(x). Then f = tanh(g(x)) has the signs of g. Let x be
uniform on n = 10 m^2 points, y a fair coin and the loss clip((1 - y f)/2, 0, 1), so C = 1/2. Every f has L_D = 1/2.

For each sign pattern s the router's class has g = 20 s(x) + e_s, with distinct e_s in (0, 1). With probability at least
1 - m^2/(2n) = 1 - 1/20, no input occurs twice. Then some s equals y on the sample, with losses below e^-36. There is
one mask, so d_N = 0. For pairs of gates in place of masks, no two members agree at any x, so no two points are
shattered, and d_N <= 1. As R_m(H) = E|sum of m signs|/m <= 1/sqrt(m), the bound (8) is at most K (2/sqrt(m) + 2 sqrt((4
+ log(2m) + log(4/delta))/(2m))), which tends to 0.

Robust: the proof allows any K, any factor made of T and k, any delta below 19/20, and d_N of masks or of gates.

Objection: no router is so rich. Then (8) still lacks a factor. With k = 1, T fixed cells and m = T^2 the gap is sqrt(T)
times the bound, up to a logarithm. The step from (30) to (31) loses all experts except one.
"""

import sys
from fractions import Fraction
from itertools import product

LOG_2 = Fraction(7, 10)  # above log 2, as the first terms of exp(7/10) show
DIMENSION, LIPSCHITZ, DELTA, ACTIVE = 1, Fraction(1, 2), Fraction(1, 20), 2
assert sum(LOG_2**n / [1, 1, 2, 6, 24][n] for n in range(5)) > 2


def log_above(number: int) -> Fraction:
    return number.bit_length() * LOG_2


def most_squared(samples: int) -> Fraction:
    """Return an upper bound on the square of (8) without K, by (a + b)^2 <= 2 a^2 + 2 b^2 with a = 4 C / sqrt(m)."""
    inside = DIMENSION * (2 * ACTIVE + log_above(2 * samples)) + log_above(int(4 / DELTA))  # T = k: log(T/k) = 0
    return 2 * (4 * LIPSCHITZ) ** 2 / samples + 2 * 4 * inside / (2 * samples)


# Functions of which no two agree anywhere shatter no two points. We check four such functions on two points.
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
    chance = 1 - Fraction(samples * (samples - 1), 2 * points)  # a gap near 1/2 has at least this probability
    gap = Fraction(1, 2) - Fraction(1, 2**36)  # as e > 2
    bound = constant**2 * most_squared(samples)
    print(f"K = {constant}, m = {samples}: gap {gap} or more, with probability {chance} or more")
    print(f"squares: of (8) at most {bound}, of the gap {gap**2}. (8) may fail with probability {DELTA}")
    violated = violated and bound < gap**2 and chance > DELTA
print("violated: the gap is above (8)" if violated else "not violated")
sys.exit(not violated)
