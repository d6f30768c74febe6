"""Counterexample to the remark on Theorem 1: for J = O(T L / lambda) the term of the steps in (6) grows like T^1.5.

Let J <= c T L/lambda, and let x = eta w lambda, which is at most C_1 lambda/(T L + lambda) by Theorem 1. From some T
on, x <= 1/2. Then 1/(1 - x) = 1 + x/(1 - x) <= exp(2 x), so (1 - x)^(J/2) >= exp(-x J) >= exp(-c C_1). This does not
depend on T. The rest of the term is at least C_3 T L sqrt(T/lambda). So for fixed lambda and S it exceeds sqrt(lambda
S) from some T on. With all constants 1, L = 2 and c = 2 the term is at least 265 sqrt(lambda S) at T = 100 (program).

Robust: the proof allows any constants c, C_1, C_3, lambda, S, w and L, and any smaller eta or J.

Objection: The remark treats eta as a constant, for which (1 - eta w lambda)^(J/2) falls exponentially in T. But (6) is
proved only for eta <= C_1/(w (T L + lambda)). S could grow like T^3, but then it would be the largest term of (6).
"""

import sys
from fractions import Fraction
from math import isqrt

LAYERS = 2
violated = []
for steps, first in ((2, 100), (40, 10**14)):  # c, and T; C_1, C_3, lambda and S are 1
    ratios = []  # squares of the term over sqrt(lambda S), below: exp(-1) >= 4/11 and exp(-2 c C_1) by its power
    for slots in (first, 100 * first):
        step = Fraction(1, slots * LAYERS + 1)  # x
        assert step <= Fraction(1, 2)
        ratios.append((1 + slots * LAYERS) ** 2 * Fraction(4, 11) ** (2 * steps) * slots)
    print(f"c = {steps}: the term is {isqrt(int(ratios[0]))} sqrt(lambda S) or more at T = {first}")
    violated.append(ratios[0] > 1 and ratios[1] > 100**2 * ratios[0])
print("violated: the term grows without bound" if all(violated) else "not violated")
sys.exit(not all(violated))
