"""Lower estimates of the largest gap of a class: its best fit to random labels, which cannot be learned.

Whatever is found is in the class, so that its gap is at most the supremum; how much less is not known. With |f| <= 1
the ramp loss is linear, and twice the gap is (1/m) sum_i y_i f(x_i): a lower estimate of R_m(F), labels for signs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from moe_theory.generalization.params import Dims
from moe_theory.generalization.system import best_experts, gap, system
from moe_theory.runs import Cell, Progress, run_cells

LEARNING_RATE = 0.1
RECORD_EVERY = 20  # steps: the best of the recorded ones counts
WIDTH = 8  # replicates of a chunk at most: there are few, and chunks are padded


def best_gaps(
    settings: Mapping[str, tuple[Dims, Any]], num_steps: int, replicates: int, seed: int, progress: Progress, what: str
) -> dict[str, Float[np.ndarray, " B"]]:
    """The largest gap recorded in each replicate, by the names of `settings` (name -> dims, params).

    Raises: InvalidRunError for replicates or steps that cannot be run.
    """
    parts = [
        Cell(
            name,
            system(dims, optimizer=best_experts),
            params._replace(learning_rate=LEARNING_RATE),
            num_steps,
            RECORD_EVERY,
            gap,
        )
        for name, (dims, params) in settings.items()
    ]
    width = max(1, min(WIDTH, replicates))
    runs = run_cells(parts, replicates, seed=seed, width=width, progress=progress, what=what)
    return {name: run.records.astype(np.float64).max(axis=0) for name, run in runs.items()}
