"""Counterexample to Proposition 4, Eq. (22): for two opposite types L tasks have error 2 L - 2, not 2 L - L r^L.

Let N = 2 with ground truths w and -w, signals along them, |w| = 1 in units of sigma_0, any s < p, beta and noise. The
data of every arrival span the line of w. So a server's model is always the ground truth of its last task. A task's
error is 0 if its ground truth equals that of the last task, and otherwise 4. If offloading ignores types, which are +
or - with probability 1/2, each of the L - 1 earlier tasks has mean error 2. The sum is 2 L - 2.

In (22) W = 1, and Delta = 2 if n = n' is counted. So (22) gives L r^L + 2 L (1 - r^L) = 2 L - L r^L. If p <= 3 s, this
is above 2 L - 2 for each server, as L r^L <= r + ... + r^L < r/(1 - r) = (p - s)/s <= 2. For one server the two values
never agree. Let r = a/b in lowest terms. Then L r^L = 2 means L a^L = 2 b^L, so b^L divides L, which is impossible for
b >= 2. Without n = n' (22) is even larger.

Robust: the proof allows any delays, beta, noise and T. If a server's last task is not done at T + d_T, L >= 2 tasks
still have the error 2 L - 2. If p <= 3 s, as in Fig. 3, the number of servers and the loads may be any. For one server
s and p may be any. For p > 3 s some loads of several servers may make the two values equal.

Objection: two opposite ground truths are special, and for them (22) is right up to 1/T. With signals along ground
truths in general position (22) is off by a fifth at Fig. 3's sizes, for all T.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = (1, -1)  # W = 1 and Delta = 2


def error(servers: tuple[int, ...]) -> Fraction:
    """Return T E[G_T] over all sequences of task types, along a route that does not depend on them."""
    total = 0
    for kinds in product(TRUTHS, repeat=len(servers)):
        models = dict(zip(servers, kinds, strict=True))  # the last type of each
        total += sum((models[m] - kind) ** 2 for m, kind in zip(servers, kinds, strict=True))
    return Fraction(total, len(TRUTHS) ** len(servers))


is_violated, ratio = True, 1 - Fraction(10, 15)  # p and s of Fig. 3
for route in ((0,), (0, 0, 0, 0, 0), (0, 1, 0, 1), (0, 1, 2, 0, 1, 1)):
    found = error(route) / len(route)
    claimed = sum(2 - ratio ** route.count(m) for m in route) / len(route)
    is_violated = is_violated and found != claimed
    print(f"servers {','.join(map(str, route))}: E[G_T] = {found}, (22) says {claimed}")
print("violated: the two differ at every T" if is_violated else "not violated")
sys.exit(not is_violated)
