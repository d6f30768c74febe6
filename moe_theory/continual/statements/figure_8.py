"""Sentences about Fig. 8: how the threshold of termination affects loads."""

import numpy as np

from moe_theory.continual.experiments import FIGURE_8, THRESHOLDS, effective_experts, stage_rounds
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import bound, equality, ordering, ranged

CELLS = tuple(THRESHOLDS)
LARGE = CELLS[:2]  # Gamma > lambda
SMALL = CELLS[2:]  # Gamma <= lambda
RUNS = FIGURE_8.together(*CELLS)
NEARLY_ALWAYS = 0.95  # our reading of a decision that lambda cannot change
LOAD_MARGIN = 0.05  # share of the number of experts in use
SHARE_MARGIN = 0.1  # share of the even share 1/|M_k|

IMBALANCE = statement("figure-8-imbalance", module=__name__)
BALANCE = statement("figure-8-balance", module=__name__)


def is_late(run) -> np.ndarray:
    """Return which arrivals are past termination, or past T1 if gates are never fixed (T, B)."""
    terminated = run.records.terminated
    return terminated | (~terminated[-1] & (run.rounds > stage_rounds(run.params))[:, None])


def evenness(run) -> np.ndarray:
    """Return how many experts are in use past termination, from 1 to M (B,)."""
    late = is_late(run)
    experts = range(FIGURE_8.dims.max_experts)
    loads = np.stack([np.sum(late & (run.records.expert == expert), axis=0) for expert in experts])
    return effective_experts(loads[None].astype(np.float64))[0]


def evenness_of_small(*runs) -> np.ndarray:
    return np.stack([evenness(run) for run in runs[len(LARGE) :]])


@IMBALANCE.literal(
    "figure-8.leader", FIGURE_8.over(LARGE), bound(at_least=lambda run: NEARLY_ALWAYS * np.mean(is_late(run), axis=0))
)
def share_of_leaders(run) -> np.ndarray:
    return np.mean(is_late(run) & run.records.led_all, axis=0)


def less_than_small(*runs) -> np.ndarray:
    """Return a number of experts in use that is visibly below the number at small thresholds (2, B)."""
    return (1 - LOAD_MARGIN) * evenness_of_small(*runs)


@IMBALANCE.figure(
    "figure-8.imbalance",
    RUNS,
    ordering(below=less_than_small),
    labels=["(a) below (c)", "(b) below (d)"],
    instead="figure-8.same-loads",
)
@IMBALANCE.replacement(
    "figure-8.same-loads", RUNS, equality(evenness_of_small, margin=LOAD_MARGIN), labels=["(a) and (c)", "(b) and (d)"]
)
def evenness_of_large(*runs) -> np.ndarray:
    return np.stack([evenness(run) for run in runs[: len(LARGE)]])


def is_contested(run) -> np.ndarray:
    return is_late(run) & (run.records.set_size >= 2)


@ranged(low=0, high=1)
def even_share(run) -> np.ndarray:
    return np.mean(is_contested(run) / np.maximum(run.records.set_size, 1), axis=0)


@BALANCE.literal("figure-8.balance", FIGURE_8.over(SMALL), equality(even_share, margin=SHARE_MARGIN))
@ranged(low=0, high=1)
def leader_share(run) -> np.ndarray:
    return np.mean(is_contested(run) & run.records.led, axis=0)
