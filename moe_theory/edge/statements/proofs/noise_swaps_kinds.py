"""Counterexample to Lemma 6, Eq. (27): with noise it fails with probability above 1/19 at every sigma_0.

(27) has no probability, so we allow exceptions with probability o(1). Noise can exchange features of types n and n'.
Let beta = 1, |v_n - v_n'| = 2 u and (s - 1) sigma_t^2 = tau^2 >= 2 u^2, with one ground truth per type.

1. Probabilities depend on X through the sum of its columns, N(v_n, tau^2 I) for X_n and N(v_n', tau^2 I) for X_n'.
Outputs tie with probability 0, so each expert is in a set (15).

2. If (27) holds for a pair of sums, it fails for the exchanged pair. So (27) fails with a probability of at least half
the overlap of the distributions of the pair and the exchanged pair.

3. Along v_n - v_n' the difference of the sums is N(2u, 2 tau^2) for the pair, and N(-2u, 2 tau^2) for the exchanged
pair. Everything else is equal. Half of the overlap is the probability that a standard normal variable exceeds 2^0.5
u/tau <= 1. This probability is at least the density at 2, e^-2 (2 pi)^-0.5 > 1/19.

Robust: the argument works for any ground truths, signals, gates, router, delays and M. For any noise that does not
vanish, the probability has such a bound. If noise vanishes, the probability tends to 0.

Objection: X_n may mean the signal alone, as in Appendix A. Then the lemma holds, as our condition says. But Lemma 6 and
Appendix C say that X_n contains the signal, and Definition 1 has noise in it.
"""

import sys
from fractions import Fraction
from itertools import product
from math import comb

EXPERTS = 3


def share(gates, at, m):
    """Return pi_m, where a gate g has the output g ln(2) at 1, so exponentials are powers of two."""
    powers = [Fraction(2) ** (gate * at) for gate in gates]
    return powers[m] / sum(powers)


LAW = {k - 2: Fraction(comb(4, k), 16) for k in range(5)}  # noise by coin tosses in place of normal draws
SUMS = range(-3, 4)  # of columns, the signals being 1 and -1
PAIR = {(a, b): LAW.get(a - 1, 0) * LAW.get(b + 1, 0) for a, b in product(SUMS, repeat=2)}
overlap = sum(min(PAIR[a, b], PAIR[b, a]) for a, b in PAIR)
rarest = Fraction(1)
for gates in product(range(-2, 3), repeat=EXPERTS):
    for m in [m for m in range(EXPERTS) if gates[m] > 0]:  # in the set (15) of the type with signal 1
        own = {at: share(gates, at, m) for at in SUMS}
        rarest = min(rarest, sum(PAIR[a, b] for a, b in PAIR if own[a] <= own[b]))
print(f"(27) fails for noise of coins with probability {rarest}, for any gates; half the overlap is {overlap / 2}")
is_above = 1 / (Fraction(27183, 10000) ** 4 * 2 * Fraction(22, 7)) > Fraction(1, 19) ** 2  # e < 2.7183, pi < 22/7
print(f"probability that (27) fails for normal noise, e^-2 (2 pi)^-0.5 or more, is above 1/19: {is_above}")
is_violated = rarest >= overlap / 2 > 0 and is_above
print("violated: noise exchanges the two kinds with a probability above 1/19" if is_violated else "not violated")
sys.exit(not is_violated)
