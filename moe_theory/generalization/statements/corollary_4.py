"""Corollary 4: Theorem 1 for networks, as the number of experts grows."""

import dataclasses
import itertools

import numpy as np

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.experiments import FORMULA, delta_of, learned_gap
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.generalization.statements.setting import statement
from moe_theory.generalization.statements.theorem_1 import RANDOM_LABELS
from moe_theory.verification.statement import alike, bound, limit_rate

EXPERTS = tuple(2**power for power in range(6, 15))  # T, each with T^5 samples
FEW_EXPERTS = EXPERTS[::4]
# Shares of the norm that fits all labels, by number of layers. At these the corrected bound is below 1/2. Two layers
# compute B v.x as sqrt(2 B) (v, -v)/sqrt(2) behind the units v.x and -v.x, |v| = 1, so that F_1 F_2 = 2 B.
SHARES = {1: 0.25, 2: 0.05}
LABELS = [f"T = {experts}" for experts in EXPERTS]
BY_EXPERTS = dataclasses.replace(FORMULA, abscissa=EXPERTS)

COROLLARY_4 = statement("corollary-4", module=__name__)


@COROLLARY_4.charitable("corollary-4", BY_EXPERTS, limit_rate(at_most=0.0), labels=LABELS, instead="corollary-4.norms")
def ratio_to_bound(run) -> np.ndarray:
    ratios = []
    for experts in EXPERTS:
        samples = float(experts) ** 5
        radius = (samples / experts) ** 0.5
        bound = theory.corollary_4(
            experts,
            1,
            samples,
            feature_norm=1.0,
            operator_norms=[radius],
            row_norms=[radius],
            num_parameters=experts * experiments.LEARNED_FEATURES,
            lipschitz=LIPSCHITZ,
            delta=delta_of(run),
        )
        ratios.append(learned_gap(experts, samples) / bound)
    return alike(run, ratios)


def corrected_bounds(run) -> np.ndarray:
    """Return `corrected.uniform` for experts with one or two layers behind a one-layer router (V, B)."""
    bounds = []
    for layers, share in SHARES.items():
        for experts in FEW_EXPERTS:
            samples = float(experts) ** 5
            radius = share * (samples / experts) ** 0.5
            norms = [radius] if layers == 1 else [(2 * radius) ** 0.5] * 2  # norm of one layer, or of two equal layers
            rho = corrected.network_complexity(experts, 1, samples, norms)
            patterns = corrected.log_network_patterns(experts, 1, int(samples), experiments.LEARNED_FEATURES, widths=())
            bounds.append(corrected.uniform(rho, patterns, samples, LIPSCHITZ, delta_of(run)))
    return alike(run, bounds)


@COROLLARY_4.replacement(
    "corollary-4.norms",
    FORMULA,
    bound(at_most=corrected_bounds, trivial=RANDOM_LABELS),
    labels=[
        f"{layers} layer{'s' * (layers > 1)}, T = {experts}"
        for layers, experts in itertools.product(SHARES, FEW_EXPERTS)
    ],
)
def gaps_of_networks(run) -> np.ndarray:
    pairs = itertools.product(SHARES.values(), FEW_EXPERTS)
    gaps = [learned_gap(experts, float(experts) ** 5, share) for share, experts in pairs]
    return alike(run, gaps)
