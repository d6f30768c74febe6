"""Theorem 1: the expected error under Algorithm 1."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, experiments, interventions, theory
from moe_theory.edge.experiments import BY_EXPLORED, BY_SCALE, ROUTED_ROUNDS, final_error
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import Criterion, bound, equality, limit_rate, ordering, probability

RATIO = theory.overparameterization_ratio(experiments.FIGURE_3_DIMS.num_features, experiments.FIGURE_3_DIMS.num_samples)
LEAST_GAIN = 0.05  # our reading of a "significantly" smaller error


def below(formula: Callable, floor: Callable, trivial: Callable = experiments.task_gap) -> Criterion:
    """Return the bound by (23), or its correction, for each replicate's loads. `floor` is a function of the gaps."""

    def value(run) -> np.ndarray:
        pool_gaps = experiments.gaps_of(run)
        loads = experiments.loads_of(run)
        explored_loads = loads[experiments.explored_record(run)]  # loads in the first record from T1 on
        num_routed = run.rounds[-1] - run.state.dropped
        lowest = np.asarray(floor(pool_gaps))
        return np.asarray(formula(pool_gaps, RATIO, loads[-1], explored_loads, round=num_routed, floor=lowest))

    return bound(at_most=value, margin=0.02, trivial=trivial)


# The final error of task-independent routing with the same loads.
blind_error = experiments.exact_error_at(experiments.FIGURE_3_ROUNDS)


def late_errors(run) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean error of the tasks past T1, with the models at T and with those at T1 (B,)."""
    at_t1 = experiments.explored_record(run)
    experts = run.records.experts.astype(np.float64)
    residuals = run.records.residuals.astype(np.float64)
    loads = run.records.loads.astype(np.float64)
    squared = run.records.squared_error.astype(np.float64)
    change = experts[-1] - experts[at_t1]
    squared_change = np.sum(change**2, axis=1)
    # A model that moves by D changes the squared errors of its c tasks by 2 D.u + c |D|^2, where u sums their
    # residuals.
    early_rise = 2 * np.sum(change * residuals[at_t1], axis=(0, 1)) + np.sum(loads[at_t1] * squared_change, axis=0)
    late_error = squared[-1] - squared[at_t1] - early_rise
    late_loads = loads[-1] - loads[at_t1]
    late_residuals = residuals[-1] - residuals[at_t1] - loads[at_t1][:, None] * change  # with the models at T
    # How much the late tasks' errors change if the models at T1 replace those at T.
    change_back = -2 * np.sum(change * late_residuals, axis=(0, 1)) + np.sum(late_loads * squared_change, axis=0)
    num_late = late_loads.sum(axis=0)
    return late_error / num_late, (late_error + change_back) / num_late


ROUTES_MARGIN = 0.01  # share of the expectation, which ignores how routes depend on the features

THEOREM_1 = statement("theorem-1", module=__name__)
THEOREM_1.charitable(
    "theorem-1.any-constant", BY_EXPLORED, below(theory.theorem_1, lambda gaps: 2 * gaps.task_gap, trivial=blind_error)
)(final_error)
THEOREM_1.replacement(
    "theorem-1.early-tasks-keep-their-error",
    BY_EXPLORED,
    below(corrected.theorem_1, floor=lambda gaps: gaps.within_gap),
    hypotheses=["few-misrouted"],
)(final_error)

AT_ROUTED = np.array(ROUTED_ROUNDS) - 1  # rows of these rounds in the records
THEOREM_1.replacement(
    "theorem-1.given-routes",
    experiments.ROUTED,
    equality(lambda run: experiments.error_given_routes(run)[AT_ROUTED], margin=ROUTES_MARGIN),
    labels=[f"t = {time}" for time in ROUTED_ROUNDS],
)(lambda run: run.records.flushed[AT_ROUTED].astype(np.float64))

FLOOR = statement("theorem-1-floor", module=__name__)
FLOOR.cite("theorem-1.given-routes", role="corrected")
FLOOR.literal(
    "theorem-1.generalization-error",
    BY_EXPLORED,
    below(theory.theorem_1, floor=lambda gaps: gaps.within_gap),
    instead="theorem-1.early-tasks-keep-their-error",
)(final_error)
GAP_INSIDE = limit_rate(at_least=4, margin=experiments.MARGIN)


@FLOOR.intervention("theorem-1-floor.own-kind", interventions.OWN_KIND, GAP_INSIDE)
@FLOOR.suspect("theorem-1-floor.of-the-set", interventions.OF_THE_SET, GAP_INSIDE)
@FLOOR.charitable("theorem-1-floor.excess", BY_SCALE, GAP_INSIDE)
def excess(run) -> np.ndarray:
    loads = experiments.loads_of(run)
    explored_loads = loads[experiments.explored_record(run)]
    num_routed = run.records.loads[-1].sum(axis=0)
    ratio = theory.overparameterization_ratio(experiments.LIMIT.dims.num_features, experiments.LIMIT.dims.num_samples)
    without_floor = theory.theorem_1(experiments.gaps_of(run), ratio, loads[-1], explored_loads, round=num_routed)
    return run.records.squared_error[-1] / num_routed - np.asarray(without_floor)


THEOREM_1_LIMIT = statement("theorem-1-limit", module=__name__)
THEOREM_1_LIMIT.cite("theorem-1.given-routes", role="corrected")


@THEOREM_1_LIMIT.intervention("theorem-1-limit.own-kind", interventions.OWN_KIND, GAP_INSIDE)
@THEOREM_1_LIMIT.suspect("theorem-1-limit.of-the-set", interventions.OF_THE_SET, GAP_INSIDE)
@THEOREM_1_LIMIT.charitable("theorem-1-limit.late-error", BY_SCALE, GAP_INSIDE)
def late_error(run) -> np.ndarray:
    return late_errors(run)[0]


@THEOREM_1_LIMIT.literal("theorem-1-limit.long-run", experiments.LONG, probability(at_least=0.5))
def reaches_floor(run) -> np.ndarray:
    return late_error(run) <= np.asarray(experiments.gaps_of(run).within_gap)


GAIN = statement("theorem-1-gain", module=__name__)
GAIN.cite("theorem-1.given-routes", role="corrected")
clearly_below_blind = ordering(below=lambda run: (1 - LEAST_GAIN) * blind_error(run))
BY_NEAREST = experiments.NEAREST.over("num_experts", *experiments.PAST_EXPLORATION)
GAIN.competitor("theorem-1-gain.nearest", BY_NEAREST, clearly_below_blind)(final_error)
GAIN.charitable("theorem-1.beats-blind-routing", BY_EXPLORED, clearly_below_blind)(final_error)
