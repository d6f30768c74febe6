"""Counterexample to Appendix C, after Lemma 8, and to (29): some servers serve only a few tasks.

The text says that every expert serves sigma_0^-1 tasks, a number that grows as sigma_0 falls. Let s = 1, v_n
orthonormal, w_n = sigma_0 v_n, eta = sigma_0^.5, r uniform on (0, sigma_0^2.5), and M > 2N. A server's model changes
once for each task type. When all models have made these changes, no model and no gate changes again. If r is below all
differences of outputs, the same idle servers are chosen in every later round. Tasks of two rounds occupy at most two
servers per type, so the others receive no more tasks.

Outputs are of order eta sigma_0/M, so pi = 1/M up to this order. By (25) and (26) an update lowers its server's output
by beta (1 - 1/M) and raises all others by beta/M, in units of eta sigma_0. Servers without an update have higher
outputs than servers with one. Strengths differ, so outputs differ by far more than r.

Robust: the proof allows any M > 2N, eta = O(sigma_0^.5), distribution of beta and order of tasks. Longer delays need
more servers.

Objection: r should be wide. But the paper only requires r = o(1). With eta sigma_0/M = o(r) routing is even, and with s
>= 2 and noise the models keep changing. We require one of these conditions.
"""

import sys
from fractions import Fraction

KINDS, SERVERS, ROUNDS = 3, 10, 400
outputs = [[Fraction(0)] * KINDS for _ in range(SERVERS)]  # in units of eta sigma_0
known, served = set(), []
pending, rest = None, None
for time in range(ROUNDS):
    kind = (time * time + time // 7) % KINDS
    idle = [server for server in range(SERVERS) if not pending or server != pending[0]]
    server = max(idle, key=lambda each: outputs[each][kind])
    if pending and pending not in known:  # it ends in this round, and changes its server's model
        strength = Fraction(1, 2) + Fraction(7 * len(known) % 31, 62)  # all differ
        known.add(pending)
        ended, learned = pending
        for other in range(SERVERS):
            outputs[other][learned] += strength * (Fraction(1, SERVERS) - (other == ended))
    rest = time if len(known) == KINDS * SERVERS and rest is None else rest
    served.append(server)
    pending = server, kind
late = set(served[rest:])
least = min(range(SERVERS), key=served.count)
is_violated = rest is not None and len(late) <= 2 * KINDS and least not in late
print(f"from round {rest} on {len(late)} of {SERVERS} servers get all {ROUNDS - rest} tasks")
print(f"the least explored has {served.count(least)} tasks at any time. The claim is sigma_0^-1, without limit")
print("violated: some servers are not explored" if is_violated else "not violated")
sys.exit(not is_violated)
