"""Lemma 4: what a slot loses, against its confidence width and its leaf."""

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import ABLATION, CONFIDENCE, IS_LINEAR, IS_WIDE, ON_REWARDS, TANBR_ON, recorded
from moe_theory.verify.statement import probability, statement

GAP = r"f^*(x_t^*) - f^*(x_t) \le 2 \min\{\gamma \lVert g / \sqrt{w} \rVert_{Z_{t-1}^{-1}}, 1\} + \nu_1 \rho^{h_t}"


LEMMA_4 = statement(
    "lemma-4",
    where="Lemma 4, Eq. (9)",
    says="A slot's regret is at most twice the confidence width of its candidate, nu_1 rho^h and two terms for the "
    f"network's width. $${GAP} + 2 \\bar{{\\Gamma}}$$",
    hypotheses=ON_REWARDS,
    untestable="It supposes the width of Lemma 3, of the order of T^7, and its constants are unknown; at any width "
    "that can be run its terms for the width are above 1, which no slot loses. Tested beside it, with the exploration "
    "constant of the run in place of gamma_t and without those terms, is another statement.",
)


@LEMMA_4.ours(
    "lemma-4.gap", TANBR_ON["peaked"], probability(at_least=1 - CONFIDENCE), hypotheses=[IS_WIDE, IS_LINEAR]
).says(
    "Where Lemma 4 applies, a slot loses at most what (9) says in all recorded slots, with probability 1 - delta. "
    f"$${GAP}$$"
)
@LEMMA_4.ours(
    "lemma-4.gap-at-64-by-ratio",
    ABLATION.over("smoothness_ratio"),
    probability(at_least=1 - CONFIDENCE),
    where="Lemma 4, Eq. (9) without the terms for the width, of a network of width 64, reward `peaked`",
).says(
    "At each rho of the paper slots lose at most twice their confidence width and nu_1 rho^h, all recorded ones. "
    f"$${GAP}$$"
)
def is_within(run) -> np.ndarray:
    """Whether every recorded slot loses at most (9) without the terms for the network's width (B,)."""
    allowed = theory.gap_bound(recorded(run, "width"), 0.0, recorded(run, "depth"), run.params)
    return np.all(recorded(run, "regret") <= np.asarray(allowed), axis=0)


for surface in ("peaked", "shares"):
    LEMMA_4.ours(
        f"lemma-4.gap-at-64-{surface}",
        TANBR_ON[surface],
        probability(at_least=1 - CONFIDENCE),
        where=f"Lemma 4, Eq. (9) without the terms for the width, at a width of 64, rho = 0.9, reward `{surface}`",
    ).says(
        f"Tanbr's slots lose at most twice their confidence width and nu_1 rho^h, all recorded ones together. $${GAP}$$"
    )(is_within)

LEMMA_4.also("assumption-1.best-leaf", role="step")
