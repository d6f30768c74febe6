"""(28) and (17), second case: with the servers that Proposition 1 requires, all gaps are o(sigma_0^0.5).

By the proof of Lemma 4 no output exceeds H = A sigma_0^0.5 ln(M/delta) in size up to T_1, if ln(M/delta) =
o(sigma_0^-0.5). So all probabilities are between e^(-2H)/M and e^(2H)/M. For H <= 1/2 two of them differ by at most
(e^(2H) - e^(-2H))/M <= 5H/M. All gaps are O(sigma_0^0.5 ln(M/delta)/M).

Let M >= c N M_th ln(1/delta) and N >= 2. Then ln(M/delta)/M <= ln(M)/M + 1/(c N M_th). Both terms tend to 0 with delta,
because M_th is at least (d_u (1 - 1/N)/N)^0.5 Phi^-1(1 - delta), which is unbounded. If delta = e^-k and k >= 4, this
quantile is above k^0.5, because P(g > x) >= e^(-x^2/2) (2 pi)^-0.5 x/(1 + x^2). So all gaps divided by sigma_0^0.5 tend
to 0, up to T_1 and one round later.

Robust: the proof allows any delays, chosen servers, r, signals, ground truths, N, d_u and c. It uses no sets (15).

Objection: M may stay fixed while sigma_0 falls. But Proposition 1, which gives convergence, has delta = o(1), and M
grows as delta falls. At a fixed M the gaps are O(sigma_0^0.5 ln(M/delta)). They attain this order if servers differ in
speed and r is wide, as for Lemma 8.

Caveat: as for Lemma 4, updates are of the size for |w_n| = O(sigma_0), and columns are bounded.
"""

import sys
from fractions import Fraction
from itertools import pairwise, product
from math import factorial, isqrt

KINDS, LONGEST, LARGEST = 2, 2, 1  # N, d_u, A; c = 1
holds = True
for base in (Fraction(5, 4), Fraction(3, 2), Fraction(2)):  # e^H; outputs of -H, 0 and H, of three experts
    shares = [x / sum(row) for row in product((1 / base, Fraction(1), base), repeat=3) for x in row]
    widest, bound = max(shares) - min(shares), (base**2 - base**-2) / 3
    holds = holds and widest <= bound
    print(f"e^H = {base}, M = 3: probabilities are within {widest} of each other, at most {bound}")
sinh = sum(Fraction(1, factorial(2 * k + 1)) for k in range(6)) + Fraction(2, factorial(13))  # above sinh(1)
holds = holds and 4 * sinh < 5  # e^(2H) - e^(-2H) = 2 sinh(2H) <= 2 (2H) sinh(1), by convexity
ratios = []
for power in (4, 6, 8, 10, 12):
    k = 2**power  # ln(1/delta)
    holds = holds and 2 ** (k // 2) * isqrt(k) >= 3 * (1 + k)  # e^(k/2) >= (2 pi)^0.5 (1 + k)/k^0.5
    threshold = Fraction(LONGEST, KINDS) + isqrt(k) * Fraction(1, 2)  # below M_th, as (d_u (1 - 1/N)/N)^0.5 > 1/2
    experts = KINDS * threshold * k
    log = k + int(experts).bit_length()  # above ln(M/delta), as ln 2 < 1
    ratios.append(5 * LARGEST * log / experts)
    print(f"delta = e^-{k}, M = {experts}: gaps over sigma_0^0.5 are at most {ratios[-1]}")
holds = holds and all(4 * late < 3 * early for early, late in pairwise(ratios))
print("proved: all gaps are o(sigma_0^0.5)" if holds else "not proved")
sys.exit(not holds)
