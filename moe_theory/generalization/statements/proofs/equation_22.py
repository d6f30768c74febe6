"""Eq. (22) follows from (10), (15), (16) and (20) as printed: a larger gap has probability at most delta.

We read (21) as a probability and (22) as a gap. Equation (10) has a factor of 2 and (15) a factor of 2 Gamma. By (16),
Gamma <= G = binom(T, k)^(2 d_N) (2m)^(d_N). With (20), a gap of eps has probability at most 4 G exp(-2m (eps/2 - E
phi)^2). At eps = 2 E phi + 2 sqrt((log G + log(4/delta))/(2m)) the exponent is -(log G + log(4/delta)), and the
probability is delta. A larger eps makes the probability smaller, which is (22).

Equation (10) requires exp(-eps^2 m/2) <= 1/4. The mean E phi is at least 0, as L_S - L_S' has mean 0 for each f. So
eps^2 m/2 is at least log G + log(4/delta) >= log 4, as G >= 1 and delta <= 1. Two of the steps, (15) and (20), fail as
printed. We only show that (22) follows from them.

Caveat: the paper does not say for which mask (22) has E phi. We take the mask with the largest mean.
"""

import sys

import sympy

m, mean, delta, count = sympy.symbols("m Ephi delta G", positive=True)
patterns, dimension = sympy.symbols("B d_N", positive=True)  # B = binom(T, k)
eps = sympy.symbols("epsilon", positive=True)
chance = 2 * 2 * count * sympy.exp(-2 * m * (eps / 2 - mean) ** 2)
root = sympy.sqrt((sympy.log(count) + sympy.log(4 / delta)) / (2 * m))
at_root = sympy.simplify(sympy.expand_log(sympy.log(chance.subs(eps, 2 * mean + 2 * root)), force=True))
falls = sympy.simplify(sympy.diff(sympy.log(chance), eps) + 2 * m * (eps / 2 - mean))
grown = sympy.expand_log(sympy.log(patterns ** (2 * dimension) * (2 * m) ** dimension), force=True)
inside = 2 * dimension * sympy.log(patterns) + dimension * sympy.log(2 * m)
asked = sympy.expand((2 * root) ** 2 * m / 2) - sympy.log(count) - sympy.log(4 / delta)
steps = [asked, at_root - sympy.log(delta), falls, sympy.expand(sympy.expand_log(grown - inside, force=True))]
steps = [sympy.simplify(step) for step in steps]
print(f"log of the probability at (22), less log delta: {steps[1]}")
print(f"its derivative in eps is -2 m (eps/2 - E phi), below 0 beyond 2 E phi: {steps[2]}")
print(f"log G is 2 d_N log binom(T, k) + d_N log(2m): {steps[3]}")
print(f"eps^2 m/2 at E phi = 0 is log G + log(4/delta): {steps[0]}")
holds = all(step == 0 for step in steps)
print("proved: (22) solves for delta" if holds else "not proved")
sys.exit(not holds)
