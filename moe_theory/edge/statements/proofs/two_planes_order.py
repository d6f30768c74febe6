"""Eq. (30): six kinds in two planes; a share of pairs is out of order that does not vanish, stated none.

An expert m of kind n may have a larger output for kind n' than one of kind n' has; a few last tasks make it so. Six
kinds: in each of two planes across each other three signals at 120 degrees; w_n = sigma_0 v_n, |v_n| = 1, s = 1, beta =
1, r uniform on (0, sigma_0^0.25), c = eta sigma_0/M. No two signals have an acute angle, so that v_n'w <= sigma_0 for
every model w: a task of kind k raises v_k'w to sigma_0 and no other. Hence |dw| v = dw, steps telescope, and as for
(17) theta_m is -c (w_m - mean w)/sigma_0 up to 72 c^2 T_1 = o(c), far below r: up to T_1 the largest r chooses, but for
chance o(1), and models are independent. y = v'w/sigma_0 has three entries a plane that add up to 0, all y <= 1; its
mean over m is within 1/16 of 0 but for chance O(1/M). From any model two short words of last tasks put m into M_n, m'
into M_n' and m above m' for n' too. Each server has them with a fixed chance: that of some such pair tends to 1.

Robust: delays and eta = O(sigma_0^0.5) do not matter; M grows as delta falls, as M >= N M_th ln(1/delta) has it, with
M ln(M/delta) = o(sigma_0^-0.25).

Objection: this geometry is special, and r is wider than the gates. For two orthonormal kinds, four samples, noise and
r a hundredth of a gate step (30) fails for a third of the pairs of the recorded runs.
"""

import sys
from fractions import Fraction

HALF, SIDE = Fraction(1, 2), 3


def after(word, start):
    """<v_n, w> / sigma_0 in one plane, after these kinds."""
    y = list(start)
    for kind in word:
        move = 1 - y[kind]  # |dw| / sigma_0, and dw = |dw| v
        assert move >= 0
        y = [one + move * (1 if n == kind else -HALF) for n, one in enumerate(y)]
    return y


CORNERS = [[-2 if n == corner else 1 for n in range(SIDE)] for corner in range(SIDE)]  # of y <= 1, sum 0
WORDS = {"m": ((1, 0, 1, 0), (0, 1, 0, 2, 0)), "m'": ((1, 2, 1, 2, 0), (2, 0, 1, 2, 0))}  # first plane, second plane
found = {name: [[after(word, one) for one in CORNERS] for word in words] for name, words in WORDS.items()}
own = {"m": (0, 2), "m'": (1, 1)}  # plane and kind of its set: n and n'
margin = Fraction(3)
for name, (plane, kind) in own.items():  # outputs are -c (y - mean): the largest is at the least y
    for one in found[name][plane]:
        for other in found[name][1 - plane]:
            rest = [y for n, y in enumerate(one) if n != kind] + other
            margin = min(margin, min(rest) - one[kind])
    print(f"{name}: output for its own kind above those for all others by {margin} c or more")
second, kind = own["m'"]
lead = min(y[kind] for y in found["m'"][second]) - max(y[kind] for y in found["m"][second])
print(f"output of m for the kind of m' above that of m' by {lead} c or more; (30) says below")
chance = {name: Fraction(1, 6) ** sum(map(len, words)) for name, words in WORDS.items()}
print(f"chance of such last tasks: {' and '.join(str(each) for each in chance.values())}")
is_violated = margin > 2 * Fraction(1, 16) and lead > 0 and min(chance.values()) > 0
print("violated: a share of pairs that does not vanish is out of order" if is_violated else "not violated")
sys.exit(not is_violated)
