"""Lemma 1: the number of candidates. Trees run without a bandit, by the rule that is worst for the lemma."""

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.experiments import EXACTLY, FREE_TREE, TREES_BY_RATIO, by_ratio, candidates, worst_excess
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import Runs, excess

LEMMA_1 = statement("lemma-1", module=__name__, free=FREE_TREE)


@LEMMA_1.charitable("lemma-1.candidates", by_ratio("in-turn"), EXACTLY, instead="lemma-1.leaves")
def candidates_beyond(run) -> np.ndarray:
    return excess(candidates(run), theory.leaf_bound(int(run.rounds[-1]), run.params)).max(axis=0)


@LEMMA_1.replacement("lemma-1.leaves", TREES_BY_RATIO, EXACTLY)
def leaves_beyond(runs: Runs) -> np.ndarray:
    return worst_excess(runs, "in-turn", "num_leaves", corrected.leaf_bound)
