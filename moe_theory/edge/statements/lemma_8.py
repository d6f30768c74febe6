"""Lemma 8: how far apart the gates of two experts are when exploration ends."""

import numpy as np

from moe_theory.edge.experiments import BY_RATE, BY_SCALE, EXPLORES, explored
from moe_theory.verify.statement import rate, statement

GAP = r"""$$\left\lVert \theta_{T_1}^{(m)} - \theta_{T_1}^{(m')} \right\rVert_\infty = \mathcal{O}(%s),
\quad m \neq m'$$"""
LEMMA_8 = statement(
    "lemma-8",
    where="Lemma 8",
    says="When exploration ends the gates of two experts differ by O(eta^-0.5 sigma_0) in every entry."
    + GAP % r"\eta^{-1/2} \sigma_0",
    hypotheses=EXPLORES,
)


@LEMMA_8.literal("lemma-8.learning-rate", BY_RATE, rate(at_least=-0.5)).says(
    "At T1 the gates of two experts are within O(eta^(-1/2)) of each other in every entry, for small eta."
    + GAP % r"\eta^{-1/2}"
)
@LEMMA_8.literal("lemma-8.scale", BY_SCALE, rate(at_least=1)).says(
    "At T1 the gates of two experts are within O(sigma_0) of each other in every entry." + GAP % r"\sigma_0"
)
def largest_difference(run) -> np.ndarray:
    return explored(run, "gate_gap")[-1]
