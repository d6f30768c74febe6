"""Lemma 3 holds for r = 1, and for r = 2 with phi 1-Lipschitz and phi(a t) = a phi(t) for a > 0, such as ReLU.

Let F_i be the Frobenius norm of W_i. Its rows have length at most K_i, and the lengths sum to b_i, so F_i^2 <= K_i b_i.
For r = 1, f = w x, and (1/m) sum s_i w x_i has a mean supremum over |w| <= F of at most F c/sqrt(m). With one row F <=
b_1, which gives Lemma 3.

For r = 2 let u_j = |u_j| e_j be the rows of W_1. As phi is homogeneous, |sum_i s_i phi(W_1 x_i)|^2 = sum_j |u_j|^2
(sum_i s_i phi(e_j x_i))^2 is at most F_1^2 Q^2, where Q is the supremum over |e| = 1 of |sum_i s_i phi(e x_i)|. As 0 is
a member for |e| <= 1, the mean of Q is at most twice the mean without absolute values. By Lemma 9 it is at most 2 c
sqrt(m). So R_m <= 2 c F_1 F_2/sqrt(m). With a_i = b_i/K_i, F_1 F_2 <= K_1 K_2 sqrt(a_1 a_2). Lemma 3 has K_1 K_2 times
(a_1^(2/3) + a_2^(2/3))^(3/2) >= (2 (a_1 a_2)^(1/3))^(3/2) = 2 sqrt(2) sqrt(a_1 a_2), and 2 <= 2 sqrt(2). For r = 3 the
same argument needs a bound on the width. For r > 2 the lemma is not proved here.
"""

import sys
from itertools import product
from math import isqrt

import sympy

p, q = sympy.symbols("p q", positive=True)  # a_1^(1/3), a_2^(1/3)
square = sympy.expand((p**2 + q**2) - 2 * p * q - (p - q) ** 2)
power = sympy.simplify((2 * p * q) ** sympy.Rational(3, 2) - 2 * sympy.sqrt(2) * sympy.sqrt(p**3 * q**3))
print(f"p^2 + q^2 - 2 p q is a square, and (2 p q)^(3/2) is 2 sqrt(2) sqrt(a_1 a_2): {square}, {power}")
holds = square == 0 and power == 0 and 2**2 <= 2**2 * 2

# F^2 <= K b for the least K, the longest row. Pythagorean pairs give rows of whole length.
rows = [(0, 0), (3, 4), (5, 12), (-8, 6), (0, 2), (7, -24)]
for chosen in product(rows, repeat=3):
    lengths = [isqrt(a * a + b * b) for a, b in chosen]
    holds = holds and all(n * n == a * a + b * b for n, (a, b) in zip(lengths, chosen, strict=True))
    holds = holds and sum(n * n for n in lengths) <= max(lengths) * sum(lengths)
print(f"F^2 <= K b for {len(rows) ** 3} matrices: {holds}")
print("proved: one and two layers" if holds else "not proved")
sys.exit(not holds)
