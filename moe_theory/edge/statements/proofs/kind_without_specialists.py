"""Proposition 1, sets and availability: two opposite kinds and a third one across them.

Let N = 3, truths +-sigma_0 e and sigma_0 f, orthonormal e and f, signals w/sigma_0, s = 1, beta = 1, r uniform on (0,
sigma_0^0.25), c = eta sigma_0 / M. A model is sigma_0 (a e + b f): a is the sign of its last task of the first two
kinds, b = 1 from its first of the third on. As for (17), |dw| v = dw and gate steps telescope: up to 32 c^2 T_1 =
o(c/M) theta_m is -c ((a_m - mean a) e + (b_m - mean b) f), far below r, so that servers are chosen as by r alone but
for a chance of o(1). By T_1 all have met all kinds, but for o(1), so that b_m - mean b = 0; and not all a are alike,
but for a chance of 2^(1 - M), so that |a_m - mean a| >= 2/M for every m. Then the output for f, o(c/M), is nobody's
largest: its set (15) is empty. A task of the third kind, which one of three is, finds no idle member, for any M >= N
M_th ln(1/delta).

Robust: M, delays, eta = O(sigma_0^0.5) and delta with ln(1/delta) = o(sigma_0^-0.5) do not matter; nor does d_u, and
so M_th.

Objection: Appendix B takes it that kinds are alike, so that a set has M/N members in the mean. Then both sentences
hold in the recorded runs, and this is the clause that we add; Proposition 1 does not say it. Convergence is read as t
> T_1.
"""

import sys
from fractions import Fraction
from itertools import product

EXPERTS, LOG = 4, 60  # M; above ln(M/delta)


def outputs(states: tuple[int, ...], off: Fraction) -> list[list[Fraction]]:
    """For the kinds e, -e at the least, for f at the most, in units of c, up to `off`."""
    mean = Fraction(sum(states), len(states))
    return [[-(a - mean) - off, (a - mean) - off, off] for a in states]


empty, total = 0, 0
root = Fraction(1, 2**40)  # sigma_0^0.5, and eta
explored = 3 + EXPERTS * LOG / root**2  # above T_1, d_u = 2
off = 32 * root**3 / EXPERTS * explored  # in units of c
for states in product((-1, 1), repeat=EXPERTS):  # last tasks along e, independent with chance 1/2 each
    members = [max(own[:2]) <= own[2] for own in outputs(states, off)]
    total += 1
    empty += not any(members)
missing = EXPERTS * 3 * (1 - Fraction(1, 3 * EXPERTS)) ** 400  # some server without some kind after 400 rounds of T_1
looks = explored * 8 * root**3 / Fraction(1, 2**20)  # chance that r does not decide in some round up to T_1
chance = Fraction(empty, total) - missing - looks
print(f"chance that nobody specialises in the third kind: {Fraction(empty, total)} less what tends to 0")
print(f"at sigma_0 = {root**2} above {chance * 10 // 1}/10; that a task finds none idle: a third of it; stated is o(1)")
is_violated = Fraction(empty, total) == 1 - Fraction(2, 2**EXPERTS) and chance > Fraction(1, 2) and explored > 400
print("violated: a kind has no specialist at all" if is_violated else "not violated")
sys.exit(not is_violated)
