"""Appendix C, after Lemma 8: every expert serves eta^-1 sigma_0^-0.5 tasks by T_1, with probability 1 - delta.

Let X = eta^-1 sigma_0^-0.5, K = ln(M/delta), T_1 = d_u + ceil(X M K) and M >= d_u. Whatever happened before, let each
idle server be chosen with probability at least 1/(2M).

A server with fewer than X tasks was busy in at most X d_u <= X M rounds, so it was idle for at least n = X M (K - 1)
rounds. It has fewer than X tasks at T_1 with probability at most P(Bin(n, 1/(2M)) < X). By Chernoff's bound at e^-1
this is at most exp(X - (1 - 1/e) X (K - 1)/2). As 1 - 1/e > 0.63, it is at most exp(-X (0.315 K - 1.315)). The sum over
M servers is below delta = M e^-K if X (0.315 K - 1.315) >= K. This holds for K >= 8 and X >= 7. Both tend to infinity.

Caveat: we assume, and do not show, that each idle server is chosen with probability at least 1/(2M). This is true if r
is wide compared with the gates. Without a proof the paper says that a server is visited with a higher probability than
under uniform routing. M >= d_u is a condition of Proposition 1.
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
holds = holds and Fraction(315, 1000) * 7 > 1  # so the left side grows faster in K, for X >= 7
experts, count, log = 3, 7, 8
rounds, chance = count * experts * (log - 1), Fraction(1, 2 * experts)
exact = sum(comb(rounds, k) * chance**k * (1 - chance) ** (rounds - k) for k in range(count))
bound = 1 / low ** (count * (315 * log - 1315) // 1000)  # the exponent rounded towards 0
holds = holds and exact <= bound
print(f"M = {experts}, X = {count}, K = {log}: exact probability below the bound 1/{low**8 // 1}: {exact <= bound}")
print("proved: all are explored with probability 1 - delta" if holds else "not proved")
sys.exit(not holds)
