"""Hypotheses of statements about networks. Their sentences are in `paper.toml`."""

import functools

import numpy as np

from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.verification import statement as declarations

LOW_DRIVE, HIGH_DRIVE = FREEZING_DRIVES  # a router freezes by itself above HIGH_DRIVE, but not below LOW_DRIVE


def _median_drive(run) -> float:
    return float(np.median(np.asarray(run.records.drive)))


HOLDS = {
    "exploration-ends": lambda dims, run: run.params.num_experts / run.params.learning_rate < run.params.num_rounds,
    "three-types": lambda dims, run: dims.num_classes == 3,
    "short-delays": lambda dims, run: run.params.max_transfer_delay + run.params.max_execution_delay <= 4,  # d_u
    "small-gate-steps": lambda dims, run: bool(run.params.terminate) or _median_drive(run) < LOW_DRIVE,
    "large-gate-steps": lambda dims, run: bool(run.params.terminate) or _median_drive(run) > HIGH_DRIVE,
}
statement = functools.partial(declarations.statement, holds=HOLDS)
