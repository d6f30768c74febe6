"""Corollary 1 holds with 1/lambda for lambda if noise is O(sigma_0) and both samples share signal and strength.

Claim. Then probabilities differ by O(sigma_0^1.5/lambda) = O(sigma_0^.25), with probability 1 - o(1).

Proof. (a) Let e be the largest difference of an output between the arrivals. Expert m is chosen if r_m exceeds max_{j
!= m} (h_j + r_j) - h_m. This threshold moves by at most 2 e, and r_m has density at most 1/lambda. So |p_m - p^_m| <= 2
e/lambda. (b) Let g and g~ be the sums of the noise columns. Then e <= |theta_m| (|g| + |g~|). Both sums are O(sigma_0)
with any probability below 1. Gates are O(sigma_0^.625) up to T1/sigma_0 rounds (Lemma 1's proof). So e = O(sigma_0^1.5)
with probability 1 - o(1). The corollary also holds with M^2/lambda in place of 2/lambda.

Robust: The proof allows any M, s, Gamma, routes, signals and size of beta, and also ties.

Caveat: Gates are updated in at most T1/sigma_0 rounds. The paper's last round, t2, is sigma_0^-.75 T1.
"""

import sys
from fractions import Fraction

import sympy as sp

# The threshold moves by at most 2 e: max_j (h_j + r_j) moves by at most e, because each term does, and h_m too.
e, low, high = sp.symbols("e l u", positive=True)
left = [sp.expand((high + e) - (low - e) - (high - low) - 2 * e)]
# Two experts, outputs apart by x lambda: p = 1/2 + x - x^2/2 for x in [0, 1], whose slope 1 - x is at most 1, so that
# the slope in an output is at most 1/lambda, and 2/lambda if one rises as the other falls.
x, r = sp.symbols("x r", positive=True)
share = sp.integrate(r + x, (r, 0, 1 - x)) + x
left += [sp.expand(share - (sp.Rational(1, 2) + x - x**2 / 2)), sp.expand(sp.diff(share, x) - 1 + x)]

LAMBDA, GATES, NOISE, DELTA = Fraction(5, 4), Fraction(5, 8), Fraction(1), Fraction(1, 4)  # exponents of sigma_0
gap = GATES + NOISE - DELTA / 2  # with probability 1 - O(sigma_0^DELTA), by Markov
print(f"identities, each 0: {', '.join(map(str, left))}")
print(f"outputs differ by O(sigma_0^{gap}), probabilities by O(sigma_0^{gap - LAMBDA})")
print(f"amended: O(sigma_0^{Fraction(3, 2) - LAMBDA}); as printed it would be O(sigma_0^{Fraction(3, 2) + LAMBDA})")
is_proved = set(left) == {0} and gap >= Fraction(3, 2) and DELTA > 0
print("proved: O(sigma_0^1.5/lambda)" if is_proved else "not proved")
sys.exit(not is_proved)
