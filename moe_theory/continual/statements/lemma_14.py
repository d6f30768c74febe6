"""Lemma 14: the gates' gradients between T1 and t_1, while the gates are never fixed."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.verify.statement import rate, statement

MANY, FEW = (experiments.NO_TERMINATION.over(cells) for cells in (experiments.MANY_CELLS, experiments.FEW_CELLS))

LEMMA_14 = statement(
    "lemma-14",
    where="Lemma 14, Eq. (39)",
    says=r"""Between T1 and t1 the gradients of the chosen gate and of any other one differ by O(sigma_0) in every
    entry.
    $$\|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{task} - \nabla_{\theta_t^{(m_t)}} \mathcal{L}_t^{task}\|_\infty =
    \mathcal{O}(\sigma_0)$$""",
    hypotheses=[experiments.ENDLESS],
    proof="gradients_past_exploration.py",
    amendment="truths of size O(sigma_0)",
    why="""Section 3 bounds how far truths differ, and the proof takes them to be of order sigma_0. With a part in
    common of order 1, along which signals lie, an expert that the first steps put out of reach has that part still to
    learn after T1.""",
    instance="Six truths that differ by O(sigma_0) from one whose entries are 1, and signals from it by O(1).",
    note="Lemma 5's second clause is not needed: with one sample and tasks nearly alike models stray past t_1 only.",
)
TOO = "With truths that have a part in common of order 1, too, gate gradients are within O(sigma_0) of the chosen one's"


@LEMMA_14.literal("lemma-14.tasks-common", interventions.COMMON_MANY, rate(at_least=1.0)).says(f"{TOO}; M > N.")
@LEMMA_14.literal("lemma-14.clusters-common", interventions.COMMON_FEW, rate(at_least=1.0)).says(f"{TOO}; M < N.")
@LEMMA_14.charitable("lemma-14.tasks", MANY, rate(at_least=1.0), hypotheses=experiments.MORE).says(
    "From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M > N."
)
@LEMMA_14.charitable("lemma-14.clusters", FEW, rate(at_least=1.0), hypotheses=experiments.FEWER).says(
    "From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M < N."
)
def largest_gradient_gap(run) -> np.ndarray:
    return run.records.gradient_gap[experiments.router_learning(run)].max(axis=0).astype(np.float64)
