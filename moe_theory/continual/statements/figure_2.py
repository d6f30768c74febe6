"""Sentences about Fig. 2: termination, many experts against one, and surplus experts."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Experiment, Selection
from moe_theory.verification.statement import bound, ordering, probability

MOE_SIZES = (5, 10, 20)
BY_SIZE = tuple(f"M = {size}" for size in MOE_SIZES)
TERMINATED = [experiments.cell_name(size) for size in MOE_SIZES]
ENDLESS = [experiments.cell_name(size, terminate=False) for size in MOE_SIZES]


def terminated_and(others: Sequence[str], experiment: Experiment = experiments.FIGURE_2) -> Selection:
    """Return the runs of all sizes with termination, then those of other cells."""
    return dataclasses.replace(experiment.together(*TERMINATED, *others), labels=BY_SIZE)


TERMINATED_AND_ENDLESS = terminated_and(ENDLESS)
AGAINST_ONE = terminated_and([experiments.SINGLE])
BLIND_AGAINST_ONE = terminated_and([experiments.SINGLE], interventions.FIGURE_2_BLIND)
TEN_AND_TWENTY = experiments.FIGURE_2.together(experiments.cell_name(10), experiments.cell_name(20))
BLIND_TEN_AND_TWENTY = interventions.FIGURE_2_BLIND.together(experiments.cell_name(10), experiments.cell_name(20))
LONG_SIGNALS = interventions.FIGURE_2_LONG.together(experiments.cell_name(10), experiments.cell_name(20))
METRICS = ("forgetting", "generalization_error")
METRIC_LABELS = ["forgetting", "generalization error"]
FINAL_FORGETTING = experiments.final("forgetting")
FINAL_ERROR = experiments.final("generalization_error")
ALMOST_ZERO = 0.05  # our reading of "almost zero": share of one expert's error, or of the task gap

RISE = statement("figure-2-rise", module=__name__)
ZERO = statement("figure-2-almost-zero", module=__name__)
WORSE = statement("figure-2-endless", module=__name__)
SWINGS = statement("figure-2-oscillation", module=__name__)
MISROUTING = statement("figure-2-misrouting", module=__name__)
AGAINST_SINGLE = statement("figure-2-single-expert", module=__name__)
SLOWER = statement("figure-2-more-experts-slower", module=__name__)
NO_BETTER = statement("figure-2-more-experts-no-better", module=__name__)

Measure = Callable[[Run], np.ndarray]


def in_first_runs(measure: Measure) -> Callable[..., np.ndarray]:
    """Return a measure with one component for each of three sizes, with termination."""
    return lambda *runs: np.stack([measure(run) for run in runs[: len(MOE_SIZES)]])


def in_other_runs(measure: Measure) -> Callable[..., np.ndarray]:
    """Return a measure of the other runs: one component for each size, or one for a single expert."""
    return lambda *runs: np.stack([measure(run) for run in runs[len(MOE_SIZES) :]])


def second_half(run, name: str) -> np.ndarray:
    return getattr(run.records, name)[run.rounds > experiments.FIGURE_2.num_rounds // 2].astype(np.float64)


def value_range(name: str) -> Measure:
    """Return the measure of a metric's largest minus smallest value in the second half."""
    return lambda run: np.ptp(second_half(run, name), axis=0)


def swing(name: str) -> Measure:
    """Return the measure of a metric's absolute changes in the second half, minus its net change there."""

    def beyond_change(run) -> np.ndarray:
        steps = np.diff(second_half(run, name), axis=0)
        return np.abs(steps).sum(axis=0) - np.abs(steps.sum(axis=0))  # 0 for a metric that only falls

    return beyond_change


def mean_move(run) -> np.ndarray:
    return second_half(run, "update_norm").mean(axis=0)


def both_metrics_at(round: int) -> Measure:
    return lambda run: np.concatenate([experiments.metric(name, round)(run) for name in METRICS])


def excess_error(run) -> np.ndarray:
    error = experiments.metric("generalization_error")(run)
    return (error - error[-1]).T.mean(axis=1)  # over rounds. The transposition decides the order of the sum


# A claim such as `RISE.figure(id, runs, criterion)(measure)` says that the measure meets the criterion.
below_end_of_exploration = ordering(below=both_metrics_at(40))  # T1, the end of exploration with M = 20
early = both_metrics_at(10)
at_end = both_metrics_at(experiments.FIGURE_2.num_rounds)
RISE.figure(
    "figure-2.rise", experiments.JUST_EXPLORED.at(experiments.MANY), below_end_of_exploration, labels=METRIC_LABELS
)(early)
RISE.competitor(
    "figure-2.rise-blind",
    interventions.JUST_EXPLORED_BLIND.at(experiments.MANY),
    below_end_of_exploration,
    labels=METRIC_LABELS,
)(early)
RISE.figure("figure-2.fall", experiments.FIGURE_2.at(experiments.MANY), below_end_of_exploration, labels=METRIC_LABELS)(
    at_end
)
RISE.competitor(
    "figure-2.fall-blind",
    interventions.FIGURE_2_BLIND.at(experiments.MANY),
    below_end_of_exploration,
    labels=METRIC_LABELS,
)(at_end)
forgetting_of_first = in_first_runs(FINAL_FORGETTING)
error_of_first = in_first_runs(FINAL_ERROR)
less_forgetting = ordering(below=in_other_runs(FINAL_FORGETTING))
less_error = ordering(below=in_other_runs(FINAL_ERROR))
WORSE.figure("figure-2.termination-forgetting", TERMINATED_AND_ENDLESS, less_forgetting)(forgetting_of_first)
WORSE.figure("figure-2.termination-generalization", TERMINATED_AND_ENDLESS, less_error)(error_of_first)
for suffix, name in (("forgetting", "forgetting"), ("generalization", "generalization_error")):
    smaller_range = ordering(below=in_other_runs(value_range(name)))
    SWINGS.figure(f"figure-2.range-{suffix}", TERMINATED_AND_ENDLESS, smaller_range)(in_first_runs(value_range(name)))
    smaller_swing = ordering(below=in_other_runs(swing(name)))
    SWINGS.literal(f"figure-2.oscillation-{suffix}", TERMINATED_AND_ENDLESS, smaller_swing)(in_first_runs(swing(name)))
smaller_move = ordering(below=in_other_runs(mean_move))
MISROUTING.figure("figure-2.misrouting", TERMINATED_AND_ENDLESS, smaller_move)(in_first_runs(mean_move))
AGAINST_SINGLE.competitor("figure-2.blind-forgetting", BLIND_AGAINST_ONE, less_forgetting)(forgetting_of_first)
AGAINST_SINGLE.competitor("figure-2.blind-generalization", BLIND_AGAINST_ONE, less_error)(error_of_first)
AGAINST_SINGLE.figure("figure-2.moe-forgetting", AGAINST_ONE, less_forgetting)(forgetting_of_first)
AGAINST_SINGLE.figure("figure-2.moe-generalization", AGAINST_ONE, less_error)(error_of_first)


def largest_tolerated(*runs) -> np.ndarray:
    single = runs[-1]
    largest = np.stack([ALMOST_ZERO * experiments.final(name)(single) for name in METRICS])
    return np.repeat(largest, len(MOE_SIZES), axis=0)  # one bound for each value of `both_final`


@ZERO.literal(
    "figure-2.almost-zero",
    AGAINST_ONE,
    bound(at_most=largest_tolerated),
    labels=[f"{name}, M = {size}" for name, size in itertools.product(METRIC_LABELS, MOE_SIZES)],
)
def both_final(*runs) -> np.ndarray:
    pairs = itertools.product(METRICS, runs[: len(MOE_SIZES)])
    return np.stack([experiments.final(name)(run) for name, run in pairs])


def ends_near_zero(*runs) -> np.ndarray:
    larger_metric = [np.maximum(FINAL_FORGETTING(run), FINAL_ERROR(run)) for run in runs]
    gaps = [experiments.task_gap(run) for run in runs]
    return np.stack(larger_metric) <= ALMOST_ZERO * np.stack(gaps)


ZERO.figure(
    "figure-2.almost-zero-median", experiments.FIGURE_2.together(*TERMINATED), probability(at_least=0.5), labels=BY_SIZE
)(ends_near_zero)


def excess_of_fewer(fewer, more) -> np.ndarray:
    return excess_error(fewer)


slower = ordering(below=lambda fewer, more: excess_error(more))
SLOWER.competitor("figure-2.more-experts-slower-blind", BLIND_TEN_AND_TWENTY, slower, labels=["mean over t"])(
    excess_of_fewer
)
SLOWER.literal("figure-2.more-experts-slower-long", LONG_SIGNALS, slower, labels=["mean over t"])(excess_of_fewer)
SLOWER.figure("figure-2.more-experts-slower", TEN_AND_TWENTY, slower, labels=["mean over t"])(excess_of_fewer)


def error_of_fewer(fewer, more) -> np.ndarray:
    return FINAL_ERROR(fewer)


no_worse = bound(at_most=lambda fewer, more: FINAL_ERROR(more), margin=0.05)  # relative
END_LABELS = experiments.at_rounds(experiments.FIGURE_2.num_rounds)
NO_BETTER.competitor(
    "figure-2.more-experts-no-better-below",
    interventions.FIGURE_2_BELOW.together(experiments.SINGLE, experiments.FEW),
    no_worse,
    labels=END_LABELS,
)(error_of_fewer)
NO_BETTER.literal(
    "figure-2.more-experts-just-above",
    interventions.FIGURE_2_ABOVE.together(*map(experiments.cell_name, interventions.JUST_ABOVE)),
    no_worse,
    labels=END_LABELS,
)(error_of_fewer)
NO_BETTER.figure("figure-2.more-experts-no-better", TEN_AND_TWENTY, no_worse, labels=END_LABELS)(error_of_fewer)
