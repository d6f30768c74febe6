"""Lemma 10: two probabilities whose outputs are d apart differ by (pi_m + pi_m') tanh(d/2).

Identity. Let d = |h_m - h_m'|. Dividing numerator and denominator by the geometric mean of the two weights gives |pi_m
- pi_m'| = (pi_m + pi_m') tanh(d/2).

First sentence. Because tanh' = 1 - tanh^2 <= 1, tanh(d/2) <= d/2. So the difference is at most (pi_m + pi_m') d/2 <=
d/2.

Second sentence. Let all |h| <= 1. By Lemma 6 this holds for small sigma_0. (a) Then d <= 2. (b) tanh'' = -2 tanh (1 -
tanh^2) <= 0, so on [0, 1] tanh lies above its chord: tanh(d/2) >= tanh(1) d/2. Here tanh(1) = (e^2 - 1)/(e^2 + 1) >=
3/4, as e^2 >= 7. (c) Each pi is at least exp(-2)/M >= 2/(15 M), as e^2 <= 15/2. (d) So the difference is at least d/(10
M), which is Omega(d) for fixed M, whether d is close to 0 or not. Among M experts it is of order d/M, not larger.

Robust: The identity does not depend on the other experts' outputs. A bound H in place of 1 gives another constant. With
no bound the second sentence fails, because d may grow but a difference of probabilities is at most 1.
"""

import sys
from fractions import Fraction
from math import factorial

import sympy as sp

a, b, rest, x = sp.symbols("a b rest x", positive=True)
total = sp.exp(a) + sp.exp(b) + rest
one, other = sp.exp(a) / total, sp.exp(b) / total
half = (sp.exp((a - b) / 2) - sp.exp((b - a) / 2)) / (sp.exp((a - b) / 2) + sp.exp((b - a) / 2))  # tanh((a - b)/2)
identity = sp.simplify(one - other - (one + other) * half)

tanh = (sp.exp(x) - sp.exp(-x)) / (sp.exp(x) + sp.exp(-x))
slope = sp.simplify((sp.diff(tanh, x) - 1 + tanh**2).rewrite(sp.exp))
bend = sp.simplify((sp.diff(tanh, x, 2) + 2 * tanh * (1 - tanh**2)).rewrite(sp.exp))
chord = sp.simplify(tanh.subs(x, 1) - (sp.exp(2) - 1) / (sp.exp(2) + 1))

TERMS = 12  # of the series of e^2, whose rest is below twice its first term, as the terms at least halve
least = sum(Fraction(2**k, factorial(k)) for k in range(TERMS))
most = least + 2 * Fraction(2**TERMS, factorial(TERMS))
constant = 2 * Fraction(2, 15) * Fraction(3, 4) * Fraction(1, 2)  # (pi + pi') M, tanh(1), and d/2
print(f"identity, tanh' - 1 + tanh^2, tanh'' + 2 tanh (1 - tanh^2), tanh(1): {identity}, {slope}, {bend}, {chord}")
print(f"e^2 is above 7: {least > 7}; and below 15/2: {most < Fraction(15, 2)}")
print(f"tanh(1) is at least {Fraction(7 - 1, 7 + 1)}; the difference at least d/M times {constant}, at most d/2")
is_proved = {identity, slope, bend, chord} == {0} and 7 < least < most < Fraction(15, 2)
is_proved = is_proved and constant == Fraction(1, 10) and Fraction(7 - 1, 7 + 1) == Fraction(3, 4)
print("proved: at most d/2, and at least d/(10 M) where outputs are at most 1" if is_proved else "not proved")
sys.exit(not is_proved)
