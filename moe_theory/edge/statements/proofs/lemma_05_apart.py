"""Lemma 5, second sentence, holds for bounded outputs of a fixed number of experts.

Let |h_m| <= B for all M experts, with B and M fixed, and let d = h_m - h_m' > 0. Then pi_m - pi_m' = pi_m' (e^d - 1) >=
pi_m' d, because e^d - 1 - d is 0 at 0 and has the slope e^d - 1 >= 0. Also pi_m' >= e^-B/(M e^B). So |pi_m - pi_m'| >=
(e^(-2B)/M) |h_m - h_m'|.

Without a bound on the outputs, the factor is the smaller probability: |pi_m - pi_m'| >= min(pi_m, pi_m') |h_m - h_m'|.
"""

import sys

from sympy import cancel, diff, exp, symbols

a, b, rest, x = symbols("a b rest x", positive=True)  # e^h_m, e^h_m', the sum of all others; d
whole = a + b + rest
first = cancel((a - b) / whole - (b / whole) * (a / b - 1))
second = cancel(diff(exp(x) - 1 - x, x) - (exp(x) - 1))
print(f"pi_m - pi_m' - pi_m' (e^d - 1) = {first}")
print(f"slope of e^d - 1 - d, less e^d - 1 = {second}, and its value at 0 is {(exp(x) - 1 - x).subs(x, 0)}")
holds = (first, second, (exp(x) - 1 - x).subs(x, 0)) == (0, 0, 0)
print("proved: |pi_m - pi_m'| is at least e^(-2B)/M times |h_m - h_m'|" if holds else "not proved")
sys.exit(not holds)
