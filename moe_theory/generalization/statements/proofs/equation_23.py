"""Eq. (23) is at least (22), because binom(T, k) <= (e T/k)^k.

The product k! binom(T, k) = T (T - 1) ... (T - k + 1) is at most T^k. The series of e^k has the term k^k/k! and only
positive terms, so k! >= (k/e)^k. So binom(T, k) <= T^k/k! <= (e T/k)^k, and log binom(T, k) <= k (1 + log(T/k)). The
bounds (22) and (23) differ only in this term. It is multiplied by 2 d_N >= 0 and stands under a root, so the bound
grows with it. So (23) is at least (22).
"""

import sys
from fractions import Fraction
from math import comb, factorial, prod

MOST = 64
e_below = sum(Fraction(1, factorial(n)) for n in range(20))  # below e
holds = True
for experts in range(1, MOST + 1):
    for active in range(1, experts + 1):
        falling = prod(range(experts - active + 1, experts + 1))
        holds = holds and factorial(active) * comb(experts, active) == falling <= experts**active
        holds = holds and comb(experts, active) <= (e_below * experts / active) ** active
for active in range(1, MOST + 1):
    term = Fraction(active**active, factorial(active))
    series = sum(Fraction(active**n, factorial(n)) for n in range(active + 1))
    holds = holds and term <= series  # < e^k
print(f"k! binom(T, k) = T (T - 1) ... (T - k + 1) <= T^k and k^k/k! < e^k, for T and k up to {MOST}: {holds}")
print(f"binom(T, k) <= (e T/k)^k, with {e_below} for e: {holds}")
print("proved: (23) is no less than (22)" if holds else "not proved")
sys.exit(not holds)
