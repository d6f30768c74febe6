"""Statistics of a run's routes, which need no models."""

import numpy as np
from jaxtyping import Float, Int


def num_late(length: int) -> int:
    """Return the number of late rounds, which are the last quarter, but at least one round."""
    return max(1, length // 4)


def last_tasks(tasks: Int[np.ndarray, "T B"], experts: Int[np.ndarray, "T B"]) -> Int[np.ndarray, "T B"]:
    """Return the previous task of each arrival's expert, or -1. The expert of an unserved arrival is negative."""
    replicates = np.arange(tasks.shape[1])
    last_task = np.full((experts.max() + 2, tasks.shape[1]), -1)  # the last row, which -1 selects, is for no expert
    previous = np.empty(tasks.shape, int)
    rows = np.maximum(experts, -1)
    for time in range(len(tasks)):
        previous[time] = last_task[rows[time], replicates]
        last_task[rows[time], replicates] = tasks[time]
    return np.where(rows < 0, -1, previous)


def own_share(
    tasks: Int[np.ndarray, "T B"], experts: Int[np.ndarray, "T B"], clusters: Int[np.ndarray, "N B"]
) -> Float[np.ndarray, " B"]:
    """Return the share of late served arrivals whose expert had served the same cluster just before.

    The share is NaN if no late arrival was served. Tasks index the rows of `clusters`.
    """
    length = len(tasks)
    replicates = np.arange(clusters.shape[1])
    late = slice(length - num_late(length), None)
    previous = last_tasks(tasks, experts)[late]
    late_tasks = tasks[late]
    is_routed = experts[late] >= 0
    is_own = is_routed & (previous >= 0) & (clusters[previous, replicates] == clusters[late_tasks, replicates])
    with np.errstate(invalid="ignore"):
        return is_own.sum(axis=0) / is_routed.sum(axis=0)
