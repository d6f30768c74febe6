"""Lemma 5, Eq. (24): two cells, an expert +1 or -1 in each, two samples; E phi is 35/64, and it says at most 1/2.

Two experts can each fit the labels of their own cell, and (24) has the complexity of one expert on all inputs. Each
input is in one of two cells with probability 1/2, and the mask, which is given, sends a cell to an expert of its own: T
= 2, k = 1. H = {+1, -1}, labels are fair coins, the loss is clip((1 - y f)/2, 0, 1), so C = 1/2. For one expert R_2(H)
is 1 if the two signs agree and 0 if not, 1/2 in the mean, and (24) allows 2 C R_2(H) = 1/2. phi = sup (L_S - L_S') is
the sum over the cells of |S_j - S'_j|/4, with S_j, S'_j the sums of the labels in cell j of the two samples. If all
four inputs are in one cell, its mean is (3/2)/4; if three are, (3/2 + 1)/4; if two are, (1 + 1)/4. With chances 1/8,
1/2 and 3/8 that is 35/64.

Robust: no constant helps. With T equally likely cells and m >= T samples, E|sum of n signs| >= sqrt(n/2) makes the mean
of phi at least 3/8 sqrt(T/m), where (24) allows 1/sqrt(m) at most: a factor of 3/8 sqrt(T). How inputs lie within the
cells does not enter; the cells' chances do.

Objection: two experts in two cells are a toy. What fails is the step from (30) to (31), which takes gates that depend
on the input for one point of the simplex; it fails wherever the sample is divided among several experts.
"""

import sys
from fractions import Fraction
from itertools import product

SAMPLES, CELLS, LIPSCHITZ = 2, 2, Fraction(1, 2)
EXPERTS = list(product((-1, 1), repeat=CELLS))  # h_1, h_2, each of H
OUTCOMES = list(product(range(CELLS), (-1, 1)))  # of a sample: its cell and its label


def risk(experts: tuple[int, ...], drawn: tuple[tuple[int, int], ...]) -> Fraction:
    return sum((Fraction(1 - label * experts[cell], 2) for cell, label in drawn), Fraction(0)) / SAMPLES


def phi(drawn: tuple[tuple[int, int], ...]) -> Fraction:
    return max(risk(experts, drawn[:SAMPLES]) - risk(experts, drawn[SAMPLES:]) for experts in EXPERTS)


draws = list(product(OUTCOMES, repeat=2 * SAMPLES))
signs = list(product((-1, 1), repeat=SAMPLES))
found = sum(map(phi, draws)) / len(draws)
lone = sum(Fraction(max(sum(sign), -sum(sign)), SAMPLES) for sign in signs) / len(signs)  # R_2(H)
allowed = 2 * LIPSCHITZ * lone
print(f"mean of phi over all {len(draws)} draws of S and S': {found}")
print(f"(24) says at most {allowed}")
print("violated: the mean is larger" if found > allowed else "not violated")
sys.exit(found <= allowed)
