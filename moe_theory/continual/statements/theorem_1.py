"""Theorem 1: bounds from the loads, with more experts than tasks."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.setting import MORE_EXPERTS, statement
from moe_theory.verification.region import Size
from moe_theory.verification.statement import bound, equality, ranged

EARLY = (20, 40)  # the recorded rounds up to T1 = 40 at M = 20
JUST_AFTER = (50, 60, 70, 80, 90, 100)  # rounds soon after T1 = 40, where the mean comes nearest to (20)
AFTER = (50, 70, 100)  # the rounds of these at which the effect of routing is compared
ROUNDS = (100, 200, 500, 1000, 2000)  # rounds at which the theorem is tested, up to the paper's T
BY_ROUNDS = experiments.by_rounds(experiments.FIGURE_2, experiments.MANY, *ROUNDS)
EXPLORED = experiments.SPECIALIZATION.over(experiments.MANY_SMALLEST + experiments.MANY_FIGURE_2)
ROUTES_MARGIN = 0.02  # share of the expectation, which ignores how routes depend on the features

FORGETTING = statement("theorem-1-forgetting", module=__name__)
DECAY = statement("theorem-1-forgetting-decay", module=__name__)
GENERALIZATION_ERROR = statement(
    "theorem-1-generalization-error",
    module=__name__,
    free=(*experiments.FREE, Size("num_features", low=3, high=12), Size("num_samples", low=1, high=9)),
)


def explored_pairs(run) -> tuple[np.ndarray, np.ndarray]:
    """Return whether an arrival's expert up to T1 has served a task, and the squared distance to that task (T1, B)."""
    rows = slice(experiments.stage_rounds(run.params))
    truths = np.moveaxis(run.state.pool.truths, -1, 0).astype(np.float64)
    distances = np.sum((truths[:, :, None] - truths[:, None]) ** 2, axis=-1)
    previous = experiments.previous_tasks(run)[rows]
    has_met = previous >= 0  # elsewhere `previous` is -1, and its distance is not used
    return has_met, distances[np.arange(len(truths)), previous, run.records.task[rows]]


def expected_distance(run) -> np.ndarray:
    has_met, _ = explored_pairs(run)
    return has_met.mean(axis=0) * experiments.task_gap(run)


@ranged(low=0, high=1)
def even_share(run) -> np.ndarray:
    has_met, _ = explored_pairs(run)
    return has_met.mean(axis=0) / run.dims.num_tasks


@FORGETTING.replacement("theorem-1.repeats", EXPLORED, bound(at_most=even_share), hypotheses=["norm-not-squared"])
@ranged(low=0, high=1)
def share_of_repeats(run) -> np.ndarray:
    rows = slice(experiments.stage_rounds(run.params))
    return np.mean(experiments.repeats_of(run)[rows], axis=0)


@FORGETTING.step("theorem-1.equation-43", EXPLORED, bound(at_most=expected_distance), instead="theorem-1.repeats")
def met_distance(run) -> np.ndarray:
    has_met, distance = explored_pairs(run)
    return np.mean(np.where(has_met, distance, 0), axis=0)


def frozen_forgetting(run) -> np.ndarray:
    t1 = experiments.stage_rounds(run.params)
    return experiments.metric("forgetting", t1)(run) * (t1 - 1) / (np.array(ROUNDS)[:, None] - 1)


FORGETTING.charitable(
    "theorem-1.forgetting",
    experiments.by_rounds(experiments.FIGURE_2, experiments.MANY, *EARLY),
    bound(at_most=experiments.printed_metric("forgetting", *EARLY)),
    instead="theorem-1.forgetting-given-routes",
)(experiments.metric("forgetting", *EARLY))
DECAY.charitable(
    "theorem-1.forgetting-decay",
    BY_ROUNDS,
    equality(frozen_forgetting, margin=0.05, scale=lambda run: experiments.task_gap(run)[None]),
    instead="theorem-1.late-forgetting-given-routes",
)(experiments.metric("forgetting", *ROUNDS))
GENERALIZATION_ERROR.charitable(
    "theorem-1.generalization-error",
    BY_ROUNDS,
    bound(at_most=experiments.printed_metric("generalization_error", *ROUNDS)),
)(experiments.metric("generalization_error", *ROUNDS))
GENERALIZATION_ERROR.literal(
    "theorem-1.generalization-error-early",
    experiments.by_rounds(experiments.JUST_EXPLORED, experiments.MANY, *JUST_AFTER),
    bound(at_most=experiments.printed_metric("generalization_error", *JUST_AFTER)),
    instead="theorem-1.error-given-routes",
)(experiments.metric("generalization_error", *JUST_AFTER))

for case, id, name, rounds in (
    (FORGETTING, "theorem-1.forgetting-given-routes", "forgetting", EARLY),
    (DECAY, "theorem-1.late-forgetting-given-routes", "forgetting", AFTER),
    (GENERALIZATION_ERROR, "theorem-1.error-given-routes", "generalization_error", AFTER),
):
    runs = experiments.by_rounds(experiments.JUST_EXPLORED, experiments.MANY, *rounds)
    case.replacement(id, runs, equality(experiments.expected_metric(name, *rounds), margin=ROUTES_MARGIN))(
        experiments.metric(name, *rounds)
    )

ALONG_FEW_SAMPLES = equality(lambda run: experiments.given_routes_of(run).forgetting[-1], margin=ROUTES_MARGIN)
FORGETTING.ours("theorem-1.forgetting-few-samples", experiments.FEW_SAMPLES.at("M = 12"), ALONG_FEW_SAMPLES)(
    experiments.final("forgetting")
)
FORGETTING.ours("theorem-1.forgetting-expected-costs", interventions.EXPECTED_COSTS.at("M = 12"), ALONG_FEW_SAMPLES)(
    experiments.final("forgetting")
)

REDUCED = equality(experiments.final("reduced_error"), margin=0.05, scale=experiments.task_gap)
GENERALIZATION_ERROR.replacement(
    "theorem-1.error-reduced", experiments.DRIVE_GRID.over(experiments.DRIVES_MANY), REDUCED, hypotheses=MORE_EXPERTS
)(experiments.final("generalization_error"))
