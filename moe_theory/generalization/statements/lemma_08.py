"""Lemma 8: symmetrization."""

import numpy as np

from moe_theory.generalization.experiments import CLASSES, COIN, FREE_SAMPLES, TO_ROUNDING, difference, every, shown
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import equality, ranged, statement


@statement(
    "lemma-8",
    where="Lemma 8, Eq. (36), used in (27)",
    says="The mean of the largest difference between two samples' averages is at most twice the class's Rademacher "
    "complexity."
    r"$$\mathbb{E} \sup_{f \in \mathcal{F}} \left( \frac{1}{m} \sum_{i=1}^{m} f(\mathbf{x}_i) - "
    r"\frac{1}{m} \sum_{i=1}^{m} f(\mathbf{x}'_i) \right) \le 2 \mathcal{R}_m(\mathcal{F})$$",
    proof="lemma_08.py",
    free=FREE_SAMPLES,
).charitable("lemma-8.symmetrization", every(CLASSES), TO_ROUNDING)
def excess_of_exchanges(run) -> np.ndarray:
    r"""For random finite classes sup (L_S - L_S'), averaged over exchanges, is at most the complexities on S and S'.
    $$\mathbb{E}_\sigma \sup_{f \in \mathcal{F}} \frac{1}{m} \sum_{i=1}^{m} \sigma_i \left( f(\mathbf{x}_i) -
    f(\mathbf{x}'_i) \right) \le \mathcal{R}_{\mathcal{S}}(\mathcal{F}) + \mathcal{R}_{\mathcal{S}'}(\mathcal{F})$$"""
    return excess(shown(run, "swapped"), shown(run, "complexity") + shown(run, "ghost_complexity"))


PROOF = statement(
    "lemma-8-proof",
    where="Lemma 8, proof, Eqs. (37) and (38)",
    says="That mean stays the same with absolute values around the difference.",
    why="""Absolute values can only raise the supremum, and do unless the class has a loss's mirror image with every
    loss. They are a slip: the next line drops them again, and the lemma does not need them.""",
    instance="A single function whose loss is a fair coin, and one sample: 0 without absolute values, 1/2 with them.",
    corrected="Without them (37) is at most (39), and the proof of the lemma goes through.",
    disproof="coin_lemma_08_proof.py",
    amendment="if with every loss l the class holds 1 - l",
    proof="lemma_08_proof.py",
    derivation="lemma_08.py",
)


@PROOF.charitable(
    "lemma-8.mirrored",
    COIN.over("num_samples"),
    equality(ranged(0, 1)(lambda run: np.abs(difference(run))), margin=0.05),
)
@ranged(0, 1)
def mirrored_difference(run) -> np.ndarray:
    r"""It is, where the class has that function's mirror image as well.
    $$\mathbb{E} \max \left( L_{\mathcal{S}} - L_{\mathcal{S}'}, L_{\mathcal{S}'} - L_{\mathcal{S}} \right) =
    \mathbb{E} \left\lvert L_{\mathcal{S}} - L_{\mathcal{S}'} \right\rvert$$"""
    return np.maximum(difference(run), -difference(run))


@PROOF.literal(
    "lemma-8.absolute-values",
    COIN.over("num_samples"),
    equality(ranged(0, 1)(lambda run: np.abs(difference(run))), margin=0.05),
    instead="lemma-8.symmetrization",
)
@ranged(-1, 1)
def signed_difference(run) -> np.ndarray:
    r"""The mean of sup (L_S - L_S') is that of sup |L_S - L_S'|, for a single function whose loss is a fair coin.
    $$\mathbb{E} \sup_{f} \left( L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right) =
    \mathbb{E} \sup_{f} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right\rvert$$"""
    return difference(run)
