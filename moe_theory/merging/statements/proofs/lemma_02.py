"""Lemma 2, Eq. (7), where its right side is at least 2, and delta <= 1.

Let A = C^2/nu_1^2, X = T/(A log(T/delta)), and Y = log X/(1 - rho) the right side. Two slots split two leaves at most
and make a depth of 2 <= Y. A leaf at depth h that is split in slot t >= 3 has had A log(t/delta) rho^(-2h) <= t pulls.
t/log(t/delta) grows for t >= e delta, and so from 3 on: rho^(-2h) <= X, that is h <= log X/(2 log(1/rho)). Its children
are one deeper. As log(1/rho) >= 1 - rho, their depth is at most 1 + Y/2 <= Y. The paper's proof leaves out the one
level more; its step log(t/delta) >= log(T/delta) is the wrong way round, and what it is for holds as t/log(t/delta)
grows. The same without the clause: from slot 2 on log(t/delta) >= log(2/delta), so that the depth is at most 1 + max(0,
log(T/(A log(2/delta)))/(2 log(1/rho))).
"""

import sys
from fractions import Fraction
from math import factorial

import sympy

t, delta, rho, y = sympy.symbols("t delta rho Y", positive=True)
growth = sympy.diff(t / sympy.log(t / delta), t) * sympy.log(t / delta) ** 2 - (sympy.log(t / delta) - 1)
slope = sympy.diff(sympy.log(1 / rho) - (1 - rho), rho) - (rho - 1) / rho  # falls to 0 at rho = 1
steps = [growth, slope, sympy.log(1 / rho).subs(rho, 1), sympy.expand(y - (1 + y / 2) - (y - 2) / 2)]
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"t/log(t/delta) grows from e delta on, log(1/rho) >= 1 - rho, 1 + Y/2 <= Y from Y = 2 on: {holds}")

MOST, SCALE = 200, 10**12
log = [0, 0]  # floors of SCALE log t, 2 atanh(1/(2k + 1)) being log(1 + 1/k): too small by 20 t at most
for k in range(1, MOST):
    log.append(log[-1] + sum(2 * SCALE // ((2 * j + 1) * (2 * k + 1) ** (2 * j + 1)) for j in range(15)))
e_above = sum(Fraction(1, factorial(n)) for n in range(15)) + Fraction(2, factorial(15))
met = 0
for tenths in (3, 5, 7):  # rho; C = nu_1 = delta = 1, the deepest leaf is always picked
    depth, picks, weight = 0, 0, Fraction(1)  # of the deepest leaf; rho^(-2h)
    for slot in range(1, MOST + 1):
        picks += 1
        if picks * SCALE >= log[slot] * weight:
            depth, picks, weight = depth + 1, 0, weight * Fraction(100, tenths**2)
        inner = Fraction(slot * SCALE, log[slot] + 20 * slot) if slot > 1 else Fraction(1)  # below X
        if inner**10 >= e_above ** (2 * (10 - tenths)):  # Y >= 2
            met += 1
            holds = holds and inner**10 >= e_above ** (depth * (10 - tenths))
print(f"trees up to T = {MOST} at rho = 0.3, 0.5 and 0.7, in {met} slots where (7) is at least 2, obey it: {holds}")
print("proved: (7) with the clause" if holds and met else "not proved")
sys.exit(not (holds and met))
