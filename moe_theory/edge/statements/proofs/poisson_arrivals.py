"""Counterexample to Appendix B, Pr(A_n > M_th) < delta: for d_u = N = 10 and delta = 1/20 it is 0.0702.

A_n counts the arrivals of a type in d_u rounds. It is close to Poisson with mean d_u/N = 1. A Poisson tail is heavier
than the normal tail behind M_th.

With delta = 1/20 (16) gives M_th = 1 + Phi^-1(0.95) 0.9^0.5. The normal tail beyond 2 is at most phi(2)/2 = e^-2 / (2
(2 pi)^0.5) < 1/20, so Phi^-1(0.95) < 2 and M_th < 3. So more than M_th arrivals are three or more, which have the
binomial probability 0.0702. For delta = 10^-6 the bound phi(5)/5 < 10^-6 gives M_th < 6. Six or more arrivals have a
probability above 10^-4. If delta = o(1) falls with d_u = N long enough, the ratio is unbounded, because a Poisson tail
falls like 1/k! and a normal tail like e^(-k^2/2).

Robust: the argument works for any d_u and N, if d_u/N stays bounded while delta falls.

Objection: d_u is large in Appendix B, and the normal limit is right at a fixed delta if d_u/N grows, which is our
condition. But Fig. 3 has d_u = 10 and N = 10, and delta is o(1). Proposition 1 does not contain this step.
"""

import sys
from fractions import Fraction
from math import comb

WINDOW, KINDS = 10, 10  # d_u, N


def normal_tail(z: int) -> Fraction:
    """Return a bound above phi(z)/z >= P(Z > z), by e > 27/10 and (2 pi)^0.5 > 25/10."""
    return 1 / (Fraction(27, 10) ** (z * z // 2) * Fraction(25, 10) * z)


def more_than(count: int) -> Fraction:
    """Return the probability of more than `count` arrivals of a type in d_u rounds."""
    ways = [comb(WINDOW, k) * (KINDS - 1) ** (WINDOW - k) for k in range(count + 1, WINDOW + 1)]
    return Fraction(sum(ways), KINDS**WINDOW)


is_violated = True
for delta, z in ((Fraction(1, 20), 2), (Fraction(1, 10**6), 5)):
    # M_th = d_u/N + Phi^-1(1 - delta) (d_u/N (1 - 1/N))^0.5, and (9/10)^0.5 < 95/100
    most = Fraction(WINDOW, KINDS) + z * Fraction(95, 100)
    found = more_than(most // 1)
    is_violated = is_violated and normal_tail(z) < delta < found  # the quantile is below z
    print(f"delta = {delta}: M_th is below {most}; more arrivals have a probability of {found} or more")
whole = more_than(most // 1 + 1)  # beyond that quantile rounded up to whole experts
is_violated = is_violated and whole > delta
print(f"    rounded up, {most // 1 + 1} or less; more have {whole} or more")
print("violated: both chances exceed delta" if is_violated else "not violated")
sys.exit(not is_violated)
