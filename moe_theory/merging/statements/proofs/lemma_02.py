"""Lemma 2, Eq. (7), holds if its right side is at least 1, and in a closed form always (delta <= 1).

Let A = C^2/nu_1^2, X = T/(A log(T/delta)), and let Y = log X/(1 - rho) be the right side of (7). Let the depth be D + 1
>= 2. Then a leaf at depth D >= 1 was split in a slot s <= T.

Its D ancestors were split in other slots, so it had at most s - D pulls, and A log(s/delta) rho^(-2D) <= s - 1. As
log(T/delta) <= log(s/delta) + T/s - 1 and log s >= 1 - 1/s, (s - 1) log(T/delta) <= T log(s/delta). So X >= (s - 1)/(A
log(s/delta)) >= rho^(-2D), and D <= log X/(2 log(1/rho)). Hence the depth is at most 1 + max(0, log X/(2 log(1/rho))),
for every T.

As log(1/rho) >= 1 - rho, Y >= 2 D >= D + 1. So a tree of depth 2 or more obeys (7), and a tree of depth 1 obeys it if Y
>= 1. At delta = 1 the root is split in slot 1, so Y >= 1 cannot be weakened. The paper's proof leaves out the
additional level, and its log(t/delta) >= log(T/delta) is the wrong way round.
"""

import sys

import sympy

rho, s, T, log_s = sympy.symbols("rho s T l", positive=True)  # l = log(s/delta)
left = T * log_s - (s - 1) * (log_s + T / s - 1)  # grows with l, which is at least 1 - 1/s
least = left.subs(log_s, 1 - 1 / s) - (s - 1) / s
slope = sympy.diff(sympy.log(1 / rho) - (1 - rho), rho) - (rho - 1) / rho  # falls to 0 at rho = 1
steps = [sympy.diff(left, log_s) - (T - s + 1), least, slope, sympy.log(1 / rho).subs(rho, 1)]
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"(s - 1) log(T/delta) <= T log(s/delta), log(1/rho) >= 1 - rho: {holds}")
print("proved: (7) with the clause, and the closed form" if holds else "not proved")
sys.exit(not holds)
