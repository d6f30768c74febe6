"""Eqs. (13) to (15): a union over the masks that a sample leaves, in the proof of Theorem 1."""

import math

import numpy as np

from moe_theory.generalization import experiments
from moe_theory.generalization.experiments import CLASSES, LONE_POINT, LONE_SAMPLES, every, shown
from moe_theory.generalization.instances import NUM_INPUTS, NUM_LONE
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import probability, statement

NUM_LONE_MASKS = sum(math.comb(2 * LONE_SAMPLES, chosen) for chosen in range(NUM_LONE + 1))  # Gamma of lone points

EQUATION_15 = statement(
    "equation-15",
    where="Eqs. (13) to (15), with (17) to (20)",
    says="The chance of a gap is at most 2 Gamma times the largest chance for a single mask, which is then treated as "
    "if chosen before the sample.",
    why="""Together they are false; (13) to (15) by themselves, with masks that are numbered on each sample, are the law
    of total probability, and then (18) to (20) fail. The Gamma masks of (13) are those that a router leaves on this
    sample, so that the events of (14) are conditioned on the sample, and McDiarmid's inequality in (20), for a mask
    given beforehand, says nothing of them. Read so that (20) applies, (15) is false: a mask picked after the sample can
    single out inputs that no mask chosen beforehand would meet.""",
    instance="""A mask sends any 4 of 2^32 inputs to an expert of their own, and m = 16: a gap of 1/4 between the two
    samples is there in 64 of 64 draws, and (15) allows a chance of .0025, even if meeting one input counts.""",
    corrected=r"""Massart's lemma over the masks, with the sample held fixed and random signs, needs no mask beforehand;
    Z_mu is the largest signed mean of the losses of models with the mask mu.
    $$\mathbb{E}_\sigma \underset{\mu}{\max}\, Z_\mu \le \underset{\mu}{\max}\, \mathbb{E}_\sigma Z_\mu +
    \sqrt{\frac{\log \Gamma}{2m}}$$""",
    note="A union over exchanges of S and S' needs no such step either.",
    disproof="lone_inputs_equation_15.py",
    derivation="theorem_1_instead.py",
)


@EQUATION_15.charitable(
    "equation-15.sample-dependent-masks",
    every(LONE_POINT),
    probability(at_most=2 * NUM_LONE_MASKS * 2 * LONE_SAMPLES * NUM_LONE / NUM_INPUTS),
    where="Eqs. (13) to (15), as (17) to (20) read them",
    instead="equation-15.centred-massart",
)
def has_gap(run) -> np.ndarray:
    r"""With Gamma masks on 2m samples a gap is at most 2 Gamma times as likely as for one mask chosen beforehand.
    $$\mathbb{P}\left( \sup_{\mu} \sup_{h} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right\rvert \ge
    \frac{\epsilon}{2} \right) \le 2\, \Gamma\, \sup_{\mu^*} \mathbb{P}\left( \sup_h L_{\mathcal{S}}(f) -
    L_{\mathcal{S}'}(f) \ge \frac{\epsilon}{2} \right), \quad \epsilon = \frac{8}{m}$$"""
    # A mask sends 4 inputs of 2^32 to an expert of their own. Chosen beforehand, it makes no gap unless one of them is
    # among the 2m drawn, which has a probability of at most 8m / 2^32; but the sample has 2m of them to choose from.
    # The gap asked for is one that (10) allows: exp(-eps^2 m / 2) is at most 1/4.
    return shown(run, "gap") >= NUM_LONE / LONE_SAMPLES


@EQUATION_15.replacement(
    "equation-15.centred-massart", every(CLASSES), experiments.TO_ROUNDING, where="replaces Eqs. (13) to (15)"
)
def massart_excess(run) -> np.ndarray:
    r"""A random union of Gamma finite classes of losses exceeds its largest part by at most sqrt(log Gamma / (2m)).
    $$\mathbb{E}_\sigma \underset{\mu}{\max}\, Z_\mu \le \underset{\mu}{\max}\, \mathbb{E}_\sigma Z_\mu +
    \sqrt{\frac{\log \Gamma}{2m}}, \quad Z_\mu = \sup_{f \in \mathcal{F}_\mu} \frac{1}{m} \sum_{i=1}^{m}
    \sigma_i \ell_i(f)$$"""
    masks, _, samples = experiments.sizes_of(run.params)
    spread = math.sqrt(math.log(masks) / (2 * samples))
    return excess(shown(run, "composed"), shown(run, "largest_part") + spread)
