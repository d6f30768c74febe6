"""In slot t there are more candidates than (8) says, whatever the constants: its right side falls with the horizon T.

The tree of Tanbr is played with its leaves picked in turn, for C = nu_1 = delta = 1 and rho = 0.3. A leaf of depth h is
split once it has been picked as often as (2) asks, log(t/delta) (C/(nu_1 rho^h))^2 times; both halves can be picked.
"""

import math
import sys

RATIO = 0.3


def candidates(slots: int) -> list[int]:
    """N_t, the leaves that slot t = 1, 2, ... picks from."""
    leaves, counts = [[0, 0]], []  # depth and picks of each
    for slot in range(1, slots + 1):
        counts.append(len(leaves))
        depth, picks = leaves.pop(0)
        if slot > 1 and picks + 1 >= math.log(slot) * RATIO ** (-2 * depth):
            leaves += [[depth + 1, 0], [depth + 1, 0]]
        else:
            leaves.append([depth, picks + 1])
    return counts


def right_side(slot: int, horizon: float, factor: float = 1.0) -> float:
    """(8) at a slot, its constant times a factor."""
    return factor * 2 ** (1 / (1 - RATIO)) * slot / math.log(horizon)


print("(8): in slot t there are at most 2^(1/(1-rho)) t nu_1^2 / (C^2 log(T/delta)) candidates.")
found = candidates(15)
early = [slot for slot, count in enumerate(found, start=1) if count > right_side(slot, 15)]
print(f"T = 15: in slot 1 the root is a candidate, N_1 = {found[0]}, and (8) says at most {right_side(1, 15):.3f}.")
print(f"It is exceeded in slots {early}.")
print("A larger constant only asks for a larger T; in slot 1, with")
later = []
for factor in (1, 2, 5, 10):
    exponent = math.ceil(factor * 2 ** (1 / (1 - RATIO)) / math.log(10)) + 1
    later.append(right_side(1, 10.0**exponent, factor))
    print(f"  {factor} times the right side, T = 1e{exponent}: at most {later[-1]:.3f} candidates, and there is one")
exact, said = 2 ** (math.log(100) / (1 - RATIO)), 2 ** (1 / (1 - RATIO)) * 100
print(f"Its algebra: 2^(a log X) at X = 100, a = 1/(1-rho), is {exact:.1f} = X^(a log 2), and not 2^a X = {said:.1f}.")
sys.exit(0 if early and max(later) < 1 else 1)
