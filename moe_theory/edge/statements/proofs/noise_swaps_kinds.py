"""Lemma 6, Eq. (27): features with noise, any gates at all.

Let beta = 1, |v_n - v_n'| = 2 u, and let noise not vanish: (s - 1) sigma_t^2 = tau^2 >= 2 u^2. Probabilities depend
on X through the sum of its columns, N(v_n, tau^2 I) for X_n and N(v_n', tau^2 I) for X_n'. Take any gates and any m
in M_n. If (27) holds for a pair of sums it fails for the pair exchanged. So the chance that it fails is at least half
of the overlap of the laws of the pair and of the pair exchanged. Along v_n - v_n' the difference of the sums is N(2u,
2 tau^2) against N(-2u, 2 tau^2), and all else is alike: half of the overlap is the chance that a standard normal
variable exceeds 2^0.5 u/tau, at most 1. That is at least the density at 2, e^-2 (2 pi)^-0.5 > 1/19, for every
sigma_0, where (27) has no exception. With vanishing noise it tends to 0, and without noise (27) compares the outputs
of the signals alone.

Robust: truths, signals, gates, router, delays and M do not matter; for any noise that does not vanish there is such a
bound.

Objection: X_n may be meant as the signal alone, as in Appendix A. Then the statement is the one that we call amended;
Lemma 6 and Appendix C say that X_n contains the signal, and Definition 1 has noise in it.
"""

import sys
from fractions import Fraction
from itertools import product
from math import factorial

EXPERTS = 3


def share(gates, at, m):
    """pi_m where a gate of g gives the output g ln(2) at 1: powers of two stand for exponentials."""
    powers = [Fraction(2) ** (gate * at) for gate in gates]
    return powers[m] / sum(powers)


either = True  # of a pair of sums and the pair exchanged (27) fails for one
for gates in product(range(-3, 4), repeat=EXPERTS):
    for m in range(EXPERTS):
        if gates[m] > -gates[m]:  # in the set (15) of the kind with signal 1, the other has -1
            for one, other in product(range(-4, 5), repeat=2):  # sums of columns
                holds = share(gates, one, m) > share(gates, other, m)
                either = either and not (holds and share(gates, other, m) > share(gates, one, m))
print(f"(27) fails for a pair of feature sums or for the pair exchanged, for any gates: {either}")
above = sum(Fraction(2**k, factorial(k)) for k in range(11)) + Fraction(2 * 2**11, factorial(11))  # e^2
root = Fraction(2507, 1000)  # above (2 pi)^0.5
pi = Fraction(355, 113)  # above pi
least = 1 / (above * root)
print(f"chance that (27) fails: {least} or more; allowed is none")
is_violated = either and root**2 > 2 * pi and least > Fraction(1, 19)
print("violated: noise exchanges the two kinds with a chance above 1/19" if is_violated else "not violated")
sys.exit(not is_violated)
