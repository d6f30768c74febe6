"""Counterexample to Appendix C, after Lemma 8, and to (29): some servers serve only a few tasks.

The text says that every expert serves sigma_0^-1 tasks, a number that grows as sigma_0 falls. Let s = 1, v_n
orthonormal, w_n = sigma_0 v_n, eta = sigma_0^.5, r uniform on (0, sigma_0^2.5), and M > 2N. A server's model changes
once for each task type. When all have changed, no model and no gate changes again. If r is below all differences of
outputs, the same idle servers win in every later round. Tasks of two rounds occupy at most two servers per type, so the
others receive no more tasks.

Outputs are of order eta sigma_0/M, so pi = 1/M up to this order. By (25) and (26) an update lowers its server's output
by beta (1 - 1/M) and raises all others by beta/M, in units of eta sigma_0. Servers without an update are above those
with one. Strengths differ, so outputs differ by far more than r.

Robust: any M > 2N, distribution of beta and order of tasks. Delays of more rounds need more servers. Any eta =
O(sigma_0^.5) works.

Objection: r should be wide. But the paper only requires r = o(1). With eta sigma_0/M = o(r) routing is even, and with s
>= 2 and noise the models keep changing. We add either condition.
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
print(f"the least explored has {least} tasks at any time. The claim is sigma_0^-1, without limit as sigma_0 falls")
print("violated: some servers are not explored" if is_violated else "not violated")
sys.exit(not is_violated)
