"""Lemma 3: an expert whose task repeats."""

import numpy as np

from moe_theory.continual.experiments import FEW, HISTORY, HISTORY_ONE_SAMPLE, SINGLE, repeats_of, truth_length
from moe_theory.continual.statements.setting import statement
from moe_theory.continual.theory import error_contraction
from moe_theory.verification.statement import equality, identity

LEMMA_3 = statement("lemma-3", module=__name__)


@LEMMA_3.charitable("lemma-3.one-sample", HISTORY_ONE_SAMPLE.at(FEW), identity(within=1e-3), labels=[FEW])
@LEMMA_3.literal("lemma-3", HISTORY.at(FEW), identity(within=1e-3), labels=[FEW], instead="lemma-3.contraction")
def largest_repeat_move(run) -> np.ndarray:
    largest = np.max(np.where(repeats_of(run), run.records.update_norm, 0), axis=0)
    return largest / truth_length(run)


def contracted_errors_before_repeats(run) -> np.ndarray:
    # A move is orthogonal to the error after it, so the squared error before it is the sum of both squares.
    before = run.records.error.astype(np.float64) + run.records.update_norm.astype(np.float64) ** 2
    contraction = error_contraction(HISTORY.dims.num_features, HISTORY.dims.num_samples)
    return contraction * np.sum(np.where(repeats_of(run), before, 0), axis=0)


@LEMMA_3.replacement(
    "lemma-3.contraction", HISTORY.at(SINGLE), equality(contracted_errors_before_repeats, margin=0.02), labels=[SINGLE]
)
def errors_after_repeats(run) -> np.ndarray:
    return np.sum(np.where(repeats_of(run), run.records.error.astype(np.float64), 0), axis=0)
