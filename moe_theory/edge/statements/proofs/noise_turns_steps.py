"""Lemma 3, both cases: noise, or two tasks that end in one round, gives steps the wrong signs, stated none.

Until the first step gates are 0, pi = 1/M, and by (24) to (26) a task of signal v adds -eta |dw| (1/M)(1 - 1/M) x'u to
its server's output for u, and eta |dw| M^-2 x'u to each other's, x = beta v + xi the sum of the columns, xi normal with
deviation tau = (s - 1)^0.5 sigma_t. x'v has the sign of beta |v| + tau g, g standard normal: for tau >= beta |v| signs
are wrong with a chance of at least P(g < -1) >= e^-2 (2 pi)^-0.5 > 1/19, at every sigma_0.

No noise: let s = beta = |v| = 1, w = sigma_0 v. Own: server 1 has learned kind 1; then server 2 gets kind 1 for two
rounds, server 1 again for one, and both end together. Server 1 moves by 0, server 2 by sigma_0: server 1's output for
v_1 rises, by eta sigma_0/M^2 up to 1 + o(1). Others: servers 1 and 2 end their first tasks together, of kinds 1 and 2,
v_1'v_2 = 3/5: server 2's output for v_1 changes by (1 - 3 (M - 1)/5) eta sigma_0/M^2, a fall for M > 2.

Robust: truths, M, eta, the law of beta; smaller noise has a smaller chance. What server 1 moves by is 0 whatever the
gates are, and (11) as printed, which sums both moves, raises its output by more.

Objection: by Section III x = O(y) means x < c_1 |y|, so that -O(sigma_0), taken by that, allows a step of any sign. The
words after Lemma 8 do not: by Lemma 3 the own output is reduced and the others are increased, and who gets the next
task is concluded from that. Without noise, and with one task that ends a round, each step has these signs. Over 3/5 of
all tasks end beside another if one comes each round and delays are drawn evenly from one to ten.
"""

import sys
from fractions import Fraction
from math import factorial

FIRST, SECOND = (1, 0, 0), (Fraction(3, 5), Fraction(4, 5), 0)  # v_1, v_2


def dot(one, other):
    return sum(x * y for x, y in zip(one, other, strict=True))


def steps(experts, server, total, signal):
    """Changes of <theta, signal> by a task of this server at gates of 0, in units of eta |dw|; x is `total`."""
    pi = Fraction(1, experts)
    return [-pi * ((m == server) - pi) * dot(total, signal) for m in range(experts)]


wrong = []
for along in (Fraction(-3, 2), Fraction(-11, 10), Fraction(-2)):  # <xi, v> / |v|, below -|v|: a normal draw at tau >= 1
    own, *others = steps(4, 0, (1 + along, Fraction(1, 3), Fraction(-1, 2)), FIRST)
    wrong.append(own > 0 and all(other < 0 for other in others))
    print(f"noise {along} along the signal: own output {own}, others {others[0]}, in eta |dw|; claimed - and +")
for experts in (2, 3, 13):
    own = 0 + steps(experts, 1, FIRST, FIRST)[0]  # server 1 knows kind 1: |dw| = 0
    other = (steps(experts, 0, FIRST, FIRST)[1] + steps(experts, 1, SECOND, FIRST)[1]) if experts > 2 else -1
    wrong.append(own == Fraction(1, experts**2) and other < 0)
    print(
        f"M = {experts}, two ends: own {own}, another {other if experts > 2 else '-'}, in eta sigma_0; claimed - and +"
    )
above = sum(Fraction(2**k, factorial(k)) for k in range(11)) + Fraction(2 * 2**11, factorial(11))  # e^2
root, pi = Fraction(2507, 1000), Fraction(355, 113)  # above (2 pi)^0.5 and pi
least, shared = 1 / (above * root), 1 - Fraction(9, 10) ** 9
print(f"chance of noise below -|v|: {least} or more; of a shared end, delays of 1 to 10: {shared}")
is_violated = all(wrong) and root**2 > 2 * pi and least > Fraction(1, 19) and shared > Fraction(3, 5)
print("violated: noise, or a second task that ends, gives steps the wrong signs" if is_violated else "not violated")
sys.exit(not is_violated)
