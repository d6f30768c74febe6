"""Proposition 3: fixed gates, and their routing."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.experiments import UNLIKELY
from moe_theory.continual.statements.proposition_1 import claim_competitors
from moe_theory.continual.statements.setting import FEWER_EXPERTS, MORE_EXPERTS, statement
from moe_theory.core.routes import own_share
from moe_theory.verification.statement import bound, equality, probability, ranged

MANY = experiments.SPECIALIZATION.over(experiments.MANY_SMALLEST)
FEW = experiments.SPECIALIZATION.over(experiments.FEW_SMALLEST)
AT_FIGURE_2 = experiments.SPECIALIZATION.over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2)

TERMINATION = statement("proposition-3-termination", module=__name__)
TASKS = statement("proposition-3-more-experts", module=__name__)
CLUSTERS = statement("proposition-3-fewer-experts", module=__name__)
CLUSTERS.cite("proposition-3.leader", role="corrected")
CLUSTERS.cite("proposition-3.inside-own", "proposition-3.uniform-own", role="ours")


@TERMINATION.charitable("proposition-3.time", experiments.LIMIT_MANY, experiments.LIKELY)
@TERMINATION.charitable("proposition-3.time-clusters", experiments.LIMIT_FEW, experiments.LIKELY)
def is_soon_terminated(run) -> np.ndarray:
    return run.state.state.terminated


claim_competitors(
    is_soon_terminated,
    {"proposition-3.time": TERMINATION, "proposition-3.time-clusters": TERMINATION},
    {
        "tiny": interventions.TINY,  # Gamma = sigma_0^6, far below the gap of any two outputs
        "habit": interventions.HABIT,  # a router that always takes the first expert
    },
)


@TERMINATION.ours("proposition-3.time-own", AT_FIGURE_2, probability(at_least=1 - experiments.FAILURE))
def is_terminated(run) -> np.ndarray:
    return run.records.terminated[experiments.stage_rounds(run.params, experiments.T2_POWER)]


def is_fixed(run) -> np.ndarray:
    """Return which arrivals are past T2, with fixed gates and a set that is not empty (T, B)."""
    is_past_t2 = run.rounds > experiments.stage_rounds(run.params, experiments.T2_POWER)
    return run.records.terminated & is_past_t2[:, None] & (run.records.set_size >= 1)


def share(happens: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean(happens, axis=0, dtype=np.float64))


@ranged(low=0, high=experiments.FAILURE)
def tolerated_outside(run) -> np.ndarray:
    return experiments.FAILURE * share(is_fixed(run))


@TASKS.charitable("proposition-3.inside-tasks", experiments.LIMIT_MANY, UNLIKELY, hypotheses=MORE_EXPERTS)
@CLUSTERS.charitable("proposition-3.inside-clusters", experiments.LIMIT_FEW, UNLIKELY, hypotheses=FEWER_EXPERTS)
@TASKS.intervention(
    "proposition-3.inside-tasks-apart", interventions.QUIET_APART_MANY, UNLIKELY, hypotheses=MORE_EXPERTS
)
@CLUSTERS.intervention(
    "proposition-3.inside-clusters-apart", interventions.QUIET_APART_FEW, UNLIKELY, hypotheses=FEWER_EXPERTS
)
@TASKS.suspect("proposition-3.inside-tasks-quiet", interventions.QUIET_MANY, UNLIKELY, hypotheses=MORE_EXPERTS)
@CLUSTERS.suspect("proposition-3.inside-clusters-quiet", interventions.QUIET_FEW, UNLIKELY, hypotheses=FEWER_EXPERTS)
def is_soon_outside(run) -> np.ndarray:
    return run.state.was_outside


@TASKS.ours("proposition-3.inside-own", AT_FIGURE_2, bound(at_most=tolerated_outside))
@ranged(low=0, high=1)
def outside_share(run) -> np.ndarray:
    return share(is_fixed(run) & ~run.records.is_inside)


def is_contested(run) -> np.ndarray:
    return is_fixed(run) & (run.records.set_size >= 2)


def even_share(run) -> np.ndarray:
    return share(is_contested(run) / np.maximum(run.records.set_size, 1))


def bounded_share(run) -> np.ndarray:
    """Return a bound on the leaders' share: in each contested arrival 1/|M_n| plus the set's gap over lambda (B,)."""
    gap = run.records.own_gap.astype(np.float64) / float(run.params.perturbation_scale)
    return share(is_contested(run) * np.minimum(1 / np.maximum(run.records.set_size, 1) + gap, 1))


EVEN = equality(even_share, margin=0.1)  # share of the even share 1/|M_n|


@TASKS.literal("proposition-3.uniform-tasks", MANY, EVEN, hypotheses=MORE_EXPERTS, instead="proposition-3.leader")
@CLUSTERS.literal("proposition-3.uniform-clusters", FEW, EVEN, hypotheses=FEWER_EXPERTS, instead="proposition-3.leader")
@TASKS.ours("proposition-3.uniform-own", AT_FIGURE_2, EVEN, instead="proposition-3.leader")
@TASKS.replacement(
    "proposition-3.leader",
    experiments.SPECIALIZATION.over(
        experiments.MANY_SMALLEST + experiments.FEW_SMALLEST + experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2
    ),
    bound(at_most=bounded_share, trivial=lambda run: share(is_contested(run))),
)
def leader_share(run) -> np.ndarray:
    return share(is_contested(run) & run.records.led)


@ranged(low=0, high=1)
def reduced_share(run) -> np.ndarray:
    return own_share(run.records.task, run.records.reduced_expert, run.state.pool.clusters)


AS_REDUCED = equality(reduced_share, margin=0.05, scale=1.0)  # the margin is a share of all arrivals


@TASKS.replacement(
    "proposition-3.reduced-tasks",
    experiments.DRIVE_GRID.over(experiments.DRIVES_MANY),
    AS_REDUCED,
    hypotheses=MORE_EXPERTS,
)
@CLUSTERS.replacement(
    "proposition-3.reduced-clusters",
    experiments.DRIVE_GRID.over(experiments.DRIVES_FEW),
    AS_REDUCED,
    hypotheses=FEWER_EXPERTS,
)
@ranged(low=0, high=1)
def full_share(run) -> np.ndarray:
    return own_share(run.records.task, run.records.expert, run.state.pool.clusters)
