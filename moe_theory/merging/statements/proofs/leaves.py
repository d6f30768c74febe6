"""Lemma 1 and Eq. (8), corrected: N_t <= 1 + sum_h min(2^h, t_h/m_h), where t_h counts pulls at depth h.

Let t_h be the number of pulls at depth h up to slot t. Each split adds one leaf, so at slot t there is one leaf more
than there were splits before. Candidates are leaves. There are at most 2^h nodes at depth h. Let e_h be the first slot
in which a node at depth h can be split. A leaf at depth h appears after its parent's split and receives at most one
pull per slot. So e_h is the least s > e_{h-1} with s - e_{h-1} >= tau_h(s), where e_{-1} = 0.

A split at depth h in a slot s >= e_h comes after tau_h(s) >= tau_h(e_h) pulls of its leaf, and after at least one. So
it uses m_h = max(1, ceil tau_h(e_h)) whole pulls, which no other split uses. So there are at most t_h/m_h splits at
depth h. As sum_h t_h <= t and m_h grows like rho^(-2h), the number of leaves grows like T^(log 2/log(2/rho^2)) up to
logarithms. This is slower than T, so (5) holds from some T on.
"""

import sys
from collections import Counter
from fractions import Fraction

MOST, SCALE = 300, 10**12
log = [0, 0]  # floors of SCALE log t, as 2 atanh(1/(2k + 1)) is log(1 + 1/k). Thresholds use them, so they grow with t
for k in range(1, MOST):
    log.append(log[-1] + sum(2 * SCALE // ((2 * j + 1) * (2 * k + 1) ** (2 * j + 1)) for j in range(15)))


def threshold(slot: int, depth: int, ratio: Fraction) -> Fraction:
    """Return the threshold (2) at C = nu_1 = delta = 1, times SCALE."""
    return log[slot] / ratio ** (2 * depth)


holds = True
for ratio in (Fraction(3, 10), Fraction(1, 2), Fraction(7, 10), Fraction(9, 10)):
    times = []  # e_h
    while True:
        last, depth = times[-1] if times else 0, len(times)
        due = [s for s in range(last + 1, MOST + 1) if (s - last) * SCALE >= threshold(s, depth, ratio)]
        if not due:
            break
        times.append(due[0])
    costs = [max(1, -int(-threshold(s, h, ratio) // SCALE)) for h, s in enumerate(times)]  # m_h
    for picks_last in (False, True):  # picks the deepest leaf, or all in turn
        leaves, pulls = [(0, 0)], Counter()
        for slot in range(1, MOST + 1):
            allowed = 1 + sum(min(Fraction(2**h), Fraction(pulls[h], cost)) for h, cost in enumerate(costs))
            holds = holds and len(leaves) <= allowed
            depth, own = leaves.pop() if picks_last else leaves.pop(0)
            pulls[depth] += 1
            is_split = (own + 1) * SCALE >= threshold(slot, depth, ratio)
            leaves += [(depth + 1, 0)] * 2 if is_split else [(depth, own + 1)]
    print(f"rho = {ratio}: {len(leaves)} leaves after {MOST} slots of the deepest, depths 0 to {len(costs)}: {holds}")
print("proved: splits are paid for" if holds else "not proved")
sys.exit(not holds)
