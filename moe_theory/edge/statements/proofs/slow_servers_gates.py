"""Counterexample to Lemmas 2, 4, 8, (33) and (17), first case: unequal delays pull gates too far apart.

Servers with three, two and one round per task have unequal loads, and a gate grows with its server's load. Gates and
gaps have order sigma_0^0.5 ln(M/delta). Lemma 8 and (33) say sigma_0 eta^-0.5 = sigma_0^0.75, Lemma 2 (as beta differs)
and (17) say sigma_0, and Lemma 4 says sigma_0^0.5. Let w = +-sigma_0 e, signals e and -e/2, s = 1, beta = 1/2 or 1 with
probability 1/2, r uniform on (0, sigma_0^0.25), eta = sigma_0^0.5, delta = sigma_0, M fixed.

1. By the proof of Lemma 4 outputs are O(sigma_0^0.5 ln(M/delta)). So pi = 1/M, and given past and type the choice among
idle servers is uniform, up to factors 1 + o(1).

2. The model of server m with load L_m rises and falls in turn, L_m/2 times, by 2 sigma_0. A rise counts v'e = 1 in its
gate, a fall counts -1/2, and mean beta is 3/4. With S_m = 3 L_m/16, theta_m is -(eta sigma_0/M)(S_m - mean S) e up to 1
+ o(1), and L_m is a fixed share of T_1.

Robust: the proof allows any unequal delays, M, unequal lengths of the signals and distribution of beta.

Objection: servers are meant to be alike. If delays are i.i.d. across servers and tasks, which is our condition, Lemmas
2 and 8, (33) and (17) hold in all runs. Lemma 2 and (17) would still need a factor ln(M/delta)^0.5, because T_1/M
unequal steps add up like (T_1/M)^0.5 steps. If speeds are drawn once, because d^ex(m) has no t, they differ with a
fixed probability. Section II gives each server its own distribution.
"""

import sys
from collections import Counter
from fractions import Fraction

EXPERTS, SLOW = 4, (3, 2)  # M; rounds a task of servers 0 and 1, all others take one
STATES = {(0, 0): 100, (0, 1): 33, (1, 0): 24, (1, 1): 12, (2, 0): 36}  # rounds that 0 and 1 stay busy: weights, of 205

after, share = Counter(), Counter()
for state, weight in STATES.items():
    idle = [m for m in range(EXPERTS) if m > 1 or state[m] == 0]
    for m in idle:  # each is chosen with the same probability
        later = tuple(SLOW[k] - 1 if k == m else max(state[k] - 1, 0) for k in (0, 1))
        after[later] += Fraction(weight, len(idle))
        share[m] += Fraction(weight, 205 * len(idle))
drift = [3 * (Fraction(1, EXPERTS) - share[m]) / 16 for m in range(EXPERTS)]  # theta / (eta sigma_0 T_1 / M)
print(f"loads of {share[0]}, {share[1]}, {share[2]} of the tasks: gates are sigma_0^0.5 ln(M/delta) times")
print(f"{drift[0]}, {drift[1]}, {drift[2]}")
is_violated, first = after == STATES and sum(share.values()) == 1 and drift[0] > drift[1] > 0 > drift[2], None
for power in (4, 8, 16):
    root, log = Fraction(1, 2**power), Fraction(8 * power, 3)  # sigma_0^0.25; below ln(M/delta), as ln 2 > 2/3
    size, apart = root**2 * log, drift[0] - drift[2]
    over = {"Lemma 2": drift[0] * size / 2 / root**4, "Lemma 4": drift[0] * log, "Lemma 8": apart * size / root**3}
    over["(33)"] = over["Lemma 8"] / EXPERTS
    over["(17)"] = (drift[0] - drift[1]) * size / EXPERTS / root**4
    first = first or over
    print(f"sigma_0 = {root**4}, over the orders stated: {', '.join(f'{name} {x}' for name, x in over.items())}")
is_violated = is_violated and all(over[name] >= 4 * first[name] for name in over)
print("violated: no constant is enough as sigma_0 tends to 0" if is_violated else "not violated")
sys.exit(not is_violated)
