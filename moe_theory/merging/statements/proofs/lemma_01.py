"""Lemma 1, Eq. (5), and Eq. (8) for t >= sqrt(T) hold where their right sides are at least 2 (delta <= 1).

Let A = C^2/nu_1^2, S = 2^(1/(1 - rho)), and let R = S T/(A log(T/delta)) be the bound (5). As 1/(1 - rho) >= 4 rho and
e^x >= e x, S >= (2 e log(2) rho)^2 >= 14 rho^2. The root's split makes 2 leaves, and every other split adds one.

Let another split be in slot s. Its leaf has depth 1 or more and had at most s - 1 pulls, so A log(s/delta)/rho^2 <= s -
1. For x >= s, log(x/delta) <= log(s/delta) + x/s - 1 and log s >= 1 - 1/s. So (s - 1) log(x/delta) <= x log(s/delta),
and x/(A log(x/delta)) >= 1/rho^2. At x = T this is R >= 14. At x = sqrt(T) >= s, R >= 7 sqrt(T), as log(T/delta) <= 2
log(sqrt(T)/delta). So at most R/7 such splits occur up to slot sqrt(T). A later split uses up A log(T/delta)/(2 rho^2)
pulls of its leaf, which no other split shares. As S >= 14 rho^2, at most R/7 come later.

If there is any, N_t <= 2 + 2 R/7 <= 3 R/7. So N_t <= max(2, R/2) for all t <= T. At t >= sqrt(T) the right side of (8)
is at least half of R with t for T.
"""

import sys
from fractions import Fraction

import sympy

rho, s, x, delta, log_s = sympy.symbols("rho s x delta l", positive=True)  # l = log(s/delta)
square = sympy.expand((1 / (1 - rho) - 4 * rho) * (1 - rho) - (1 - 2 * rho) ** 2)
left = x * log_s - (s - 1) * (log_s + x / s - 1)  # grows with l, which is at least 1 - 1/s
least = left.subs(log_s, 1 - 1 / s) - (s - 1) / s
halves = sympy.expand_log(2 * sympy.log(sympy.sqrt(x) / delta) - sympy.log(x / delta) + sympy.log(delta), force=True)
steps = [square, sympy.diff(left, log_s) - (x - s + 1), least, halves]
holds = all(sympy.simplify(each) == 0 for each in steps)
LOG_2, E = Fraction(69, 100), Fraction(2716, 1000)  # below log 2 and e, by the first terms of exp
assert sum(LOG_2**n / [1, 1, 2, 6, 24, 120][n] for n in range(6)) + LOG_2**6 / 360 < 2
assert sum(Fraction(1, each) for each in (1, 1, 2, 6, 24, 120)) > E
holds = holds and (2 * E * LOG_2) ** 2 >= 14
print(f"(s - 1) log x <= x log s, log T <= 2 log sqrt(T), (2 e log 2)^2 >= {(2 * E * LOG_2) ** 2} >= 14: {holds}")

MOST, SCALE = 10, 10**12
log = [0, 0]  # floors of SCALE log n, 2 atanh(1/(2k + 1)) being log(1 + 1/k): too small by 20 n at most
for k in range(1, 10 * MOST):
    log.append(log[-1] + sum(2 * SCALE // ((2 * j + 1) * (2 * k + 1) ** (2 * j + 1)) for j in range(15)))
tried = 0
for ratio in (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)):
    for inverse in (1, 2, 10):  # 1/delta
        for first, share in ((2, 1), (3, 1), (6, 1), (2, 9)):  # a half of the root can just be split in this slot
            scale = ratio**2 * (first - 1) * SCALE / (log[first * inverse] + 20 * first * inverse) / share  # A
            trees = {((0, 0),)}  # depths and pulls of leaves, over all ways to pick them
            for slot in range(1, MOST + 1):
                due = [scale * log[slot * inverse] / ratio ** (2 * h) for h in range(slot)]
                grown = set()
                for tree in trees:
                    for place, (depth, pulls) in enumerate(tree):
                        is_split = (pulls + 1) * SCALE >= due[depth]
                        made = ((depth + 1, 0),) * 2 if is_split else ((depth, pulls + 1),)
                        grown.add(tuple(sorted(tree[:place] + tree[place + 1 :] + made)))
                trees, tried = grown, tried + len(grown)
                most, above = max(map(len, trees)), scale * (log[slot * inverse] + 20 * slot * inverse)
                holds = holds and (most <= 2 or most * above <= 6 * ratio**2 * slot * SCALE)  # 3 R/7, with 14 rho^2
print(f"{tried} trees of up to {MOST} slots have at most max(2, 6 rho^2 T/(A log(T/delta))) leaves: {holds}")
print("proved: (5) and (8) with their clauses" if holds else "not proved")
sys.exit(not holds)
