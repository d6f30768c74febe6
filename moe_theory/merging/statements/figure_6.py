"""Fig. 6: slots until 20 feasible leaves, and the time to choose among them on this machine."""

import numpy as np

from moe_theory.merging import uncertainty
from moe_theory.merging.experiments import MOSTLY, ROUTED_EXPERTS, ROUTING, STEPS, increases, routed_cell
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import bound

LEAVES = 20
MOST_SECONDS = 0.4e-3  # duration of one choice

FIGURE_6 = statement("figure-6", module=__name__)
for form, id in ((uncertainty.DIAGONAL, "figure-6.routing-time"), (uncertainty.EXACT, "figure-6.routing-time-exact")):
    largest = ROUTING.at(routed_cell(ROUTED_EXPERTS[-1], form))
    FIGURE_6.literal(id, largest, MOSTLY)(lambda run: seconds(run) < MOST_SECONDS)


def seconds(run) -> np.ndarray:
    return np.asarray(run.records.seconds[0], np.float64)


FEW_AND_MANY = ROUTING.together(routed_cell(ROUTED_EXPERTS[0]), routed_cell(ROUTED_EXPERTS[-1]))
PAIR = f"K = {ROUTED_EXPERTS[0]} and {ROUTED_EXPERTS[-1]}"


@FIGURE_6.charitable("figure-6.routing-grows", FEW_AND_MANY, MOSTLY, labels=[PAIR])
def takes_longer(*runs) -> np.ndarray:
    return increases([seconds(run) for run in runs])


def first_slots(*runs) -> np.ndarray:
    """Return each run's first slot with `LEAVES` feasible leaves, or one past the last if there is none (V, B)."""
    slots = []
    for run in runs:
        has_leaves = np.asarray(run.records.num_active) >= LEAVES
        slots.append(np.where(has_leaves.any(axis=0), 1.0 + np.argmax(has_leaves, axis=0), 1.0 + len(has_leaves)))
    return np.stack(slots)


ALL_SIZES = STEPS.together(*STEPS.cells)
LARGER = list(STEPS.cells)[1:]


@FIGURE_6.ours("figure-6.steps-grow", ALL_SIZES, bound(at_least=0), labels=LARGER, hypotheses=["random-splits"])
def needs_more_steps(*runs) -> np.ndarray:
    return np.diff(first_slots(*runs), axis=0)
