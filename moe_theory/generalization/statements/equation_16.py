"""Eq. (16): the number of masks on 2m inputs, in the proof of Theorem 1."""

import math

import numpy as np

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.experiments import EXACTLY, FORMULA, LABELINGS, all_cells, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import alike

EQUATION_16 = statement("equation-16", module=__name__)
BY_SIZES = all_cells(LABELINGS)
ALL_SIZES = LABELINGS.together(*LABELINGS.cells)
LABELS = [*LABELINGS.cells, "all masks at T = 2"]


@EQUATION_16.charitable("equation-16.masks", BY_SIZES, experiments.TO_ROUNDING)
def mask_excess(run) -> np.ndarray:
    experts, active, _ = experiments.sizes_of(run.params)
    samples = np.arange(1, LABELINGS.dims.max_samples // 2 + 1)  # m, for 2m points
    bound = theory.equation_16(experts, active, samples[:, None], shown(run, "masks", "natarajan"))
    log_counts = shown(run, "masks", "log_growth")[1::2]  # growth on 2, 4, ... points
    return excess(log_counts, np.asarray(bound)).max(axis=0)


def cover_count(num_points: int, num_features: int) -> int:
    """Return the number of ways in which linear routers can split points in general position between two experts.

    Source: T. Cover, 1965. Half-spaces through the origin make 2 sum_{i<d} binom(n - 1, i) splits.
    """
    return 2 * sum(math.comb(num_points - 1, index) for index in range(num_features))


def cover_excesses() -> np.ndarray:
    """Return the largest excess of log counts over (16) with d_N = d, and over the corrected count."""
    excesses_printed = [0.0]
    excesses_corrected = [0.0]
    for samples in (1, 2, 5, 10, 30, 100, 1000):
        for features in range(1, 17):
            log_count = math.log(cover_count(2 * samples, features))
            excesses_printed.append(log_count - float(theory.equation_16(2, 1, samples, natarajan=features)))
            patterns = corrected.log_mask_patterns(2, 1, 2 * samples, features)
            excesses_corrected.append(log_count - float(patterns))
    return np.array([max(excesses_printed), max(excesses_corrected)])


@EQUATION_16.charitable("equation-16.cover-count", FORMULA, EXACTLY, labels=["T = 2, k = 1"])
def cover_excess(run) -> np.ndarray:
    printed, _ = cover_excesses()
    return alike(run, printed)


@EQUATION_16.ours("equation-16.signs-of-forms", ALL_SIZES, experiments.TO_ROUNDING, labels=LABELS)
def excess_over_signs(*runs) -> np.ndarray:
    points = np.arange(1, LABELINGS.dims.max_samples + 1)
    excesses = []
    for run in runs:
        experts, active, _ = experiments.sizes_of(run.params)
        bound = np.asarray(corrected.log_mask_patterns(experts, active, points, LABELINGS.dims.num_features))
        excesses.append(excess(shown(run, "masks", "log_growth"), bound[:, None]).max(axis=0))
    _, largest_at_two_experts = cover_excesses()
    return np.stack([*excesses, alike(runs[0], largest_at_two_experts)])
