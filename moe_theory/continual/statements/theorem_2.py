"""Theorem 2: bounds from the loads, with fewer experts than tasks."""

import functools

from moe_theory.continual import corrected, experiments, interventions, theory
from moe_theory.continual.statements.setting import statement
from moe_theory.continual.statements.theorem_1 import REDUCED, ROUTES_MARGIN
from moe_theory.verification.statement import bound, equality
from moe_theory.verification.verdict import Role

EXPLORING = (5, 10)  # the recorded rounds up to T1 = 10 at M = 5
AFTER = (20, 50, 100)  # rounds soon after T1 at which the effect of routing is compared
ROUNDS = (100, 200, 500, 1000, 2000)  # rounds at which the theorem is tested, up to the paper's T
BY_ROUNDS = experiments.by_rounds(experiments.FIGURE_2, experiments.FEW, *ROUNDS)

EXPLORATION = statement("theorem-2-forgetting-exploration", module=__name__)
FORGETTING = statement("theorem-2-forgetting", module=__name__)
GENERALIZATION_ERROR = statement("theorem-2-generalization-error", module=__name__)

later_forgetting = experiments.metric("forgetting", *ROUNDS)
later_error = experiments.metric("generalization_error", *ROUNDS)
below_22 = bound(at_most=experiments.printed_metric("generalization_error", *ROUNDS, theorem=theory.theorem_2))
appendix = functools.partial(theory.theorem_2, form="appendix")

EXPLORATION.charitable(
    "theorem-2.exploration-forgetting",
    experiments.by_rounds(experiments.JUST_EXPLORED, experiments.FEW, *EXPLORING),
    bound(at_most=experiments.printed_metric("forgetting", *EXPLORING)),
    instead="theorem-2.exploration-given-routes",
)(experiments.metric("forgetting", *EXPLORING))
FORGETTING.literal(
    "theorem-2.forgetting",
    BY_ROUNDS,
    bound(at_most=experiments.printed_metric("forgetting", *ROUNDS, theorem=theory.theorem_2)),
)(later_forgetting)
FORGETTING.charitable(
    "theorem-2.forgetting-exponent",
    BY_ROUNDS,
    bound(at_most=experiments.printed_metric("forgetting", *ROUNDS, theorem=corrected.theorem_2)),
    instead="theorem-2.forgetting-given-routes",
)(later_forgetting)
GENERALIZATION_ERROR.charitable(
    "theorem-2.generalization-error", BY_ROUNDS, below_22, instead="theorem-2.error-given-routes"
)(later_error)
for role, suffix, experiment in (
    (Role.INTERVENTION, "sorted-gaussian", interventions.SORTED_LATER_GAUSSIAN),
    (Role.SUSPECT, "sorted", interventions.SORTED_LATER),
    (Role.SUSPECT, "gaussian", interventions.GAUSSIAN),
):
    runs = experiments.by_rounds(experiment, experiments.FEW, *ROUNDS)
    GENERALIZATION_ERROR.claim(f"theorem-2.generalization-error-{suffix}", runs, below_22, role=role)(later_error)
GENERALIZATION_ERROR.literal(
    "theorem-2.generalization-error-appendix",
    BY_ROUNDS,
    bound(at_most=experiments.printed_metric("generalization_error", *ROUNDS, theorem=appendix)),
)(later_error)
for case, id, name, rounds in (
    (EXPLORATION, "theorem-2.exploration-given-routes", "forgetting", EXPLORING),
    (FORGETTING, "theorem-2.forgetting-given-routes", "forgetting", AFTER),
    (GENERALIZATION_ERROR, "theorem-2.error-given-routes", "generalization_error", AFTER),
):
    runs = experiments.by_rounds(experiments.JUST_EXPLORED, experiments.FEW, *rounds)
    case.replacement(id, runs, equality(experiments.expected_metric(name, *rounds), margin=ROUTES_MARGIN))(
        experiments.metric(name, *rounds)
    )
GENERALIZATION_ERROR.replacement(
    "theorem-2.error-reduced", experiments.DRIVE_GRID.over(experiments.DRIVES_FEW), REDUCED
)(experiments.final("generalization_error"))
