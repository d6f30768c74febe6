"""Lemma 9: the error of a task after T1, and how it follows from its expert's history."""

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.params import Dims
from moe_theory.edge.statements.setting import statement
from moe_theory.edge.statements.theorem_1 import late_errors
from moe_theory.edge.theory import overparameterization_ratio
from moe_theory.verification.region import Size
from moe_theory.verification.statement import bound, equality


def twice_task_gap(run) -> np.ndarray:
    """Return twice the error of task-independent routing (B,)."""
    return 2 * experiments.task_gap(run)


SETTLED = statement("lemma-9-settled", module=__name__)
SETTLED.cite("theorem-1.given-routes", role="corrected")
BLOCK = 256  # replicates at a time, because the table of all pairs of tasks is large


@SETTLED.charitable("lemma-9.settled", experiments.BY_SCALE, bound(at_most=twice_task_gap, trivial=twice_task_gap))
def change_of_error(run) -> np.ndarray:
    error_at_end, error_at_t1 = late_errors(run)
    return np.abs(error_at_end - error_at_t1)


def history_sum(run) -> np.ndarray:
    """Return the value of (34), as a mean over a run's tasks (B,)."""
    parts = []
    for first in range(0, len(run.replicates), BLOCK):
        block = slice(first, first + BLOCK)
        truth = run.records.truth[..., block].astype(np.float64)
        parts.append(history_part(run.records.expert[:, block], truth, run.dims))
    return np.concatenate(parts)


@statement(
    "lemma-9-history",
    module=__name__,
    free=(Size("num_samples", 1, 14), Size("num_tasks", 2, 15), Size("num_features", 11, 30)),
).charitable(
    "lemma-9.history",
    experiments.FIRST_TASKS,
    equality(history_sum, margin=0.02),
    labels=[f"t = {experiments.HISTORY.num_rounds}"],
)
def last_error(run) -> np.ndarray:
    return run.records.flushed[-1].astype(np.float64)


def history_part(expert: np.ndarray, truth: np.ndarray, dims: Dims = experiments.HISTORY_DIMS) -> np.ndarray:
    """Return (34) for the replicates of a block, with experts (T, B) and truths (T, p, B)."""
    ratio = overparameterization_ratio(dims.num_features, dims.num_samples)
    is_routed = expert >= 0
    share_expert = (expert[:, None] == expert[None, :]) & is_routed[:, None]
    loads = share_expert.sum(axis=1)
    is_successor = np.triu(np.ones(share_expert.shape[:2]), 1)[:, :, None] * share_expert  # 0 or 1
    weights = (1 - ratio) * ratio ** is_successor.sum(axis=1)  # the l-th of L tasks has L - l successors
    norms = np.sum(truth**2, axis=1)
    by_replicate = truth.transpose(2, 0, 1)
    products = np.moveaxis(np.einsum("bid,bjd->bij", by_replicate, by_replicate, optimize=True), 0, -1)
    distances = norms[:, None] + norms[None, :] - 2 * products
    errors = ratio**loads * norms + np.sum(share_expert * weights[:, None] * distances, axis=0)
    return np.sum(is_routed * errors, axis=0) / np.maximum(is_routed.sum(axis=0), 1)
