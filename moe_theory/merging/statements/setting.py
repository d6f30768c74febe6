"""Hypotheses of the paper's statements, with sentences in `paper.toml`."""

import functools

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import CONFIDENCE, NUM_LAYERS, NUM_ROUNDS
from moe_theory.merging.params import RANDOM_SPLIT, Dims
from moe_theory.runs import Run
from moe_theory.verification import statement as declarations


def _is_in_range(dims: Dims, run: Run) -> bool:
    params = run.params
    are_positive = params.smoothness > 0 and params.split_constant > 0
    return 0 < params.smoothness_ratio < 1 and 0 < params.confidence <= 1 and are_positive


def _is_wide(dims: Dims, run: Run) -> bool:
    leaves = max(float(theory.leaf_bound(float(NUM_ROUNDS), run.params)), 1.0)  # at least the root
    sizes = (dims.width, NUM_ROUNDS, leaves, NUM_LAYERS)
    least = theory.least_width(*sizes, regularization=float(run.params.regularization), confidence=CONFIDENCE)
    return dims.width >= least


HOLDS = {
    # All experiments satisfy these. Steps enter only one term of (6), which the claims take as 0, its least value.
    **dict.fromkeys(
        (
            *("best-weights", "distinct-candidates", "fixed-candidates", "fixed-constants", "fixed-norms"),
            *("hidden-layers", "small-steps"),
        ),
        lambda dims, run: True,
    ),
    "parameters-in-range": _is_in_range,
    "no-split-left-out": lambda dims, run: not np.any(run.records.left_out),
    "wide-network": _is_wide,
    "rewards-in-range": lambda dims, run: np.all(np.abs(run.records.regret) <= 1 + 1e-6),
    "random-splits": lambda dims, run: int(run.params.split_rule) == RANDOM_SPLIT,
    "merges-experts": lambda dims, run: (
        1 <= run.params.max_active <= run.params.num_experts and run.params.num_experts >= 2
    ),
}
statement = functools.partial(declarations.statement, holds=HOLDS)
