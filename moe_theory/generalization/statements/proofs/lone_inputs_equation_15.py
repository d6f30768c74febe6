"""Eqs. (13) to (15) with (17) to (20): masks picked after the sample; the chance is near 1, stated below 1/25,000.

A mask that is given before the sample hardly ever fits it; among all masks one nearly always does, and (15) multiplies
the chance of the former by the masks on one sample. Inputs are uniform on N = 10,000 points, T = 2, k = 1; a mask sends
any 2 of them to expert 2, all others to expert 1. H = {+1, -1}, all labels are +1, the loss is clip((1 - y f)/2, 0, 1).
For one mask phi, the largest L_S - L_S', is |n - n'|/m, n and n' how often S and S' meet its 2 inputs: phi >= 1/2 at m
= 4 needs two hits more in one than in the other, a chance of about 12 (2/N)^2, 5e-7. But if the 8 draws differ, a mask
that picks out two of S has L_S - L_S' = 1/2. That is nearly always so. On 2m = 8 inputs there are at most 1 + 8 + 28 =
37 masks, so that (15) allows 2 * 37 times 5e-7. At eps = 1 exp(-eps^2 m/2) = e^-2 is below 1/4, as (10) asks.

Robust: as N grows the left side tends to 1 and the right one to 0, whatever the factor in front and for any m and any
number of inputs picked out.

Objection: (14) conditions on the mask, so that (15) is the law of total probability. Then it is true, but S and S'
given the mask that they have left are not i.i.d., and McDiarmid's inequality in (20), and the proof that Lemma 5 gives
of the mean, are for a mask given before. Any reading that lets (20) follow is this one.
"""

import sys
from fractions import Fraction
from math import comb, prod

INPUTS, PICKED, SAMPLES = 10_000, 2, 4  # N, inputs of expert 2, m; eps/2 = PICKED/SAMPLES
DRAWS = 2 * SAMPLES


def chance(hits: int, draws: int) -> Fraction:
    """That so many of these draws are among the picked inputs."""
    share = Fraction(PICKED, INPUTS)
    return comb(draws, hits) * share**hits * (1 - share) ** (draws - hits)


def phi(hits: int, ghost_hits: int) -> Fraction:
    """sup (L_S - L_S') over the four choices of two experts, for a mask with so many hits in S and in S'."""

    def risk(found: int, picked: int, others: int) -> Fraction:
        return Fraction(found * (1 - picked) + (SAMPLES - found) * (1 - others), 2 * SAMPLES)

    pairs = [(picked, others) for picked in (1, -1) for others in (1, -1)]
    return max(risk(hits, *pair) - risk(ghost_hits, *pair) for pair in pairs)


half_gap = Fraction(PICKED, SAMPLES)
either = range(SAMPLES + 1)
beforehand = sum(chance(n, SAMPLES) * chance(k, SAMPLES) for n in either for k in either if phi(n, k) >= half_gap)
masks = sum(comb(DRAWS, number) for number in range(PICKED + 1))  # Gamma, at most
all_differ = prod(Fraction(INPUTS - place, INPUTS) for place in range(DRAWS))
reached = phi(PICKED, 0) >= half_gap  # by a mask that picks out two of S, where all draws differ
print(f"chance of a gap of {half_gap} between S and S', at least: {all_differ}")
print(f"(15) allows {2 * masks * beforehand}")
is_violated = reached and all_differ > 2 * masks * beforehand
print("violated: it is larger" if is_violated else "not violated")
sys.exit(not is_violated)
