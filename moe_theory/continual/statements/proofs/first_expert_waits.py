"""Proposition 3, first sentence: two signals at an acute angle, and the first chosen expert is not chosen again.

s = 1, N = 2, v_1 = (1, 0, 0), v_2 = (3/5, 4/5, 0), beta = 1, w_n = sigma_0 v_n, eta = alpha = sigma_0^.5, M of order ln
1/sigma_0. Let A be chosen in round 1, at cost c_1 > alpha M: its outputs become -eta c_1 (1/M)(1 - 1/M) times v_1'v_1
or v_1'v_2 >= 3/5. Until A is chosen again a round raises them by eta c pi pi_A at most. Outputs add up to 0 (Lemma 4),
so the largest is at least -h_A M/(M - 1) above A's, and pi_A <= 1/M (Jensen), pi <= exp(H)/M, H = eta sum c.

w* = sigma_0 (1, 1/2, 0) solves both tasks: a move lowers |w - w*|^2 by its square, so sum |dw| <= sqrt(t M) |w*| up to
t. And sum f/t <= sum 1/t < log2 t. So A trails for both signals by eta alpha (3/5 - exp(H) (log2 t + sqrt(t M)
|w*|/(alpha M))/(M - 1)). Up to C sigma_0^-.25 M/eta that is above lambda + Gamma: A is neither chosen nor flagged, and
gates do not end, on every path.

Robust: C, lambda, Gamma, any N signals with a common angle below 90 degrees and a common solution; the truths' lengths.

Objection: for a fixed M the wait, of order exp(M), is over in the limit. T2 has M in its order, and M = Omega(N ln N)
sets no limit to it: no constant serves all M. What fails is alpha = Theta(sigma_0^.5): with alpha = o(sigma_0^.75) the
first kick eta alpha is below lambda, and A stays in reach.
"""

import sys
from fractions import Fraction
from math import isqrt

COSINE, LENGTH = Fraction(3, 5), Fraction(9, 8)  # |w*|/sigma_0 is below 9/8
solution, signals = (1, Fraction(1, 2)), ((1, 0), (COSINE, Fraction(4, 5)))
assert all(sum(a * b for a, b in zip(signal, solution, strict=True)) == 1 for signal in signals)
assert 1 + Fraction(1, 4) < LENGTH**2
CONSTANT = 10**6  # C, and the constant of lambda and of Gamma is 10


def lead(fourth: int) -> tuple[int, int, Fraction, Fraction]:
    """M, the last round, how far A trails at least, and lambda + Gamma; sigma_0^-.25 is `fourth`."""
    scale, root = Fraction(1, fourth**4), Fraction(1, fourth**2)  # sigma_0; eta and alpha
    bits = (CONSTANT * fourth**3).bit_length()
    experts = 4 * bits
    last = CONSTANT * fourth**3 * experts  # C sigma_0^-.25 M / eta
    moves = (isqrt(last * experts) + 1) * LENGTH * scale  # at least the sum of |dw|
    shares = last.bit_length() - 1  # at least the sum of f/t from round 2 on: below 1 from 2^k to 2^(k + 1) - 1
    height = root * (2 * scale + root * experts + moves + root * experts * shares)  # at least H
    growth = (shares + moves / (root * experts)) / (experts - 1) / (1 - height)  # exp(H) <= 1/(1 - H)
    assert 0 < height < 1
    return experts, last, root * root * (COSINE - growth), 20 * scale / fourth


is_violated = True
for power in (4, 8, 16):
    experts, last, trails, reach = lead(10**power)
    is_violated = is_violated and trails > reach
    print(f"sigma_0 = 10^-{4 * power}, M = {experts}: up to round {last}")
    print(f"    the first expert trails by over {trails // reach} times lambda + Gamma")
print(f"printed: gates are fixed by round C sigma_0^-.25 M/eta; here C = {CONSTANT}")
print("violated: the first expert is not flagged by then" if is_violated else "not violated")
sys.exit(not is_violated)
