"""Lemma 5 on the generalization of sparse MoE, against two cells and two samples, in all outcomes. Needs Python alone.

E phi(S, S') is to be at most 2 C R_m(H), where phi is the largest L_S(f) - L_S'(f) over all choices of experts once the
mask is given. Here m = 2, inputs fall into one of two cells with probability 1/2, each cell has an expert of its own,
+1 or -1 everywhere, labels are fair coins, and the loss is clip((1 - y f)/2, 0, 1), C = 1/2.
"""

import itertools
import sys
from fractions import Fraction

SAMPLES, CELLS = 2, 2
EXPERTS = list(itertools.product([-1, 1], repeat=CELLS))
OUTCOMES = list(itertools.product(range(CELLS), [-1, 1]))  # of a sample: its cell and its label


def risk(experts: tuple[int, ...], drawn: tuple[tuple[int, int], ...]) -> Fraction:
    return sum((Fraction(1 - label * experts[cell], 2) for cell, label in drawn), Fraction(0)) / SAMPLES


draws = list(itertools.product(OUTCOMES, repeat=2 * SAMPLES))
phi = sum(max(risk(e, drawn[:SAMPLES]) - risk(e, drawn[SAMPLES:]) for e in EXPERTS) for drawn in draws) / len(draws)
signs = list(itertools.product([-1, 1], repeat=SAMPLES))
lone = sum(Fraction(max(sum(sign), -sum(sign)), SAMPLES) for sign in signs) / len(signs)  # R_m of {+1, -1}
bound = 2 * Fraction(1, 2) * lone
print(f"The lemma: the mean of phi is at most 2 C R_m(H) = {bound}.")
print(f"Over all {len(draws)} outcomes it is {phi} = {float(phi):.4f}.")
sys.exit(0 if phi > bound else 1)
