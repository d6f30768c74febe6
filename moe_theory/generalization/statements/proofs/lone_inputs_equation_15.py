"""Counterexample to Eqs. (13) to (15) with (17) to (20): the probability is near 1, not below 1/25,000.

A mask chosen before the sample rarely fits it, but some mask nearly always does. Equation (15) multiplies the
probability for one mask by the number of masks on one sample. Let inputs be uniform on N = 10,000 points, T = 2, k = 1.
A mask sends any 2 of them to expert 2, and all others to expert 1. H = {+1, -1}, all labels are +1, and the loss is
clip((1 - y f)/2, 0, 1).

1. For one mask, phi is the largest L_S - L_S'. It is |n - n'|/m if S and S' contain the mask's 2 inputs n and n' times.
At m = 4, phi >= 1/2 needs two inputs of the mask more in one sample than in the other. This has probability about 12
(2/N)^2, 5e-7.

2. If the 8 draws differ, as they nearly always do, a mask that picks two inputs of S has L_S - L_S' = 1/2.

3. On 2m = 8 inputs there are at most 1 + 8 + 28 = 37 masks, so (15) allows 2 * 37 times 5e-7. At eps = 1, exp(-eps^2
m/2) = e^-2 is below 1/4, as (10) requires.

Robust: as N grows the left side tends to 1 and the right side to 0. This holds for any factor in front, any m and any
number of inputs picked.

Objection: (14) conditions on the mask, so (15) follows by total probability. But given the mask that S and S'
determine, they are not i.i.d. McDiarmid's inequality in (20) and Lemma 5's proof need a mask chosen beforehand.
"""

import sys
from fractions import Fraction
from math import comb, prod

INPUTS, PICKED, SAMPLES = 10_000, 2, 4  # N, inputs of expert 2, m; eps/2 = PICKED/SAMPLES
DRAWS = 2 * SAMPLES


def chance(hits: int, draws: int) -> Fraction:
    """Return the probability that `hits` of these draws are among the picked inputs."""
    share = Fraction(PICKED, INPUTS)
    return comb(draws, hits) * share**hits * (1 - share) ** (draws - hits)


def phi(hits: int, ghost_hits: int) -> Fraction:
    """Return sup (L_S - L_S') = (hits - ghost_hits) (h_1 - h_2)/(2m) over two experts +1 or -1."""
    return Fraction(abs(hits - ghost_hits), SAMPLES)


half_gap = Fraction(PICKED, SAMPLES)
either = range(SAMPLES + 1)
beforehand = sum(chance(n, SAMPLES) * chance(k, SAMPLES) for n in either for k in either if phi(n, k) >= half_gap)
masks = sum(comb(DRAWS, number) for number in range(PICKED + 1))  # Gamma, at most
all_differ = prod(Fraction(INPUTS - place, INPUTS) for place in range(DRAWS))
reached = phi(PICKED, 0) >= half_gap  # by a mask that picks out two of S, where all draws differ
print(f"probability of a gap of {half_gap} between S and S', at least: {all_differ}")
print(f"(15) allows {2 * masks * beforehand}")
is_violated = reached and all_differ > 2 * masks * beforehand
print("violated: it is larger" if is_violated else "not violated")
sys.exit(not is_violated)
