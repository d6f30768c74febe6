"""Eq. (10): a second sample in place of the true risk, in the proof of Theorem 1."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import CELL_GAPS, FEW_CELL_SAMPLES, is_beyond
from moe_theory.verify.statement import Hypothesis, bound, ranged, statement

MOST_DOUBT = 1 / 4  # what (10) supposes exp(-eps^2 m / 2) to be at most
GAPS = {
    experts: [gap for gap in gaps if theory.ghost_factor(FEW_CELL_SAMPLES, gap) >= 1 - 2 * MOST_DOUBT]
    for experts, gaps in CELL_GAPS.items()
}


def gaps_of(run) -> np.ndarray:
    return np.array(GAPS[int(run.params.num_experts)])


@ranged(0, 2)
def twice_beyond_half(run) -> np.ndarray:
    return 2 * is_beyond(run, "paired_gap", gaps_of(run) / 2)


@statement(
    "equation-10",
    where="Eq. (10)",
    says="A gap to the true risk is at most twice as likely as half of it to the risk on a second sample, once "
    r"exp(-eps^2 m/2) is at most 1/4.$$e^{-\epsilon^2 m / 2} \le \frac{1}{4}$$",
    proof="equation_10.py",
    hypotheses=[
        Hypothesis(
            "exp(-eps^2 m / 2) is at most 1/4",
            lambda dims, run: np.all(np.exp(-(gaps_of(run) ** 2) * int(run.params.num_samples) / 2) <= MOST_DOUBT),
        ),
    ],
).charitable(
    "equation-10.ghost-sampling",
    experiments.FEW_CELLS.over("num_experts", *GAPS),
    bound(at_most=twice_beyond_half),
    labels=[f"T = {experts}, gap {gap}" for experts, gaps in GAPS.items() for gap in gaps],
)
@ranged(0, 1)
def is_beyond_gap(run) -> np.ndarray:
    r"""Where exp(-eps^2 m/2) <= 1/4 a gap to the true risk is at most twice as likely as half of it to a ghost's.
    $$\mathbb{P}\left( \sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \ge
    \epsilon \right) \le 2\, \mathbb{P}\left( \sup_f \left\lvert L_{\mathcal{S}}(f) -
    L_{\mathcal{S}'}(f) \right\rvert \ge \frac{\epsilon}{2} \right)$$"""
    return is_beyond(run, "gap", gaps_of(run))
