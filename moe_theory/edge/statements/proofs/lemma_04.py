"""Lemma 4 holds up to the factor ln(M/delta), which T_1 also has.

Suppose that the changes of a server's model up to T_1 add up to at most A sigma_0 for each of its tasks, plus D.
Suppose that the sum of a task's columns has entries of at most B and absolute sum p B = K.

A gate step is eta |dw| pi_{m_t} (1[m = m_t] - pi_m) sum_i X_i. Each of its entries is at most eta |dw| B pi_{m_t}.
While |theta|_inf <= 1/(2K), outputs are at most 1/2 in size, and pi_{m_t} <= e/M < 3/M. Then |theta|_inf <= 3 B eta (A
sigma_0 t/M + D). At T_1 = d_u + ceil(M ln(M/delta)/(eta sigma_0^0.5)) this is at most 3 A B (sigma_0^0.5 ln(M/delta) +
(d_u + 1) eta sigma_0/M) + 3 B D eta. For small sigma_0 this is below 1/(2K) if ln(M/delta) = o(sigma_0^-0.5) and D eta
= O(sigma_0^0.5). So the bound 1/(2K) lasts up to T_1, and |theta|_inf = O(sigma_0^0.5 ln(M/delta)).

Caveat: model updates are O(sigma_0), eta = O(1), and ln(M/delta) = o(sigma_0^-0.5). The paper's proof has |dw| =
sigma_0, with D = 0. Ground truths may have a part of order 1, which Assumption 1 allows. Then D = O(1) is enough, with
eta = O(sigma_0^0.5). Columns are bounded. With Gaussian noise the result holds up to a further logarithm.
"""

import sys
from fractions import Fraction

MOVE, BESIDES, ENTRY, SUM, LONGEST = 4, 2, 3, 12, 10  # A, D, B, K, d_u
holds, constants = True, []
for power in (4, 5, 6):
    root = Fraction(1, 16**power)  # sigma_0^0.5, and eta
    for experts in (3, 10, 50):
        log = 4 + 6 * power  # above ln(M/delta), delta = sigma_0, for ln 50 < 4 and ln 16 < 3
        rounds = LONGEST + 1 + experts * log / root**2  # above T_1
        largest = 3 * ENTRY * root * (MOVE * root**2 * rounds / experts + BESIDES)
        holds = holds and largest * 2 * SUM < 1  # outputs are below 1/2 all along
        constants.append(largest / (root * log))
    print(f"sigma_0^0.5 = {root}: |theta| is below {max(constants[-3:]) // 1 + 1} sigma_0^0.5 ln(M/delta)")
holds = holds and max(constants) < 3 * ENTRY * (MOVE + BESIDES) + 1
print("proved: |theta| is O(sigma_0^0.5 ln(M/delta)) up to T_1" if holds else "not proved")
sys.exit(not holds)
