"""Lemma 6: how many functions a class of Natarajan dimension d_N has."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import LABELING_DIMS, LABELINGS, cell_name, shown
from moe_theory.verify.claim import excess
from moe_theory.verify.region import Size
from moe_theory.verify.statement import statement

COUNTS = [experts for experts, active in experiments.LABELING_SIZES if active == 1]


@statement(
    "lemma-6",
    where="Lemma 6, Eq. (33)",
    says="A class of functions from m points to k labels has at most m^(d_N) k^(2 d_N) members."
    r"$$\tau_{\mathcal{H}}(m) \le m^{d_N} \cdot k^{2 d_N}$$",
    proof="lemma_06.py",
    free=Size("num_features", 1, 4),
).charitable(
    "lemma-6.growth",
    LABELINGS.over([cell_name(T=count, k=1) for count in COUNTS]),
    experiments.TO_ROUNDING,
    labels=[f"{count} labels" for count in COUNTS],
)
def excess_of_growth(run) -> np.ndarray:
    """No random class of functions from m <= 4 points to k = 2 or 3 labels exceeds m^d k^(2d), d its d_N."""
    points = np.arange(1, LABELING_DIMS.max_samples + 1)[:, None]
    most = theory.lemma_6(points, int(run.params.num_experts), shown(run, "random", "natarajan"))
    return excess(shown(run, "random", "log_growth"), np.asarray(most)).max(axis=0)
