"""Fig. 4: Tanbr against its rivals on trained models, and on rewards whose best weights are known."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.merging import experiments, policies
from moe_theory.merging.experiments import FIXED_MERGES, MOSTLY, SURFACE, lead_over, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import Declared

SURFACE_RIVALS = (policies.NUCB, policies.AVERAGE)  # rivals that the paper has
OTHER_SURFACE_RIVALS = tuple(rival for rival in experiments.RIVALS if rival not in SURFACE_RIVALS)
TESTBED_RIVALS = (*FIXED_MERGES, policies.NUCB)  # rivals that the paper has


@functools.cache
def is_ahead_by(gain: float) -> Callable[..., np.ndarray]:
    """Return a test of whether a run's final accuracy is above each of the others' by at least `gain` (V, B)."""
    return lambda policy, *rivals: np.stack([lead_over(policy, rival) >= gain for rival in rivals])


def claim_gain(
    statement: Declared, id: str, mix: str, rivals: Sequence[str], gain: float, role: str, policy: str = policies.TANBR
) -> None:
    """Declare that a policy's final accuracy is above each rival's by at least `gain`, on most streams."""
    runs = experiments.TESTBEDS[mix].together(policy, *rivals)
    statement.claim(id, runs, MOSTLY, role=role, labels=rivals)(is_ahead_by(gain))


def claim_leads(statement: Declared, figure: str, name: str, mix: str) -> None:
    """Declare that Tanbr is ahead, also with the paper's monitor, and that policies which learn nothing are ahead."""
    claim_ahead = functools.partial(claim_gain, statement, mix=mix, gain=0, role="charitable")
    claim_ahead(f"{figure}.{name}", rivals=FIXED_MERGES)
    claim_ahead(f"{figure}.{name}-nucb", rivals=[policies.NUCB])
    claim_ahead(f"{figure}.monitored", rivals=FIXED_MERGES, policy=experiments.MONITORED)
    for policy in experiments.LEARN_NOTHING:
        claim_gain(
            statement, f"{figure}.{policy}", mix, rivals=TESTBED_RIVALS, gain=0, role="competitor", policy=policy
        )


FIGURE_4 = statement("figure-4", module=__name__)
claim_leads(FIGURE_4, "figure-4", "testbed", "fixed")
claim_gain(FIGURE_4, "figure-4.agreeing", "agreeing-fixed", rivals=TESTBED_RIVALS, gain=0, role="literal")


def claim_orders(id: str, rivals: Sequence[str], surface: str):
    runs = SURFACE[surface].together(policies.TANBR, *rivals)
    test_orders = FIGURE_4.ours(id, runs, MOSTLY, labels=[f"tanbr below {rival}" for rival in rivals])
    test_orders(lambda tanbr, *rivals: np.stack([final_regret(tanbr) < final_regret(rival) for rival in rivals]))


def final_regret(run) -> np.ndarray:
    return recorded(run, "cumulative_regret")[-1]


for surface in SURFACE:
    claim_orders(f"figure-4.{surface}", SURFACE_RIVALS, surface)
    claim_orders(f"figure-4.beside-{surface}", OTHER_SURFACE_RIVALS, surface)
