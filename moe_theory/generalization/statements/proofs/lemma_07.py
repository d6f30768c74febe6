"""Lemma 7 holds as printed, and also with the true risk in (34) if the loss is in [0, 1].

As printed, both sides have the same gap. So the lemma is trivial: a gap above eps is above eps/2, and the factor is at
most 1. But (10) uses the lemma with L_D for L_S' in (34).

Let the loss be in [0, 1]. If sup |L_S - L_D| > eps, some h that depends on S alone has |L_S(h) - L_D(h)| > eps. The
sample S' is independent of h, and |L_S'(h) - L_D(h)| <= eps/2 implies |L_S(h) - L_S'(h)| > eps/2. By Hoeffding's
inequality P(|L_S'(h) - L_D(h)| > eps/2) <= 2 exp(-2 m (eps/2)^2) = 2 exp(-eps^2 m/2) for every h. This gives the
factor. Hoeffding's inequality needs log E exp(s (X - p)) <= s^2/8 for X in [0, 1] with mean p. By convexity a coin with
mean p is the worst case. Its g(s) = log(1 - p + p e^s) - p s has g(0) = g'(0) = 0 and g'' = q (1 - q) <= 1/4 for some q
in [0, 1]. At m = 1 and eps = 9.99 the lemma fails for a loss that is 1,000 with probability .01 and otherwise 0.

Objection: (10) uses the lemma with the true risk. But in Theorem 1 the loss is in [0, 1], so this version holds there
too.
"""

import sys
from fractions import Fraction
from math import comb

import sympy

p, s, z = sympy.symbols("p s z", positive=True)
g = sympy.log(1 - p + p * sympy.exp(s)) - p * s
q = p * sympy.exp(s) / (1 - p + p * sympy.exp(s))
steps = [g.subs(s, 0), sympy.diff(g, s).subs(s, 0), sympy.diff(g, s, 2) - q * (1 - q)]
steps.append(sympy.Rational(1, 4) - z * (1 - z) - (z - sympy.Rational(1, 2)) ** 2)
eps, m, u = sympy.symbols("eps m u", positive=True)
# P(mean of X - p > u) <= exp(-m s u + m s^2/8), least at s = 4 u
steps.append((-m * s * u + m * s**2 / 8).subs(s, 4 * u) + 2 * m * u**2)
steps.append(2 * m * (eps / 2) ** 2 - eps**2 * m / 2)
holds = all(sympy.simplify(step) == 0 for step in steps)
print(f"g(0) = g'(0) = 0, g'' = q (1 - q), 1/4 - q (1 - q) is a square, the exponents agree: {holds}")

SAMPLES, GAP = 16, Fraction(2, 5)  # a fair coin: exp(-x) >= (1 - x/16)^16 bounds the factor from above


def chance(tosses: int, above: Fraction) -> Fraction:
    """Return the probability that |heads - tosses/2| is above this value."""
    return Fraction(sum(comb(tosses, n) for n in range(tosses + 1) if abs(n - Fraction(tosses, 2)) > above), 2**tosses)


factor = 1 - 2 * (1 - GAP**2 * SAMPLES / 2 / 16) ** 16
left, right = chance(SAMPLES, SAMPLES * GAP), chance(2 * SAMPLES, SAMPLES * GAP / 2)
print(f"a coin, m = {SAMPLES}, eps = {GAP}: {factor * left} at most on the left, {right} on the right")
holds = holds and factor > 0 and factor * left <= right
big, rare, eps = 1000, Fraction(1, 100), Fraction(999, 100)
mean = big * rare
left = (rare if big - mean > eps else 0) + (1 - rare if mean > eps else 0)
right = 2 * rare * (1 - rare)
print(f"a loss of {big} with probability {rare}, m = 1, eps = {eps}: {left} on the left, its factor near 1, {right}")
holds = holds and left > right
print("proved: for losses in [0, 1]" if holds else "not proved")
sys.exit(not holds)
