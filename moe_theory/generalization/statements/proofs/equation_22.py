"""Eq. (22), amended: it holds if the routers have at most Gamma mask functions in all.

By (16), Gamma <= G = binom(T, k)^(2 d_N) (2m)^(d_N). Fix one of the masks, and let Z be the largest L_S - L_D over the
models with this mask. Z is a function of m samples, and changing one sample changes it by at most 1/m. By McDiarmid's
inequality Z exceeds its mean by x with probability at most exp(-2 m x^2). The mean of Z is at most E phi, because L_D
is the mean of L_S' and a largest mean is at most the mean of the largest. The same holds for L_D - L_S.

Masks are fixed beforehand, so a union over G masks and two signs is allowed. All gaps are at most the largest E phi
plus x with probability at least 1 - 2 G exp(-2 m x^2). This is 1 - delta at x = sqrt((log G + log(2/delta))/(2m)). The
bound (22) is at least twice as large, because E phi >= 0. At k = T there is one mask function, so the condition holds.

Caveat: the paper does not say for which mask (22) has E phi. We take the mask with the largest mean.
"""

import sys

import sympy

m, delta, count = sympy.symbols("m delta G", positive=True)
patterns, dimension = sympy.symbols("B d_N", positive=True)  # B = binom(T, k)
excess = sympy.sqrt((sympy.log(count) + sympy.log(2 / delta)) / (2 * m))
chance = 2 * count * sympy.exp(-2 * m * excess**2)
left = sympy.expand_log(sympy.log(chance) - sympy.log(delta), force=True)
printed = 2 * sympy.sqrt((sympy.log(count) + sympy.log(4 / delta)) / (2 * m))
slack = sympy.expand_log((printed / 2) ** 2 - excess**2, force=True)
grown = sympy.expand_log(sympy.log(patterns ** (2 * dimension) * (2 * m) ** dimension), force=True)
inside = 2 * dimension * sympy.log(patterns) + dimension * sympy.log(2 * m)
steps = [left, slack - sympy.log(2) / (2 * m), sympy.expand(sympy.expand_log(grown - inside, force=True))]
steps = [sympy.simplify(step) for step in steps]
print(f"log of the probability, less log delta: {steps[0]}")
print(f"(half the root of (22))^2 less x^2 is log 2/(2m): {steps[1]}")
print(f"log G is 2 d_N log binom(T, k) + d_N log(2m): {steps[2]}")
holds = all(step == 0 for step in steps)
print("proved: (22) has probability 1 - delta" if holds else "not proved")
sys.exit(not holds)
