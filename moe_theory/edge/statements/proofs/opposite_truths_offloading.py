"""Proposition 4, Eq. (22): two opposite kinds; L tasks of a server lose 2 L - 2 in mean, it says 2 L - L r^L.

A server's model is always the truth of its last task, whatever offloading does that does not look at tasks: the last
one has error 0, and each of the L - 1 earlier ones 4 or 0, 2 in mean. N = 2 with truths w and -w, signals along them,
|w| = 1, s < p samples, any beta and noise. Every arrival's data span the line of w. A task's error is 0 if it was its
server's last, or is like the last; else it is 4. Tasks are + or - with chance 1/2 each, and servers are chosen without
looking at that: the L tasks of a server have 2 L - 2 together. (22) has W = 1 and, with n = n' counted, Delta = 2: L
r^L + 2 L (1 - r^L) = 2 L - L r^L for these tasks. It is above 2 L - 2 for each server if p <= 3 s, as L r^L <= r + ...
+ r^L < r/(1 - r) = (p - s)/s <= 2. At one server the two agree for no p: L r^L = 2, with r = a/b in lowest terms, is L
a^L = 2 b^L; then b^L divides L, which b >= 2 forbids. With n = n' left out of Delta (22) is larger still.

Robust: delays, beta, noise and T do not matter; nor do the number of servers and their loads where p <= 3 s, as in
Fig. 3, nor s and p at one server. For p > 3 s and several servers some loads may make the two equal.

Objection: two opposite truths are special, and (22) is right to 1/T there. With signals along truths in general
position it is off by a fifth at Fig. 3's sizes, for all T; and with isotropic features it still counts a task against
itself.
"""

import sys
from fractions import Fraction
from itertools import product

TRUTHS = (1, -1)
W = Fraction(sum(one**2 for one in TRUTHS), 2)
DELTA = Fraction(sum((one - other) ** 2 for one, other in product(TRUTHS, repeat=2)), 4)


def error(servers: tuple[int, ...]) -> Fraction:
    """T E[G_T] over all sequences of kinds, along a route that does not depend on them."""
    total = Fraction(0)
    for kinds in product(TRUTHS, repeat=len(servers)):
        models = dict(zip(servers, kinds, strict=True))  # the last kind of each
        total += sum((models[m] - kind) ** 2 for m, kind in zip(servers, kinds, strict=True))
    return total / len(TRUTHS) ** len(servers)


def stated(servers: tuple[int, ...], ratio: Fraction) -> Fraction:
    """T times (22)."""
    faded = [ratio ** servers.count(m) for m in servers]
    return sum(each * W + (1 - each) * DELTA for each in faded)


apart, ratio = [], 1 - Fraction(10, 15)  # p and s of Fig. 3
for route in ((0,), (0, 0), (0, 0, 0, 0, 0), (0, 1, 0, 1), (0, 1, 2, 0, 1, 1)):
    found, claimed = error(route) / len(route), stated(route, ratio) / len(route)
    apart.append(found != claimed)
    print(f"servers {','.join(map(str, route))}: E[G_T] = {found}, (22) says {claimed}")
for samples, features, load in product(range(1, 15), range(2, 16), range(1, 40)):
    if samples < features:
        left = 2 - load * (1 - Fraction(samples, features)) ** load
        apart.append(left > 0 if features <= 3 * samples else left != 0)
print("violated: the two differ at every T" if all(apart) else "not violated")
sys.exit(not all(apart))
