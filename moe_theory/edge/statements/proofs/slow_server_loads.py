"""Lemma 7, Eq. (29): one server takes two rounds a task; its share tends to 1/(M + 1), stated 1/M + O(eta^0.5/M).

A server that is busy for two rounds cannot be chosen in the second one, so that it gets fewer tasks than the others,
which take one: 1/(M + 1) of all, not 1/M. Let M be fixed, two opposite kinds, w = +-sigma_0 e, v = +-e, s = 1, beta =
1, r uniform on (0, sigma_0^0.25), c = eta sigma_0 / M. As shown for (17), all outputs are below 4c in size up to T_1,
and the router takes another server than the idle one with the largest r with chance 8 eta sigma_0^0.75 at most: in some
round up to T_1 with chance O(sigma_0^0.25 M ln(M/delta)), which tends to 0 for ln(1/delta) = o(sigma_0^-0.25). But for
that, server 1 is chosen with chance 1/M in a round in which it is idle: its chance to be chosen in round t is u_t = (1
- u_{t-1})/M, so that E f_{T_1} tends to 1/(M + 1), and M|E f - 1/M| to 1/(M + 1). With D rounds in place of two it is
(D - 1)/(M + D - 1). If (29) held with a chance of 1 - delta, E f would be at least (1 - delta)(1/M - O(eta^0.5/M)).

Robust: eta = O(sigma_0^0.5), the value of M and the other servers' delays do not matter as long as one server is
slower than the others. M may grow while 1/M stays above eta^0.5 and what tends to 0.

Objection: the proof has E f = 1/M by symmetry, so that servers are meant to be alike. With delays of one law, drawn
anew for each task, it holds, and this is the clause that we add; drawn once a server, as d^ex(m) without t may be read,
they leave E f at 1/M and the shares apart. Section II gives every server a law of its own, and Lemma 7 does not take
that back.
"""

import sys
from fractions import Fraction


def share(experts: int, slow: int, rounds: int) -> Fraction:
    """E f of a server that takes `slow` rounds a task, by exact recursion over rounds."""
    chosen = []
    for _ in range(rounds):
        chosen.append((1 - sum(chosen[max(0, len(chosen) - slow + 1) :])) / Fraction(experts))
    return sum(chosen) / rounds


is_violated = True
for experts, slow in ((3, 2), (3, 4), (10, 10)):
    found, limit = share(experts, slow, 150), Fraction(1, experts + slow - 1)
    gap = experts * (Fraction(1, experts) - found)
    # Up to its start the chance is in its stationary state after a few tasks.
    is_violated = is_violated and abs(found - limit) < Fraction(1, 100) and gap > Fraction(1, 10)
    print(f"M = {experts}, {slow} rounds: E f is within 1/100 of {limit}, and 1/M is {Fraction(1, experts)}")
for power in (16, 24, 32):
    root = Fraction(1, 2**power)  # sigma_0^0.25; eta = sigma_0^0.5
    experts, log = 3, 2 + 3 * power  # above ln(M/delta), delta = sigma_0 = root^4, for 4 ln 2 < 3
    explored = 3 + experts * log / root**4
    looks = explored * 8 * root**5  # chance that the router looks at the gates in some round up to T_1
    left = Fraction(1, experts) - Fraction(1, experts + 1) - looks  # 1/M - E f at least, where delta tends to 0
    is_violated = is_violated and experts * left / root > 2**power / Fraction(8)
    print(f"sigma_0^0.25 = {root}: M (1/M - E f) / eta^0.5 is above {experts * left / root // 1}")
print("violated: the share stays apart from 1/M as eta tends to 0" if is_violated else "not violated")
sys.exit(not is_violated)
