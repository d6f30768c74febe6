"""Counterexample to Proposition 3 (T2): one expert has no flag up to T2, so that gates are not fixed.

Claim. Let A be the expert that round 1 chooses. Up to T2 = sigma_0^-.25 M/eta, A is not chosen again and is never
within Gamma of the chosen expert. So A has no flag, and the gates keep changing. Let s = 1, N = 2, v_1 = (1, 0, 0), v_2
= (3/5, 4/5, 0), beta = 1, w_n = sigma_0 v_n, eta = alpha = sigma_0^.5, and let M be of order ln 1/sigma_0.

Proof. (a) Round 1 lowers A's outputs for both signals by more than lambda and Gamma. (b) As shown for Lemma 8, A trails
by at least eta alpha (3/5 - exp(H) (log2 t + sqrt(t M) |w*|/(alpha M))/(M - 1)), with w* = sigma_0 (1, 1/2, 0). (c) The
last term is of order sigma_0^.125 at T2. So up to T2 no later rounds compensate for round 1.

Robust: The proof allows any lambda and Gamma of O(sigma_0^1.25), any delta, any constant in T2, and N signals with a
common angle below 90 degrees and a common solution.

Objection: M is meant to be fixed. But M = Omega(N ln N) sets no limit to it, and T2 contains M. We add the condition
that signals are orthogonal or alpha = o(sigma_0^.75). Then A can still be chosen, and gates are fixed soon.

Caveat: M grows like ln 1/sigma_0 as sigma_0 falls.
"""

import sys
from fractions import Fraction
from math import isqrt

COSINE, LENGTH = Fraction(3, 5), Fraction(9, 8)  # |w*|/sigma_0 is below 9/8
solution, signals = (1, Fraction(1, 2)), ((1, 0), (COSINE, Fraction(4, 5)))
assert all(sum(a * b for a, b in zip(signal, solution, strict=True)) == 1 for signal in signals)
assert 1 + Fraction(1, 4) < LENGTH**2

is_violated = True
for power in (6, 9, 12):
    fourth = 10**power  # sigma_0^-.25
    scale, root = Fraction(1, fourth**4), Fraction(1, fourth**2)  # sigma_0; eta and alpha
    experts = 4 * (fourth**2).bit_length()
    last = 10 * experts * fourth**3  # ten times T2
    moves = (isqrt(last * experts) + 1) * LENGTH * scale  # at least the sum of |dw|
    shares = last.bit_length() - 1  # at least the sum of f/t from round 2 on
    height = root * (2 * scale + root * experts + moves + root * experts * shares)  # at least H
    growth = (shares + moves / (root * experts)) / (experts - 1) / (1 - height)  # exp(H) <= 1/(1 - H)
    trails, reach = root * root * (COSINE - growth), 20 * scale / fourth  # lambda + Gamma, 10 sigma_0^1.25 each
    is_violated = is_violated and 0 < height < 1 and trails > reach
    print(f"sigma_0 = 10^-{4 * power}, M = {experts}: A trails by over {trails // reach} (lambda + Gamma) up to 10 T2")
print("violated: gates are not fixed by T2, whatever its constant" if is_violated else "not violated")
sys.exit(not is_violated)
