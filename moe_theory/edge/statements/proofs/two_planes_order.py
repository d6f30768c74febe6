"""Counterexample to Eq. (30): with six types in two planes a non-vanishing share of pairs is out of order.

An expert m of type n can have a larger output for type n' than an expert of n' has. In each of two orthogonal planes
take three signals at 120 degrees, and let w_n = sigma_0 v_n, |v_n| = s = beta = 1, r uniform on (0, sigma_0^0.25), c =
eta sigma_0/M.

1. No two signals have an acute angle, so v_n'w <= sigma_0 for every model w. A task of type k raises v_k'w to sigma_0,
but no other product. So |dw| v = dw and steps telescope. As for (17), theta_m is -c (w_m - mean w)/sigma_0 up to 72 c^2
T_1 = o(c), far below r.

2. So up to T_1 the largest r decides, except with probability o(1), and models are independent. In each plane the
entries y = v'w/sigma_0 <= 1 add up to 0. Their mean over m is within 1/16 of 0 except with probability O(1/M).

3. From any model two short sequences of last tasks put m into M_n, m' into M_n', and m above m' for n'. Servers have
them with a fixed probability, so such a pair exists with a probability that tends to 1.

Robust: the proof allows any delays and eta = O(sigma_0^0.5). The number M of servers grows as delta falls, as M >= N
M_th ln(1/delta) requires, with M ln(M/delta) = o(sigma_0^-0.25).

Objection: this geometry is special, and r is wider than the gates. But with two orthonormal types, four samples, noise
and r at a hundredth of a gate step, (30) fails for a third of the pairs in our runs.
"""

import sys
from fractions import Fraction
from itertools import product

HALF, SIDE = Fraction(1, 2), 3


def after(word, y):
    """Return <v_n, w> / sigma_0 in one plane, after tasks of these types."""
    for kind in word:
        move = 1 - y[kind]  # |dw| / sigma_0, and dw = |dw| v
        assert move >= 0
        y = [one + move * (1 if n == kind else -HALF) for n, one in enumerate(y)]
    return y


CORNERS = [[-2 if n == corner else 1 for n in range(SIDE)] for corner in range(SIDE)]  # of y <= 1, sum 0
WORDS = {"m": ((1, 0, 1, 0), (0, 1, 0, 2, 0)), "m'": ((1, 2, 1, 2, 0), (2, 0, 1, 2, 0))}  # first plane, second plane
found = {name: [[after(word, one) for one in CORNERS] for word in words] for name, words in WORDS.items()}
own = {"m": (0, 2), "m'": (1, 1)}  # plane and type of its set: n and n'
margin = Fraction(3)
for name, (plane, kind) in own.items():  # outputs are -c (y - mean), so the largest is at the least y
    for one, other in product(found[name][plane], found[name][1 - plane]):
        rest = [y for n, y in enumerate(one) if n != kind] + other
        margin = min(margin, min(rest) - one[kind])
    print(f"{name}: output for its own kind above those for all others by {margin} c or more")
second, kind = own["m'"]
lead = min(y[kind] for y in found["m'"][second]) - max(y[kind] for y in found["m"][second])
print(f"outputs for the kind of m': m's is above the output of m' by {lead} c or more; (30) says below")
is_violated = margin > 2 * Fraction(1, 16) and lead > 0
print("violated: a share of pairs that does not vanish is out of order" if is_violated else "not violated")
sys.exit(not is_violated)
