"""Lemma 5, first sentence, holds: two probabilities differ by at most half the difference of their outputs.

Let d = h_m - h_m' >= 0. Then pi_m - pi_m' = (pi_m + pi_m') tanh(d/2), since both sides are (e^h_m - e^h_m')/Z. The
first factor is at most 1. For x >= 0, tanh(x) <= x, because both are 0 at 0, and tanh' = 1 - tanh^2 <= 1. So |pi_m -
pi_m'| <= d/2 for all outputs, close or not.
"""

import sys

from sympy import diff, exp, simplify, symbols, tanh

a, b, rest, x = symbols("a b rest x", positive=True)  # e^h_m, e^h_m', and the sum of all others
whole = a + b + rest
ratio = (a - b) / (a + b)  # tanh(d/2), as follows
first = simplify(((exp(2 * x) - 1) / (exp(2 * x) + 1) - tanh(x)).rewrite(exp))
second = simplify((a / whole - b / whole) - (a / whole + b / whole) * ratio)
third = simplify(ratio - (a / b - 1) / (a / b + 1))
slope = simplify(diff(tanh(x), x) - (1 - tanh(x) ** 2))
print(f"(e^2x - 1)/(e^2x + 1) - tanh x = {first}, with e^2x = a/b: {third}")
print(f"pi_m - pi_m' - (pi_m + pi_m') tanh = {second}; tanh' - (1 - tanh^2) = {slope}")
holds = (first, second, third, slope) == (0, 0, 0, 0)
print("proved: |pi_m - pi_m'| is at most half of |h_m - h_m'|" if holds else "not proved")
sys.exit(not holds)
