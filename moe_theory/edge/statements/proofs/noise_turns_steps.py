"""Counterexample to Lemma 3, both cases: noise, or two tasks that end in one round, reverse the signs of steps.

Until the first step, gates are 0 and pi = 1/M. By (24) to (26) a task of signal v adds -eta |dw| (1/M)(1 - 1/M) x'u to
its server's output for u, and eta |dw| M^-2 x'u to every other output. Here x = beta v + xi is the sum of the columns,
and xi is normal with deviation tau = (s - 1)^0.5 sigma_t. So x'v has the sign of beta |v| + tau g, where g is standard
normal. If tau >= beta |v|, signs are wrong with probability at least P(g < -1) >= e^-2 (2 pi)^-0.5 > 1/19, at every
sigma_0.

Without noise let s = beta = |v| = 1 and w = sigma_0 v. First case: server 1 has learned type 1, and servers 1 and 2 end
tasks of type 1 together. Their models change by 0 and sigma_0, so server 1's output for v_1 rises by eta sigma_0/M^2 up
to 1 + o(1). Second case: servers 1 and 2 end first tasks of types 1 and 2, and v_1'v_2 = 3/5. Server 2's output for v_1
changes by (1 - 3 (M - 1)/5) eta sigma_0/M^2, so it falls for M > 2.

Robust: the proof allows any ground truths, M, eta and distribution of beta. With less noise the probability is smaller.
Server 1's model changes by 0 for any gates. The printed (11), which sums both updates, raises its output by more.

Objection: by Section III x = O(y) means x < c_1 |y|, so -O(sigma_0) would allow any sign. But the text after Lemma 8
says that Lemma 3 reduces one output and raises the others, and infers who gets the next task. If one task arrives per
round and delays are uniform on one to ten, over 3/5 of all tasks end together with another task.
"""

import sys
from fractions import Fraction

FIRST, SECOND = (1, 0, 0), (Fraction(3, 5), Fraction(4, 5), 0)  # v_1, v_2


def steps(experts, server, total, signal):
    """Return the changes of <theta, signal> by a task at gates 0, over eta |dw|, with `total` for x."""
    pi = Fraction(1, experts)
    along = sum(x * y for x, y in zip(total, signal, strict=True))
    return [-pi * ((m == server) - pi) * along for m in range(experts)]


wrong = []
for along in (Fraction(-11, 10), Fraction(-2)):  # <xi, v> / |v|, below -|v|: a normal draw at tau >= 1
    own, *others = steps(4, 0, (1 + along, Fraction(1, 3), Fraction(-1, 2)), FIRST)
    wrong.append(own > 0 and all(other < 0 for other in others))
    print(f"noise {along} along the signal: own output {own}, others {others[0]}, in eta |dw|; claimed - and +")
for experts in (3, 4, 13):
    own = steps(experts, 1, FIRST, FIRST)[0]  # server 1 knows type 1: |dw| = 0
    other = steps(experts, 0, FIRST, FIRST)[1] + steps(experts, 1, SECOND, FIRST)[1]
    wrong.append(own == Fraction(1, experts**2) and other < 0)
    print(f"M = {experts}, two ends: own {own}, another {other}, in eta sigma_0; claimed - and +")
is_above = 1 / (Fraction(27183, 10000) ** 4 * 2 * Fraction(22, 7)) > Fraction(1, 19) ** 2  # e < 2.7183, pi < 22/7
shared = 1 - Fraction(9, 10) ** 9
print(f"probability of noise below -|v| above 1/19: {is_above}; of a shared end, delays of 1 to 10: {shared}")
is_violated = all(wrong) and is_above and shared > Fraction(3, 5)
print("violated: noise, or a second task that ends, gives steps the wrong signs" if is_violated else "not violated")
sys.exit(not is_violated)
