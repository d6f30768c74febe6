"""Corollary 4: Theorem 1 for networks."""

import math

import numpy as np

from moe_theory.generalization import experiments, instances, theory
from moe_theory.generalization.experiments import LEARNED_EXPERTS, delta_of
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.verify.statement import alike, identity, statement

NUM_SAMPLES = 10**10  # at which Lemma 2's p^2 outputs no longer make the bound vacuous


COROLLARY_4 = statement(
    "corollary-4",
    where="Corollary 4, Eq. (9)",
    says="Theorem 1 holds for network experts and routers with Lemma 3 and Lemma 2 in place of their complexities.",
    why="""With the constant 1 in front it fails as Theorem 1 does: experts that share the inputs among them fit sqrt(T)
    times as much as one. What is tested is one T alone, which leaves it open for larger constants; as T grows the
    excess does too in closed form, 1.5 times the bound at T = 64 and m = 10^10, 13.5 times at T = 4096 and m = 10^18,
    and a claim along such a grid would decide it.""",
    instance="""64 linear experts, which are networks of one layer, in balls of radius sqrt(m/T), a linear router with
    p = 128 weights, and 10^10 samples with random labels: the gap is 1/2 and the bound .334.""",
)


@COROLLARY_4.literal(
    "corollary-4",
    experiments.LEARNED_CELLS.at(experiments.LEARNED_CELL),
    identity(within=0.0),
    where="Corollary 4, Eq. (9), with the constant 1 in Lemma 2",
    labels=["m = 1e10"],
    instead="repaired.learned-router",
    exact=True,
).says(r"""With one-layer networks as experts and a router of p = 128, the gap at 10^10 samples is at most (9).
    $$\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \le 4 C \frac{c}{\sqrt{m}}
    \prod_{i=1}^{r} K_i \left( \sum_{i=1}^{r} \frac{b_i^{2/3}}{K_i^{2/3}} \right)^{3/2} +
    2 \sqrt{\frac{2 k d p^2 \left( 1 + \log \frac{T}{k} \right) + d p^2 \log(2m) + \log(4/\delta)}{2m}}$$""")
def excess(run) -> np.ndarray:
    """Excess over (9) of the gap of `instances.learned_cells`, the same for every sample of this size.

    An input has a coordinate and a constant, arbitrarily small, which the router reads with 128 arbitrarily large
    weights, and a random one of many unit vectors, which the experts read: m^2 dimensions are enough, as hardly any of
    m inputs then share one. Whatever the constant in Lemma 2, its term vanishes as m grows and leaves
    4 C R_m(H) = 2 / sqrt(T), which is below 1/2.
    """
    radius = math.sqrt(NUM_SAMPLES / LEARNED_EXPERTS)
    counts = np.full(LEARNED_EXPERTS, NUM_SAMPLES / LEARNED_EXPERTS)
    gap = float(instances.ball_gap(counts, radius**2, float(NUM_SAMPLES)))
    sizes = (LEARNED_EXPERTS, 1, NUM_SAMPLES)
    norms = {"feature_norm": 1.0, "operator_norms": [radius], "row_norms": [radius]}
    parameters = LEARNED_EXPERTS * experiments.LEARNED_FEATURES
    bound = theory.corollary_4(*sizes, **norms, num_parameters=parameters, lipschitz=LIPSCHITZ, delta=delta_of(run))
    return alike(run, max(gap - bound, 0))
