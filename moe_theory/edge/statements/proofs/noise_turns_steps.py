"""Lemma 3, both cases: features with noise; the first step has the wrong signs with a chance above 1/19, stated none.

Noise can outweigh the signal in the sum of the columns, and then the first completed task raises its own server's
output and lowers all others'. Gates are 0 until that task is done, pi = 1/M, and (24) to (26) give a step of -eta |dw|
(1/M)(1 - 1/M) x'v to the output of its own server for its signal v, and of eta |dw| M^-2 x'v to each other's, x the sum
of the columns. x is beta v + xi, xi normal with deviation tau = (s - 1)^0.5 sigma_t in each entry, so that x'v has the
sign of beta |v| + tau g with a standard normal g: signs are wrong where g < -beta |v| / tau. For tau >= beta |v| that
has a chance of at least P(g < -1) >= e^-2 (2 pi)^-0.5 > 1/19, at every sigma_0. The move |dw| is positive but on a null
set. The signs of later steps are those of x'v too, whatever the gates, as pi > 0. Without noise beta v'v > 0, and the
signs are as stated, at every step.

Robust: truths, signals, M, eta, delays and the law of beta do not matter; smaller noise has a smaller chance, and over
the T_1 rounds any noise that does not vanish has wrong signs.

Objection: by Section III x = O(y) means x < c_1 |y|, so that -O(sigma_0), taken by that, allows a step of any sign.
The words after Lemma 8 do not: by Lemma 3 the own output is reduced and the others are increased, and who gets the
next task is concluded from that. The first step has these signs in expectation; without noise each has them.
"""

import sys
from fractions import Fraction
from math import factorial

EXPERTS, SIGNAL = 4, (1, 0, 0)  # M, beta v


def dot(one, other):
    return sum(x * y for x, y in zip(one, other, strict=True))


def steps(noise, truth=(1, 2, 3)):
    """Changes of <theta, v> by a first task with s = 2, in units of eta |dw|; and |dw|^2, the model being 0."""
    total = [x + y for x, y in zip(SIGNAL, noise, strict=True)]
    across = [0, *noise[1:]]  # of the second column, across the signal
    moved = Fraction(truth[0] ** 2) + Fraction(dot(truth, across) ** 2, dot(across, across))  # |P w|^2
    pi = [Fraction(1, EXPERTS)] * EXPERTS
    return [-pi[0] * ((m == 0) - pi[m]) * dot(total, SIGNAL) for m in range(EXPERTS)], moved


wrong = []
for first in (Fraction(-3, 2), Fraction(-11, 10), Fraction(-2)):  # <xi, v> / |v|, below -|v|: a normal draw at tau >= 1
    changes, moved = steps((first, Fraction(1, 3), Fraction(-1, 2)))
    wrong.append(moved > 0 and changes[0] > 0 and all(other < 0 for other in changes[1:]))
    print(f"noise {first} along the signal: own output {changes[0]}, others {changes[1]}, in eta |dw|; claimed - and +")
above = sum(Fraction(2**k, factorial(k)) for k in range(11)) + Fraction(2 * 2**11, factorial(11))  # e^2
root, pi = Fraction(2507, 1000), Fraction(355, 113)  # above (2 pi)^0.5 and pi
least = 1 / (above * root)
print(f"chance of noise below -|v|: {least} or more")
is_violated = all(wrong) and root**2 > 2 * pi and least > Fraction(1, 19)
print("violated: one first step in 19 or more has the wrong signs" if is_violated else "not violated")
sys.exit(not is_violated)
