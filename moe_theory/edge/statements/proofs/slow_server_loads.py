"""Counterexample to Lemma 7, Eq. (29): a server of two rounds per task has a share of 1/(M + 1), not 1/M.

The lemma says 1/M + O(eta^0.5/M). A server that is busy for two rounds cannot be chosen in the second. Let M be fixed,
w = +-sigma_0 e, v = +-e, s = beta = 1, r uniform on (0, sigma_0^0.25) and c = eta sigma_0 / M.

1. By the proof for (17), all outputs are below 4c up to T_1. The router passes over the idle server with the largest r
with probability at most 8 eta sigma_0^0.75. Up to T_1 this adds up to O(sigma_0^0.25 M ln(M/delta)), which tends to 0
for ln(1/delta) = o(sigma_0^-0.25).

2. Otherwise server 1 is chosen with probability 1/M if it is idle. So its probability in round t is u_t = (1 -
u_{t-1})/M. E f_{T_1} and M|E f - 1/M| both tend to 1/(M + 1). With D rounds in place of two, M|E f - 1/M| tends to (D -
1)/(M + D - 1).

3. If (29) held with probability 1 - delta, E f would be at least (1 - delta)(1/M - O(eta^0.5/M)).

Robust: the proof allows any eta = O(sigma_0^0.5), M and delays of the other servers, if one server is slower than the
others. The number M may grow while 1/M stays above eta^0.5 and above the terms that tend to 0.

Objection: the proof has E f = 1/M by symmetry, so servers are meant to be alike. If delays are i.i.d. across servers
and tasks, which is our condition, the lemma holds. If delays are drawn once per server, as d^ex(m) without t may mean,
E f is 1/M, but the shares differ. Section II gives every server its own distribution, and Lemma 7 does not change this.
"""

import sys
from fractions import Fraction


def share(experts: int, slow: int, rounds: int) -> Fraction:
    """Return E f of a server that takes `slow` rounds per task, by exact recursion over rounds."""
    chosen = []
    for _ in range(rounds):
        chosen.append((1 - sum(chosen[max(0, len(chosen) - slow + 1) :])) / Fraction(experts))
    return sum(chosen) / rounds


is_violated = True
for experts, slow in ((3, 2), (3, 4), (10, 10)):
    found, limit = share(experts, slow, 150), Fraction(1, experts + slow - 1)
    gap = experts * (Fraction(1, experts) - found)
    # After a few tasks the probability is stationary up to its start.
    is_violated = is_violated and abs(found - limit) < Fraction(1, 100) and gap > Fraction(1, 10)
    print(f"M = {experts}, {slow} rounds: E f is within 1/100 of {limit}, and 1/M is {Fraction(1, experts)}")
for power in (16, 24, 32):
    root = Fraction(1, 2**power)  # sigma_0^0.25; eta = sigma_0^0.5
    experts, log = 3, 2 + 3 * power  # above ln(M/delta), delta = sigma_0 = root^4, for 4 ln 2 < 3
    explored = 3 + experts * log / root**4
    looks = explored * 8 * root**5  # probability that the gates decide in some round up to T_1
    left = Fraction(1, experts) - Fraction(1, experts + 1) - looks  # 1/M - E f at least, where delta tends to 0
    is_violated = is_violated and experts * left / root > 2**power / Fraction(8)
    print(f"sigma_0^0.25 = {root}: M (1/M - E f) / eta^0.5 is above {experts * left / root // 1}")
print("violated: the share stays apart from 1/M as eta tends to 0" if is_violated else "not violated")
sys.exit(not is_violated)
