"""Counterexample to Lemma 3: with phi(z) = 10 z and one input the complexity is 10, not at most 2 sqrt(2).

The lemma assumes nothing about phi, and its right side does not depend on phi. Let r = 2, all matrices be 1 x 1, K_1 =
K_2 = b_1 = b_2 = 1, c = 1, m = 1 and x = 1. Then h(x) = W_2 phi(W_1 x) = 10 W_1 W_2 can be any number in [-10, 10], so
R_1(H) = E sup s h(x) is 10. The right side is (1 + 1)^(3/2) = 2 sqrt(2). With phi(z) = z + 10 the complexity is 11,
although the slope is 1.

Robust: the proof allows any c, m and r. The complexity grows without bound with the slope of phi or with |phi(0)|.

Objection: the cited theorem assumes that phi is 1-Lipschitz and 0 at 0. But the lemma omits this condition.
"""

import sys
from fractions import Fraction

GRID = [Fraction(n, 4) for n in range(-4, 5)]  # values of a weight, with both ends


def complexity(phi) -> Fraction:
    """Return E sup s W_2 phi(W_1) over weights of size at most 1, for the input 1 and an affine phi."""
    outputs = [last * phi(first) for first in GRID for last in GRID]
    return sum(max(sign * output for output in outputs) for sign in (1, -1)) / Fraction(2)


stated_squared = (1 + 1) ** 3
found = {"10 z": complexity(lambda z: 10 * z), "z + 10": complexity(lambda z: z + 10), "z": complexity(lambda z: z)}
for name, value in found.items():
    print(f"phi(z) = {name}: the complexity is {value}, its square {value**2}. The bound's is {stated_squared}")
violated = found["10 z"] ** 2 > stated_squared and found["z + 10"] ** 2 > stated_squared >= found["z"] ** 2
print("violated: the complexity is above Lemma 3" if violated else "not violated")
sys.exit(not violated)
