"""Lemma 6: the number of functions of a class of Natarajan dimension d_N."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import LABELING_DIMS, LABELINGS, cell_name, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.region import Size

LABEL_COUNTS = [experts for experts, active in experiments.LABELING_SIZES if active == 1]
BY_COUNT = LABELINGS.over([cell_name({"T": count, "k": 1}) for count in LABEL_COUNTS])
LABELS = [f"{count} labels" for count in LABEL_COUNTS]


@statement("lemma-6", module=__name__, free=Size("num_features", low=1, high=4)).charitable(
    "lemma-6.growth", BY_COUNT, experiments.TO_ROUNDING, labels=LABELS
)
def excess_of_growth(run) -> np.ndarray:
    points = np.arange(1, LABELING_DIMS.max_samples + 1)[:, None]
    allowed = theory.lemma_6(points, int(run.params.num_experts), shown(run, "random", "natarajan"))
    return excess(shown(run, "random", "log_growth"), np.asarray(allowed)).max(axis=0)
