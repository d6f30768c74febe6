"""Corollary 4: Theorem 1 for networks, as the number of experts grows."""

import dataclasses

import numpy as np

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.experiments import FORMULA, delta_of, learned_gap
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.generalization.statements.theorem_1 import RANDOM_LABELS
from moe_theory.verify.statement import alike, bound, limit_rate, statement

EXPERTS = tuple(2**power for power in range(6, 15))  # T, with T^5 samples each
FEW_EXPERTS = EXPERTS[::4]
# Norms for which the corrected bound is below 1/2, by layers: shares of the norm that fits all labels. Two layers make
# sqrt(2 B) (v, -v)/sqrt(2) behind the units v.x and -v.x, |v| = 1, of the function B v.x, so that F_1 F_2 = 2 B.
SHARES = {1: 0.25, 2: 0.05}


COROLLARY_4 = statement(
    "corollary-4",
    where="Corollary 4, Eq. (9)",
    says="Theorem 1 holds for network experts and routers with Lemma 3 and Lemma 2 in place of their complexities.",
    why="""It fails as Theorem 1 does: experts that share the inputs among them fit sqrt(T) times as much as one,
    and the first term charges for one. Lemma 2's term is of order T^3 for a linear router, but falls with m whatever
    the constant in front, so that with T^5 samples the first is left. No constant in O() makes up for a ratio that
    grows like sqrt(T).""",
    instance="""Linear experts, which are networks of one layer, in balls of radius sqrt(m/T), a linear router with
    p = 2 T weights, and m = T^5 samples with random labels: the gap is 1/2 for every T, and over the bound it
    grows like T^0.558.""",
    corrected=r"""With Frobenius norms F_l of an expert's L layers, the same of each logit of the router, and Gamma(m)
    the most patterns that the signs of the router's units show on m inputs, it holds with probability 1 - delta; for
    k > 1 the router's norms enter too (`corrected.network_complexity`).
    $$\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \leq 2 C c \prod_l F_l \left(\sqrt{2 L
    \log 2} + 1\right) \sqrt{\frac{\min(T, m)}{m}} + 2 \sqrt{\frac{\log \Gamma(m)}{2m}} + \sqrt{\frac{\log(2 /
    \delta)}{2m}}, \quad k = 1$$""",
    disproof="linear_networks_corollary_4.py",
    note="""Only the first term is wrong, by sqrt(min(T, m)) at k = 1, so that the bound stands where Lemma 2's root is
    larger than the first term with that factor, as for experts of fixed norms and many router weights.""",
)


@COROLLARY_4.charitable(
    "corollary-4",
    dataclasses.replace(FORMULA, abscissa=EXPERTS),
    limit_rate(at_most=0.0),
    where="Corollary 4, Eq. (9), whatever the constants in its O() and in Lemma 2",
    labels=[f"T = {experts}" for experts in EXPERTS],
    instead="corollary-4.norms",
)
def ratio_to_bound(run) -> np.ndarray:
    r"""With one-layer networks as experts, a router of p = 2 T weights and m = T^5 samples, the ratio of the gap to (9)
    stays bounded as T grows.
    $$\frac{\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert}{4 C \frac{c}{\sqrt{m}}
    \prod_{i=1}^{r} K_i \left( \sum_{i=1}^{r} \frac{b_i^{2/3}}{K_i^{2/3}} \right)^{3/2} +
    2 \sqrt{\frac{2 k d p^2 \left( 1 + \log \frac{T}{k} \right) + d p^2 \log(2m) + \log(4/\delta)}{2m}}}
    = \mathcal{O}(1), \quad m = T^5$$"""
    ratios = []
    for experts in EXPERTS:
        samples = float(experts) ** 5
        radius = (samples / experts) ** 0.5
        norms = {"feature_norm": 1.0, "operator_norms": [radius], "row_norms": [radius]}
        parameters = experts * experiments.LEARNED_FEATURES
        about = {**norms, "num_parameters": parameters, "lipschitz": LIPSCHITZ, "delta": delta_of(run)}
        ratios.append(learned_gap(experts, samples) / theory.corollary_4(experts, 1, samples, **about))
    return alike(run, ratios)


def corrected_bounds(run) -> np.ndarray:
    """`corrected.uniform` for experts of one layer and of two, behind a router of one layer (V, B)."""
    found = []
    for layers, share in SHARES.items():
        for experts in FEW_EXPERTS:
            samples = float(experts) ** 5
            radius = share * (samples / experts) ** 0.5
            norms = [radius] if layers == 1 else [(2 * radius) ** 0.5] * 2
            rho = corrected.network_complexity(experts, 1, samples, norms)
            patterns = corrected.log_network_patterns(experts, 1, int(samples), experiments.LEARNED_FEATURES, ())
            found.append(corrected.uniform(rho, patterns, samples, LIPSCHITZ, delta_of(run)))
    return alike(run, found)


@COROLLARY_4.replacement(
    "corollary-4.norms",
    FORMULA,
    bound(at_most=corrected_bounds, trivial=RANDOM_LABELS),
    labels=[f"{layers} layer{'s' * (layers > 1)}, T = {experts}" for layers in SHARES for experts in FEW_EXPERTS],
)
def gaps_of_networks(run) -> np.ndarray:
    r"""With network experts of small norms the gap on random labels is below the corrected bound, which is below 1/2.

    Of experts of two layers the gap is at least that of the linear functions among them, which is compared.
    $$\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \leq 2 C \rho +
    2 \sqrt{\frac{\log \Gamma(m)}{2m}} + \sqrt{\frac{\log(2 / \delta)}{2m}}, \quad m = T^5$$"""
    gaps = [learned_gap(experts, float(experts) ** 5, share) for share in SHARES.values() for experts in FEW_EXPERTS]
    return alike(run, gaps)
