"""Counterexample to the remark on sparsity awareness: the bound (23) is smallest at k = T, for all T, m and delta.

At k = T every router has the same mask, so its masks shatter nothing: d_N = 0. Only log(4/delta) is left under the root
of (23). If for some k < T two routers have different masks at one input, then this input is shattered and d_N >= 1. The
root then also has 2 k d_N (1 + log(T/k)) + d_N log(2m), which is above 0. The other term 4 C R_m(H) does not depend on
k. So fewer active experts than T raise the bound.

Robust: the proof allows any routers with two masks at some input, such as linear ones, and any T >= 2, k < T, m, delta.

Objection: Definition 4 calls d_N a constant. With the same d_N for all k the bound grows with k, and this is proved.
"""

import sys
from fractions import Fraction

logit_rows = [(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))]  # two routers of T = 2 experts at one input


def mask(logits: tuple[Fraction, ...], num_active: int) -> tuple[int, ...]:
    return tuple(sorted(sorted(range(len(logits)), key=lambda expert: -logits[expert])[:num_active]))


num_masks = {active: len({mask(logits, active) for logits in logit_rows}) for active in (1, 2)}
dimension = {active: min(number - 1, 1) for active, number in num_masks.items()}  # of this one input
LOG_BELOW = Fraction(0)  # log(T/k) and log(2m) are at least 0
excess = 2 * 1 * dimension[1] * (1 + LOG_BELOW) + dimension[1] * LOG_BELOW
print(f"d_N at k = 1: {dimension[1]}, at k = T = 2: {dimension[2]}")
print(f"at k = 1 the root of (23) has more than at k = T by at least {excess}")
is_violated = dimension == {1: 1, 2: 0} and excess > 0
print("violated: the bound is smaller at k = T" if is_violated else "not violated")
sys.exit(not is_violated)
