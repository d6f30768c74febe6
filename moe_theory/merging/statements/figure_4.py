"""Fig. 4: Tanbr against its rivals on trained models, and on rewards whose best weights are known."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.merging import experiments, policies
from moe_theory.merging.experiments import FIXED_MERGES, MOSTLY, SURFACE, lead, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import Declared

OF_THE_PAPER = (policies.NUCB, policies.AVERAGE)
NOT_OF_THE_PAPER = tuple(rival for rival in experiments.RIVALS if rival not in OF_THE_PAPER)
IN_THE_PAPER = (*FIXED_MERGES, policies.NUCB)


@functools.cache
def ahead_by(gain: float) -> Callable[..., np.ndarray]:
    """Whether a run's final accuracy is above each of the others' by at least `gain` (V, B)."""
    return lambda first, *others: np.stack([lead(first, rival) >= gain for rival in others])


def claim_gain(
    statement: Declared, id: str, mix: str, rivals: Sequence[str], gain: float, role: str, policy: str = policies.TANBR
) -> None:
    """Declare that a policy's final accuracy is above each rival's by at least `gain`, on most streams."""
    runs = experiments.TESTBEDS[mix].together(policy, *rivals)
    statement.claim(id, runs, MOSTLY, role=role, labels=rivals)(ahead_by(gain))


def claim_leads(statement: Declared, figure: str, name: str, mix: str) -> None:
    """Declare that Tanbr is ahead, also with the paper's monitor, and that policies which learn nothing are ahead."""
    ahead = {"gain": 0, "role": "charitable"}
    claim_gain(statement, f"{figure}.{name}", mix, rivals=FIXED_MERGES, **ahead)
    claim_gain(statement, f"{figure}.{name}-nucb", mix, rivals=[policies.NUCB], **ahead)
    claim_gain(statement, f"{figure}.monitored", mix, rivals=FIXED_MERGES, policy=experiments.MONITORED, **ahead)
    for policy in experiments.LEARN_NOTHING:
        claim_gain(statement, f"{figure}.{policy}", mix, rivals=IN_THE_PAPER, gain=0, role="competitor", policy=policy)


FIGURE_4 = statement("figure-4", module=__name__)
claim_leads(FIGURE_4, "figure-4", "testbed", "fixed")
claim_gain(FIGURE_4, "figure-4.agreeing", "agreeing-fixed", rivals=IN_THE_PAPER, gain=0, role="literal")


def claim_orders(id: str, rivals: Sequence[str], surface: str):
    runs = SURFACE[surface].together(policies.TANBR, *rivals)
    FIGURE_4.ours(id, runs, MOSTLY, labels=[f"tanbr below {rival}" for rival in rivals])(
        lambda tanbr, *others: np.stack([regret(tanbr) < regret(other) for other in others])
    )


def regret(run) -> np.ndarray:
    return recorded(run, "cumulative_regret")[-1]


for surface in SURFACE:
    claim_orders(f"figure-4.{surface}", OF_THE_PAPER, surface)
    claim_orders(f"figure-4.beside-{surface}", NOT_OF_THE_PAPER, surface)
