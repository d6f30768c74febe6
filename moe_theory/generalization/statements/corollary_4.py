"""Corollary 4: Theorem 1 for networks."""

import dataclasses
import math

import numpy as np

from moe_theory.generalization import experiments, instances, theory
from moe_theory.generalization.experiments import LEARNED_EXPERTS, delta_of
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.verify.statement import alike, identity, limit_rate, statement

NUM_SAMPLES = 10**10  # at which Lemma 2's p^2 outputs no longer make the bound vacuous
GROWING = (512, 4096, 32_768, 262_144)  # T, with m = T^5 samples
AT_ONE = experiments.LEARNED_CELLS.at(experiments.LEARNED_CELL)

COROLLARY_4 = statement(
    "corollary-4",
    where="Corollary 4, Eq. (9)",
    says="Theorem 1 holds for network experts and routers with Lemma 3 and Lemma 2 in place of their complexities.",
    why="""It fails as Theorem 1 does: experts that share the inputs among them fit sqrt(T) times as much as one, and
    the bound charges for one. No constant helps: with m = T^5 samples the router's term falls faster than the first
    one, 2/sqrt(T), and the gap stays 1/2.""",
    instance="""64 linear experts, which are networks of one layer, in balls of radius sqrt(m/T), a linear router with
    p = 128 weights, and 10^10 samples with random labels: the gap is 1/2 and the bound .334. With T = 4096 and m = T^5
    it is 13.6 times the bound, and 125 times with T = 262,144.""",
    corrected="With the complexity of the whole class, here B c sqrt(T/m), in place of one expert's, it is Theorem 1's "
    "corrected bound.",
    witness="corollary_4.py",
)


def gap_and_bound(num_experts: int, num_samples: float, delta: float) -> tuple[float, float]:
    """The gap of `instances.learned_cells`, the same for every sample of this size, and (9).

    An input has a coordinate and a constant, arbitrarily small, which the router reads with 2 T arbitrarily large
    weights, and a random one of many unit vectors, which the experts read: m^2 dimensions are enough, as hardly any of
    m inputs then share one. Whatever the constant in Lemma 2, its term vanishes as m grows and leaves
    4 C R_m(H) = 2 / sqrt(T), which is below 1/2.
    """
    radius = math.sqrt(num_samples / num_experts)
    gap = float(instances.ball_gap(np.full(num_experts, radius**2), radius**2, float(num_samples)))
    norms = {"feature_norm": 1.0, "operator_norms": [radius], "row_norms": [radius]}
    parameters = num_experts * experiments.LEARNED_FEATURES
    sizes = (num_experts, 1, num_samples)
    return gap, theory.corollary_4(*sizes, **norms, num_parameters=parameters, lipschitz=LIPSCHITZ, delta=delta)


@COROLLARY_4.literal(
    "corollary-4",
    AT_ONE,
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
    gap, bound = gap_and_bound(LEARNED_EXPERTS, NUM_SAMPLES, delta_of(run))
    return alike(run, max(gap - bound, 0))


@COROLLARY_4.charitable(
    "corollary-4.any-constant",
    dataclasses.replace(AT_ONE, abscissa=GROWING),
    limit_rate(at_most=0.0),
    where="Corollary 4, Eq. (9), whatever the constants, with m = T^5",
    instead="repaired.learned-router",
    exact=True,
).says(r"""With one-layer networks as experts and a linear router, the ratio of the gap to (9) stays bounded as T grows.
    $$\frac{\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert}{\text{(9)}} = \mathcal{O}(1), \quad
    m = T^5 \to \infty$$""")
def ratios(run) -> np.ndarray:
    found = [gap_and_bound(number, float(number) ** 5, delta_of(run)) for number in GROWING]
    return alike(run, [gap / bound for gap, bound in found])
