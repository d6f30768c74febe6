"""Counterexample to Lemma 5, Eq. (24): with two cells and two samples E phi is 35/64, but (24) says at most 1/2.

Two experts can each fit the labels of their own cell, but (24) has the complexity of one expert on all inputs. Let each
input be in one of two cells with probability 1/2, with a given mask that sends each cell to its own expert, +1 or -1.
So T = 2, k = 1, H = {+1, -1}. Labels are fair coins, the loss is clip((1 - y f)/2, 0, 1), and C = 1/2. For one expert,
the largest signed mean is 1 if the two signs agree and otherwise 0, so R_2(H) = 1/2. So (24) allows 2 C R_2(H) = 1/2.

phi = sup (L_S - L_S') is the sum over the cells of |S_j - S'_j|/4, where S_j and S'_j sum the labels in cell j of the
two samples. Its mean is (3/2)/4 if all four inputs are in one cell, (3/2 + 1)/4 if three are, and (1 + 1)/4 if two are.
With probabilities 1/8, 1/2 and 3/8 the mean is 35/64.

Robust: no constant factor helps. With T equally likely cells and m >= T samples, E|sum of n signs| >= sqrt(n/2) makes
the mean of phi at least 3/8 sqrt(T/m). But (24) allows at most 1/sqrt(m), which is less by a factor of 3/8 sqrt(T).

Objection: two experts in two cells are a toy example. But the step from (30) to (31), which replaces gates that depend
on the input by one point of the simplex, fails whenever several experts divide the sample.
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
