"""Lemma 13: an expert's probabilities for its own task, or cluster, and for others."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.proposition_1 import UNEARNED, claim_competitors
from moe_theory.continual.statements.setting import statement

TASKS = statement("lemma-13-more-experts", module=__name__, free=(experiments.FREE_SIGNALS, *experiments.FREE))
CLUSTERS = statement("lemma-13-fewer-experts", module=__name__, free=(experiments.FREE_SIGNALS, *experiments.FREE))


@TASKS.charitable("lemma-13.tasks", experiments.LIMIT_MANY, experiments.LIKELY)
@CLUSTERS.charitable("lemma-13.clusters", experiments.LIMIT_FEW, experiments.LIKELY)
def is_always_separated(run) -> np.ndarray:
    return run.state.is_separated


claim_competitors(is_always_separated, {"lemma-13.tasks": TASKS, "lemma-13.clusters": CLUSTERS}, UNEARNED)
