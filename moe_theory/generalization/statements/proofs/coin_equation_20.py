"""Eqs. (18) to (20): one function whose loss is a fair coin, m = 4, eps = 1; the chance is 37/256, and it says e^-2.

phi, the largest L_S - L_S', depends on the 2m samples of S and S'; (20) counts those of one sample set, so that its
bound is too small even for a single function. Take H = {+1}, labels that are fair coins and the loss clip((1 - y f)/2,
0, 1): phi = L_S - L_S' for the one f there is, and its mean is 0. With m = 4, phi >= 1/2 if 4 L_S + 4 (1 - L_S') >= 6.
That sum is the number of heads among 8 coins, so that the chance is (28 + 8 + 1)/256 = 37/256. (20) says exp(-2 * 4 *
(1/2)^2) = e^-2 at most, and e^2 > 7 > 256/37. McDiarmid's inequality has the sum of the squares of the differences in
its exponent, each 1/m, over 2m samples: 2m (1/m)^2 = 2/m, not 1/m.

Robust: phi has a variance of 1/(2m), where (20) supposes 1/(4m): for x = a/sqrt(m), m large, the tail is of order
exp(-a^2)/a against exp(-2 a^2), so that no constant in front makes up for it. So do classes that hold this function and
have E phi <= b/sqrt(m): their phi is no less, and at eps/2 = a/sqrt(m), a > 4 b large, (20) says exp(-9 a^2/8) at most.

Objection: only the constant under the root of (22) changes. So it does, and the statement holds amended: with m in
place of 2m in the exponent. eps = 1 is what (10) allows at m = 4, as exp(-eps^2 m/2) = e^-2 < 1/4.
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
least = sum(exponent**n / factorial(n) for n in range(6))  # of exp(exponent)
print(f"P(phi >= {EXCESS}) = {tail}")
print(f"(20) says exp(-{exponent}), which is below {1 / least}")
violated = tail > 1 / least
print("violated: the chance is larger" if violated else "not violated")
sys.exit(not violated)
