"""Appendix C, after Lemma 8: each expert has eta^-1 sigma_0^-0.5 tasks by T_1.

Let X = eta^-1 sigma_0^-0.5, K = ln(M/delta), T_1 = d_u + ceil(X M K), M >= d_u, and suppose that each idle server is
chosen with chance 1/(2M) or more, whatever came before. While a server has had fewer than X tasks it was busy for X
d_u <= X M rounds at most, so that it was idle for X M (K - 1) others. It has fewer than X by T_1 with a chance of at
most P(Bin(n, 1/(2M)) < X), n = X M (K - 1). By Chernoff, at e^-1, that is at most exp(X - (1 - 1/e) X (K - 1)/2), and
with 1 - 1/e > 0.63 at most exp(-X (0.315 K - 1.315)). M of these are below delta = M e^-K where X (0.315 K - 1.315) >=
K: for K >= 8 and X >= 7, and both tend to infinity.

Caveat: that each idle server is chosen with chance 1/(2M) or more is supposed and not shown. It is so where r is wide
beside the gates; the paper says, without a proof, that a server's chance of a visit is above that of uniform routing.
M >= d_u is Proposition 1's.
"""

import sys
from fractions import Fraction
from math import comb, factorial

low = sum(Fraction(1, factorial(k)) for k in range(12))  # below e
holds = 1 - 1 / low > Fraction(63, 100)
print(f"1 - 1/e > 63/100: {holds}")
for count, log in ((7, 8), (7, 100), (100, 8), (10**6, 50)):
    left = count * (Fraction(315, 1000) * log - Fraction(1315, 1000))
    holds = holds and left >= log
    print(f"X = {count}, K = {log}: exponent {left}, at least K: {left >= log}")
holds = holds and Fraction(315, 1000) * 7 > 1  # so that the left side grows faster in K, for X >= 7
experts, count, log = 3, 7, 8
rounds, chance = count * experts * (log - 1), Fraction(1, 2 * experts)
exact = sum(comb(rounds, k) * chance**k * (1 - chance) ** (rounds - k) for k in range(count))
bound = 1 / low ** (count * (315 * log - 1315) // 1000)  # the exponent rounded towards 0
holds = holds and exact <= bound
print(f"M = {experts}, X = {count}, K = {log}: exact chance below the bound 1/{low**8 // 1}: {exact <= bound}")
print("proved: all are explored, but for a chance of delta" if holds else "not proved")
sys.exit(not holds)
