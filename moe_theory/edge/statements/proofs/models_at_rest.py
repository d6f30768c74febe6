"""Appendix C, after Lemma 8, and (29): one sample, orthonormal kinds; some servers get a few tasks, stated sigma_0^-1.

A server pays for each kind once; when all have, no model and no gate moves again. If r is below what their outputs
differ by, the same idle servers win for ever: with tasks of two rounds at most two a kind. With M > 2N the others get
no more tasks. s = 1, v_n orthonormal, w_n = sigma_0 v_n, eta = sigma_0^.5, r uniform on (0, sigma_0^2.5).

Outputs are of order eta sigma_0/M, so that pi = 1/M up to that, and by (25), (26) a payment lowers the own output by
beta (1 - 1/M) and raises all others by beta/M, in units of eta sigma_0. Who has not paid is above who has. Strengths
differ: so do outputs, by far more than r.

Robust: M > 2N, the law of beta, the order of tasks, delays of more rounds with more servers; eta = O(sigma_0^.5).

Objection: r ought to be wide. The paper asks for r = o(1), no more. With eta sigma_0/M = o(r) routes are even, and with
s >= 2 and noise models never rest: either is the clause that we add.
"""

import sys
from fractions import Fraction

KINDS, SERVERS, ROUNDS = 3, 10, 400
outputs = [[Fraction(0)] * KINDS for _ in range(SERVERS)]  # in units of eta sigma_0
known, loads, late = [set() for _ in range(SERVERS)], [0] * SERVERS, [0] * SERVERS
pending, paid, rest = None, 0, None
for time in range(ROUNDS):
    kind = (time * time + time // 7) % KINDS
    busy = pending[0] if pending else None
    idle = [server for server in range(SERVERS) if server != busy]
    server = max(idle, key=lambda each: outputs[each][kind])
    if pending:  # it ends in this round
        ended, learned = pending
        if learned not in known[ended]:
            known[ended].add(learned)
            strength = Fraction(1, 2) + Fraction(7 * paid % 31, 62)  # all differ
            paid += 1
            for other in range(SERVERS):
                outputs[other][learned] += strength * (Fraction(1, SERVERS) - (other == ended))
    rest = time if paid == KINDS * SERVERS and rest is None else rest
    loads[server] += 1
    late[server] += rest is not None
    pending = server, kind
least = min(loads)
is_violated = rest is not None and sum(count > 0 for count in late) <= 2 * KINDS and late[loads.index(least)] == 0
print(f"from round {rest} on {sum(count > 0 for count in late)} of {SERVERS} servers get all {ROUNDS - rest} tasks")
print(f"the least explored has {least} tasks for ever; stated sigma_0^-1, without end as sigma_0 falls")
print("violated: some servers are not explored" if is_violated else "not violated")
sys.exit(not is_violated)
