"""The remark on Theorem 1 holds with J larger by a logarithm: the steps' term in (6) is at most sqrt(lambda S).

Let x = eta w lambda for the largest eta that Theorem 1 allows, so x = C_1 lambda/(T L + lambda) with C_1 <= 1. Let Q be
the term without its power, divided by sqrt(lambda S). Then Q = (lambda + C_3 T L) sqrt(T/lambda)/sqrt(lambda S). As 1 -
x <= exp(-x), the power (1 - x)^(J/2) is at most exp(-x J/2). This is at most 1/Q for J >= 2 log(Q)/x = 2 (T L + lambda)
log(Q)/(C_1 lambda). Such a J is O((T L/lambda) log T), because Q is of order T^1.5. Smaller steps of this order change
J's constant.

Robust: the proof allows any constants, w, L, lambda and S. The number J of steps in [29] has this logarithm.
"""

import sys
from fractions import Fraction

LAYERS = 2
proved = []
for power in (5, 10, 20):  # T = 4^power; C_1, C_3, lambda and S are 1
    slots = 4**power
    step = Fraction(1, slots * LAYERS + 1)  # x
    excess = (1 + slots * LAYERS) * 2**power  # Q
    steps = 2 * excess.bit_length() * (slots * LAYERS + 1)  # J, as log Q is at most the number of binary digits
    # (1 - x)^(1/x) < 1/2, as (1 + x/(1 - x))^(1/x) >= 1 + 1/(1 - x) > 2 by Bernoulli's inequality
    halvings = step * steps / 2
    assert 1 + 1 / (1 - step) > 2
    print(f"T = 4^{power}: {steps} steps divide the term by 2^{halvings} or more, and Q is {excess}")
    proved.append(2**halvings >= excess)
print("proved: the term is at most sqrt(lambda S)" if all(proved) else "not proved")
sys.exit(not all(proved))
