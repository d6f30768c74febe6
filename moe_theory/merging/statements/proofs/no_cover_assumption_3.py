"""Counterexample to Assumption 3: for d > 0 its bound falls below 1, but a cover has at least one ball.

The bound is C (nu_2 rho^h)^d, and it tends to 0 as h grows, because rho < 1. The set X_eps is not empty for any h,
because it contains weights with the highest reward. So its cover has at least one ball, and no constant C is enough.

Robust: the proof allows any rho in (0, 1), nu_2, C and d > 0, and any reward that has a maximum. At d = 0 one constant
bounds all covers.

Objection: the exponent is meant to be -d, as in the usual definition. With this sign the assumption follows from
Assumption 1, which is proved. If C could depend on h, the assumption would hold for every reward.
"""

import sys
from fractions import Fraction

is_violated = True
for constant in (1, 1_000, 10**9):  # C
    for ratio, power in ((Fraction(1, 2), 1), (Fraction(9, 10), 2)):  # rho, d
        depth = next(h for h in range(1_000) if constant * ratio ** (power * h) < 1)  # with nu_2 = 1
        print(f"C = {constant}, rho = {ratio}, d = {power}: less than one ball from h = {depth} on")
        is_violated = is_violated and constant * ratio ** (power * depth) < 1
print("violated: a cover has a ball" if is_violated else "not violated")
sys.exit(not is_violated)
