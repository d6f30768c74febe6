"""Lemma 2: the tree's depth, even if the deepest leaf is always picked, and the steps of its proof."""

import numpy as np

from moe_theory.merging import corrected, experiments, theory
from moe_theory.merging.experiments import EXACTLY, TREES_BY_RATIO, by_ratio, computed, recorded, worst_excess
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import Runs, excess
from moe_theory.verification.statement import alike

TIMES = np.arange(3, 1025, dtype=float)

LEMMA_2 = statement("lemma-2", module=__name__, free=experiments.FREE_TREE)


@LEMMA_2.charitable("lemma-2.depth", by_ratio("deepest"), EXACTLY, instead="lemma-2.right-depth")
def depth_beyond(run) -> np.ndarray:
    return excess(recorded(run, "max_depth"), theory.depth_bound(int(run.rounds[-1]), run.params)).max(axis=0)


@LEMMA_2.step("lemma-2.intermediate", by_ratio("deepest"), EXACTLY, instead="lemma-2.right-depth")
def depth_beyond_step(run) -> np.ndarray:
    times = run.rounds[2:].astype(float)  # t/log(t/delta) has its minimum at e delta
    bound = theory.intermediate_depth_bound(times, run.params)
    return excess(recorded(run, "max_depth")[2:], np.reshape(bound, (-1, 1))).max(axis=0)


@LEMMA_2.replacement("lemma-2.right-depth", TREES_BY_RATIO, EXACTLY)
def depth_beyond_right(runs: Runs) -> np.ndarray:
    return worst_excess(runs, "deepest", "max_depth", corrected.depth_bound)


@LEMMA_2.replacement("lemma-2.simple-depth", TREES_BY_RATIO, EXACTLY)
def depth_beyond_simple(runs: Runs) -> np.ndarray:
    return worst_excess(runs, "deepest", "max_depth", corrected.simple_depth_bound)


@LEMMA_2.step("lemma-2.log-time", computed("largest shortfall"), EXACTLY, instead="lemma-2.log-time-right")
def shortfall_of_log_time(run) -> np.ndarray:
    return alike(run, np.log(TIMES[-1]) - np.log(TIMES).min())


@LEMMA_2.replacement("lemma-2.log-time-right", computed("largest excess"), EXACTLY)
def excess_of_log_time(run) -> np.ndarray:
    return alike(run, excess(-np.diff(TIMES / np.log(TIMES)), 0).max())


@LEMMA_2.step("lemma-2.log-ratio", computed("largest shortfall"), EXACTLY)
def shortfall_of_log_ratio(run) -> np.ndarray:
    ratios = np.linspace(0, 1, 1001)[1:-1]
    return alike(run, excess(1 - ratios, 2 * np.log(1 / ratios)).max())
