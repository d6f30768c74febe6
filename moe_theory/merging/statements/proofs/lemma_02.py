"""Lemma 2, Eq. (7), holds if its right side is at least 1, and a closed form always holds (delta <= 1).

Let A = C^2/nu_1^2, X = T/(A log(T/delta)), and let Y = log X/(1 - rho) be the right side of (7). Let the depth be D + 1
>= 2. Then a leaf at depth D >= 1 was split in a slot s <= T. Its D ancestors were split in other slots, so it had at
most s - D pulls, and A log(s/delta) rho^(-2D) <= s - 1. As log(T/delta) <= log(s/delta) + T/s - 1 and log s >= 1 - 1/s,
(s - 1) log(T/delta) <= T log(s/delta). So X >= (s - 1)/(A log(s/delta)) >= rho^(-2D), and D <= log X/(2 log(1/rho)). So
the depth is at most 1 + max(0, log X/(2 log(1/rho))), for every T.

As log(1/rho) >= 1 - rho, Y >= 2 D >= D + 1. So a tree of depth 2 or more obeys (7), and a tree of depth 1 obeys it if Y
>= 1. At delta = 1 the root is split in slot 1, so Y >= 1 cannot be weakened. The paper's proof leaves out the
additional level, and its inequality log(t/delta) >= log(T/delta) is reversed.
"""

import sys
from fractions import Fraction

import sympy

rho, s, T, log_s, depth = sympy.symbols("rho s T l D", positive=True)  # l = log(s/delta)
left = T * log_s - (s - 1) * (log_s + T / s - 1)  # grows with l, which is at least 1 - 1/s
least = left.subs(log_s, 1 - 1 / s) - (s - 1) / s
slope = sympy.diff(sympy.log(1 / rho) - (1 - rho), rho) - (rho - 1) / rho  # falls to 0 at rho = 1
steps = [sympy.diff(left, log_s) - (T - s + 1), least, slope, sympy.log(1 / rho).subs(rho, 1)]
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"(s - 1) log(T/delta) <= T log(s/delta), log(1/rho) >= 1 - rho: {holds}")

MOST, SCALE = 60, 10**12
log = [0, 0]  # floors of SCALE log n, 2 atanh(1/(2k + 1)) being log(1 + 1/k): too small by 20 n at most
for k in range(1, 10 * MOST):
    log.append(log[-1] + sum(2 * SCALE // ((2 * j + 1) * (2 * k + 1) ** (2 * j + 1)) for j in range(15)))
met, deepest = 0, 0
for ratio in (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)):
    for inverse in (1, 2, 10):  # 1/delta
        for first, share in ((2, 1), (3, 1), (6, 1), (2, 9)):  # a half of the root can just be split in this slot
            scale = ratio**2 * (first - 1) * SCALE / (log[first * inverse] + 20 * first * inverse) / share  # A
            level, pulls = 0, 0  # of the deepest leaf, which is always picked
            for slot in range(1, MOST + 1):
                pulls += 1
                if pulls * SCALE >= scale * log[slot * inverse] / ratio ** (2 * level):
                    level, pulls = level + 1, 0
                if level >= 2:  # X >= rho^(-2D)
                    met, deepest = met + 1, max(deepest, level)
                    above = scale * (log[slot * inverse] + 20 * slot * inverse)
                    holds = holds and slot * SCALE * ratio ** (2 * level - 2) >= above
print(f"the deepest trees up to T = {MOST}, to depth {deepest}, have log X >= 2 D log(1/rho) in {met} slots: {holds}")
print("proved: (7) with the clause, and the closed form" if holds and met else "not proved")
sys.exit(not (holds and met))
