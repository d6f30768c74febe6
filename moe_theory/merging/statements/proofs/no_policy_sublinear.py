"""Counterexample to the abstract: for 8 experts every policy has rewards whose regret is at least of order T^(6/7).

The weights a/m, for whole numbers a_k >= 0 of sum m, are N = C(m + K - 1, K - 1) points of the simplex. Any two of them
differ by at least 1/m in some coordinate. So in the sup norm the sets B_a of weights x with |x - a/m| < 1/(2m) are
disjoint. Let the reward be 1/2 outside B_a, and 1/2 + 1/(2m) - |x - a/m| inside. Rewards are in [0, 1]. They fall by at
most the distance from the best weights, so Assumption 1 holds if coordinates are halved in turn.

Take T = floor(N/2). Under the constant reward 1/2 a policy visits at most T of the N sets. So it visits some B_a with
probability at most 1/2. Under the reward of this a, the policy acts in the same way until it visits B_a. So with
probability at least 1/2 it loses 1/(2m) in each slot, and the mean of R_T is at least T/(4m). As N is of order m^(K-1),
this mean is of order T^(1 - 1/(K-1)).

Robust: the proof allows any policy, tree and noise, and any K >= 4. A single reward has this regret for infinitely many
T if B_a has a flat top that contains smaller such sets, and so on.

Objection: the norm S and the effective dimension in (6) grow for such rewards. But the abstract has no such factor. If
both are bounded, the condition applies.
"""

import sys
from itertools import combinations, product
from math import comb, isqrt

EXPERTS = 8  # K, as in the paper's Fig. 4
points = [a for a in product(range(4), repeat=4) if sum(a) == 3]  # K = 4, m = 3
pairs = combinations(points, 2)
apart = min(max(abs(x - y) for x, y in zip(a, b, strict=True)) for a, b in pairs)  # in units of 1/m
violated = len(points) == comb(3 + 3, 3) and apart >= 1
for constant in (1, 100, 10_000):
    for power in range(1, 40):
        m = 2**power
        slots = comb(m + EXPERTS - 1, EXPERTS - 1) // 2  # T
        most = constant * (isqrt(slots) + 1) * slots.bit_length()  # above constant sqrt(T) log T
        if slots > 4 * m * most:  # T/(4m) is above it
            break
    print(f"regret {slots}/{4 * m} is above {constant} sqrt(T) log T at T = {slots}: {slots > 4 * m * most}")
    violated = violated and slots > 4 * m * most
print("violated: no policy has this order" if violated else "not violated")
sys.exit(not violated)
