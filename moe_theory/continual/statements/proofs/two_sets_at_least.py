"""Lemma 11, corrected: at least two sets have a specialist.

Claim. If for every task some expert distinguishes it from another task, at least two sets have a specialist, for any
signals and any sequence of tasks.

Proof. (a) All gates start at 0. A step (9) changes theta_m by -eta l pi_mt (1[m = mt] - pi_m) x_t, with l = |dw| +
alpha M f_t/t by (27) and (30). Over all experts this adds up to 0, because the pi_m add up to 1 (Lemma 4). So sum_m
theta_m = 0 at every round. (b) If all experts were in one set M_n, theta_m'(v_n - v_j) >= 0 for all m and j by (11).
These values add up to 0 over m, so all would be 0. No expert would then tell n from any j.
"""

import sys

from sympy import simplify, symbols

COUNT = 5  # M
pi = list(symbols(f"pi:{COUNT - 1}", positive=True))
pi.append(1 - sum(pi))  # they add up to 1
step = symbols("step")  # eta l x_t, an entry
moves = [[-step * pi[chosen] * (int(m == chosen) - pi[m]) for m in range(COUNT)] for chosen in range(COUNT)]
sums = [simplify(sum(each)) for each in moves]
for chosen, total in enumerate(sums):
    print(f"expert {chosen} is chosen: all steps add up to {total}")
print("proved: gates add up to 0, and cannot all prefer one task" if not any(sums) else "not proved")
sys.exit(any(sums))
