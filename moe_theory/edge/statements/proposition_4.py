"""Proposition 4: the expected error of offloading that ignores the task."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, experiments, theory
from moe_theory.edge.experiments import FASTEST, FIGURE_3_DIMS, NEAREST
from moe_theory.edge.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.statement import equality

STEADY = 1000  # the first of the rounds over which errors are averaged, because a single round is noisy
BY_NEAREST = NEAREST.over("num_experts", 10, 50)
BY_FASTEST = FASTEST.over("num_experts", 10, 50)


def steady(run, errors: np.ndarray) -> np.ndarray:
    """Return the mean of errors over the recorded rounds from `STEADY` on (B,)."""
    return errors[run.rounds >= STEADY].astype(np.float64).mean(axis=0)


def observed(run) -> np.ndarray:
    return steady(run, run.records.flushed)


def predicted_by(formula: Callable) -> Callable[[Run], np.ndarray]:
    return lambda run: steady(run, experiments.proposition_4(run, FIGURE_3_DIMS, formula))


def exact(run) -> np.ndarray:
    return steady(run, experiments.exact_errors(run))


PROPOSITION_4 = statement("proposition-4", module=__name__)
for policy, selection in (("nearest", BY_NEAREST), ("fastest", BY_FASTEST)):
    PROPOSITION_4.charitable(
        f"proposition-4.{policy}",
        selection,
        equality(predicted_by(theory.proposition_4), margin=0.02),
        hypotheses=["isotropic-features"],
        instead=f"exact.{policy}",
    )(observed)
    PROPOSITION_4.replacement(f"exact.{policy}", selection, equality(exact, margin=0.02))(observed)
PROPOSITION_4.replacement(
    "proposition-4.nearest-own-task",
    BY_NEAREST,
    equality(predicted_by(corrected.proposition_4), margin=0.02),
    hypotheses=["isotropic-features"],
    instead="exact.nearest",
)(observed)

LIMIT = statement("proposition-4-limit", module=__name__)
LIMIT.charitable(
    "proposition-4.limit",
    NEAREST.over("num_experts", 10),
    equality(experiments.task_gap, margin=0.02),
    instead="exact.nearest",
)(observed)
