"""Counterexample to Eqs. (18) to (20): for a fair coin, m = 4 and eps = 1 the probability is 37/256, above e^-2.

The largest difference phi = sup (L_S - L_S') depends on the 2m samples of S and S', but (20) counts only m samples.
Take H = {+1}, fair-coin labels and the loss clip((1 - y f)/2, 0, 1). Then phi = L_S - L_S' for the only f has mean 0.

For m = 4 the inequality phi >= 1/2 means 4 L_S + 4 (1 - L_S') >= 6. This sum is the number of heads among 8 coins, so
the probability is (28 + 8 + 1)/256 = 37/256. By (20) it is at most exp(-2 * 4 * (1/2)^2) = e^-2, which is less because
e^2 > 7 > 256/37. McDiarmid's inequality has the sum of the squared differences in its exponent. Each difference is 1/m,
over 2m samples, so the sum is 2m (1/m)^2 = 2/m, not 1/m.

Robust: the argument works for any large m. The variance of phi is 1/(2m), but (20) assumes 1/(4m). For x = a/sqrt(m)
and large m the tail has order exp(-a^2)/a, but (20) allows exp(-2 a^2), so no constant factor helps. The same holds for
classes that contain this function and have E phi <= b/sqrt(m).

Objection: this changes only the constant under the root of (22). We agree, and the statement holds with m in place of
2m in the exponent. The value eps = 1 is allowed by (10) at m = 4, as exp(-eps^2 m/2) = e^-2 < 1/4.
"""

import sys
from fractions import Fraction
from itertools import product
from math import factorial

SAMPLES, EXCESS = 4, Fraction(1, 2)  # m, eps/2

draws = list(product((0, 1), repeat=2 * SAMPLES))  # the losses on S and on S'
phi = [Fraction(sum(draw[:SAMPLES]) - sum(draw[SAMPLES:]), SAMPLES) for draw in draws]
mean = sum(phi) / len(draws)
tail = Fraction(sum(each - mean >= EXCESS for each in phi), len(draws))
exponent = 2 * SAMPLES * (EXCESS - mean) ** 2
least = sum(exponent**n / factorial(n) for n in range(6))  # below exp(exponent)
print(f"P(phi >= {EXCESS}) = {tail}")
print(f"(20) says exp(-{exponent}), which is below {1 / least}")
violated = tail > 1 / least
print("violated: the probability is larger" if violated else "not violated")
sys.exit(not violated)
