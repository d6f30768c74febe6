"""Counterexample to Lemma 8: the first expert's share at T1 is 1/T1, not 1/M + O(eta^.5/M).

Claim. Round 1 chooses an expert A and lowers its outputs for both signals by more than the perturbation's width lambda.
So A gets no other task up to T1, and its share is 1/T1, near eta/M, on every path. Let s = 1, N = 2, v_1 = (1, 0, 0),
v_2 = (3/5, 4/5, 0), beta = 1, w_n = sigma_0 v_n, eta = alpha = sigma_0^.5, and let M be of order ln 1/sigma_0.

Proof. (a) Let c = |dw| + alpha M f/t, so c_1 > alpha M. A's outputs become -eta c_1 (1/M)(1 - 1/M) times v_1'v_1 and
v_1'v_2. (b) A later round raises A's outputs by at most eta c pi pi_A, where pi is the chosen expert's softmax. (c)
Outputs sum to 0 (Lemma 4). So the largest exceeds A's by -h_A M/(M - 1) or more, pi_A <= 1/M by Jensen, and pi <=
exp(H)/M with H = eta sum c. (d) The model w* = sigma_0 (1, 1/2, 0) solves both tasks. So sum |dw| <= sqrt(t M) |w*|,
and sum f/t <= log2 t. (e) A trails by at least eta alpha (3/5 - exp(H) (log2 t + sqrt(t M) |w*|/(alpha M))/(M - 1)),
above lambda up to T1.

Robust: The proof allows any lambda, Gamma, delta, and any N signals with a common acute angle and a common solution.

Objection: The lemma is about one expert fixed beforehand, which is A with probability 1/M only. But the lemma says any
expert, and its proof bounds the probability that all satisfy it at once. M = Omega(N ln N) sets no limit to M. If alpha
= o(sigma_0^.75), the first step eta alpha is below lambda, and A can still be chosen.

Caveat: M grows like ln 1/sigma_0 as sigma_0 falls.
"""

import sys
from fractions import Fraction
from itertools import pairwise
from math import isqrt

COSINE, LENGTH = Fraction(3, 5), Fraction(9, 8)  # |w*|/sigma_0 is below 9/8
solution, signals = (1, Fraction(1, 2)), ((1, 0), (COSINE, Fraction(4, 5)))
assert all(sum(a * b for a, b in zip(signal, solution, strict=True)) == 1 for signal in signals)
assert 1 + Fraction(1, 4) < LENGTH**2

is_violated, ratios = True, []
for power in (4, 8, 12):
    fourth = 10**power  # sigma_0^-.25
    scale, root = Fraction(1, fourth**4), Fraction(1, fourth**2)  # sigma_0; eta and alpha
    experts = 4 * (fourth**2).bit_length()
    last = experts * fourth**2  # T1 = M/eta
    moves = (isqrt(last * experts) + 1) * LENGTH * scale  # at least the sum of |dw|
    shares = last.bit_length() - 1  # at least the sum of f/t from round 2 on: below 1 from 2^k to 2^(k + 1) - 1
    height = root * (2 * scale + root * experts + moves + root * experts * shares)  # at least H
    growth = (shares + moves / (root * experts)) / (experts - 1) / (1 - height)  # exp(H) <= 1/(1 - H)
    trails, reach = root * root * (COSINE - growth), 10 * scale / fourth  # lambda = 10 sigma_0^1.25
    away, printed = Fraction(1, experts) - Fraction(1, last), Fraction(1, fourth * experts)  # eta^.5/M
    is_violated = is_violated and 0 < height < 1 and trails > reach and away > 0
    ratios.append(away / printed)
    print(f"sigma_0 = 10^-{4 * power}, M = {experts}: A trails by over {trails // reach} lambda up to T1 = {last}")
    print(f"    1/M less its share is {away}, or {ratios[-1] // 1} times the printed eta^.5/M and more")
is_violated = is_violated and all(later > 1000 * one for one, later in pairwise(ratios))
print("violated: no multiple of eta^.5/M bounds the distance" if is_violated else "not violated")
sys.exit(not is_violated)
