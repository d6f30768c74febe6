"""Fig. 4: Tanbr against its rivals on trained models, and on rewards whose best weights are known."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.merging import policies
from moe_theory.merging.experiments import (
    FIXED_MERGES,
    LEARN_NOTHING,
    MONITORED,
    MOSTLY,
    RIVALS,
    SURFACE,
    TESTBEDS,
    lead,
    recorded,
)
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import Declared

OF_THE_PAPER = (policies.NUCB, policies.AVERAGE)
NOT_OF_THE_PAPER = tuple(rival for rival in RIVALS if rival not in OF_THE_PAPER)
IN_THE_PAPER = (*FIXED_MERGES, policies.NUCB)


@functools.cache
def ahead_by(gain: float) -> Callable[..., np.ndarray]:
    """Whether a run ends that much more accurate than each of some others (V, B)."""
    return lambda first, *others: np.stack([lead(first, rival) >= gain for rival in others])


def claim_gain(
    statement: Declared, id: str, mix: str, rivals: Sequence[str], gain: float, role: str, policy: str = policies.TANBR
) -> None:
    """Declare that a policy ends that much more accurate than each rival, on most streams."""
    runs = TESTBEDS[mix].together(policy, *rivals)
    statement.claim(id, runs, MOSTLY, role=role, labels=rivals)(ahead_by(gain))


def claim_competitors(statement: Declared, id: str, mix: str) -> None:
    """Declare that policies which learn nothing are ahead like Tanbr."""
    for policy in LEARN_NOTHING:
        claim_gain(statement, f"{id}.{policy}", mix, rivals=IN_THE_PAPER, gain=0, role="competitor", policy=policy)


def claim_monitored(statement: Declared, id: str, mix: str) -> None:
    """Declare that Tanbr is ahead with the paper's monitor too."""
    claim_gain(statement, f"{id}.monitored", mix, rivals=FIXED_MERGES, gain=0, role="charitable", policy=MONITORED)


FIGURE_4 = statement("figure-4", module=__name__)
claim_gain(FIGURE_4, "figure-4.testbed", "fixed", rivals=FIXED_MERGES, gain=0, role="charitable")
claim_gain(FIGURE_4, "figure-4.testbed-nucb", "fixed", rivals=[policies.NUCB], gain=0, role="charitable")
claim_monitored(FIGURE_4, "figure-4", "fixed")
claim_competitors(FIGURE_4, "figure-4", "fixed")


def claim_orders(id: str, rivals: Sequence[str], surface: str):
    """In most worlds Tanbr's regret is below each rival's."""
    runs = SURFACE[surface].together(policies.TANBR, *rivals)
    FIGURE_4.ours(id, runs, MOSTLY, labels=[f"tanbr below {rival}" for rival in rivals])(
        lambda tanbr, *others: np.stack([regret(tanbr) < regret(other) for other in others])
    )


def regret(run) -> np.ndarray:
    return recorded(run, "cumulative_regret")[-1]


for surface in SURFACE:
    claim_orders(f"figure-4.{surface}", OF_THE_PAPER, surface)
    claim_orders(f"figure-4.beside-{surface}", NOT_OF_THE_PAPER, surface)
