"""Lemma 15: which of two specialists has the higher probability for a task, if the gates are never fixed."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.experiments import LIKELY
from moe_theory.continual.statements.setting import statement
from moe_theory.core.gating import pairs_of
from moe_theory.verification.statement import identity

TASKS = statement("lemma-15-more-experts", module=__name__)
CLUSTERS = statement("lemma-15-fewer-experts", module=__name__)


@TASKS.charitable("lemma-15.tasks", experiments.ENDLESS_MANY, LIKELY, instead="lemma-15.one-of-two-tasks")
@CLUSTERS.charitable("lemma-15.clusters", experiments.ENDLESS_FEW, LIKELY, instead="lemma-15.one-of-two-clusters")
@TASKS.intervention("lemma-15.tasks-apart", interventions.ENDLESS_APART_MANY, LIKELY)
@CLUSTERS.intervention("lemma-15.clusters-apart", interventions.ENDLESS_APART_FEW, LIKELY)
def is_always_ordered(run) -> np.ndarray:
    return run.state.is_ordered


@TASKS.replacement("lemma-15.one-of-two-tasks", experiments.RETURN_MANY, identity(within=0))
@CLUSTERS.replacement("lemma-15.one-of-two-clusters", experiments.RETURN_FEW, identity(within=0))
def num_without_order(run) -> np.ndarray:
    """Return how many pairs have no order at the end of a run whose gates are never fixed (B,)."""
    gates = np.asarray(run.state.gates[: int(run.params.num_experts)], np.float64)
    outputs = np.einsum("mdb,ndb->mnb", gates, np.asarray(run.state.pool.signals, np.float64))
    pairs = pairs_of(outputs, np.asarray(run.state.pool.clusters))
    return np.sum(pairs.exist & pairs.trail & pairs.swapped, axis=(0, 1)).astype(float)
