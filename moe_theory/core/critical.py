"""The least gate drive with which an expert that leads for a task stays ahead after it pays for the task.

Experts learn a task n in turn. Each moves its model by c and pays for the move: the locality loss (6) lowers its output
for n and raises the other experts' outputs. If all outputs are equal at first, the first M - 1 payers are different
experts, and the last expert is ahead when its turn comes. To first order all outputs are equal again afterwards, so the
curvature of the softmax decides whether the last expert is still ahead. Let kappa = eta c |v|^2 / M. A payment by
expert m changes the outputs to

    h_j <- h_j - M kappa pi_m (1[j = m] - pi_j).

For one signal this is gradient descent of pi_m |dw|, (27) of `continual` and (25) of `edge`.
"""

from typing import Annotated

import numpy as np

from moe_theory.core.constraints import Whole, Within, checked, require
from moe_theory.core.errors import InvalidValueError

SETTLED = 1e-12  # a payment that is this small, relative to the first, no longer matters
AT_LEAST_TWO = Whole(2)  # experts, because a lead needs a second one
DRIVES = (1e-3, 1e3)  # lower and upper end of the search for the critical drive


def lead_after_turns(num_experts: int, drive: float, contraction: float = 0.0) -> float:
    """Return how far the last of M experts leads after each has paid for a task in turn, starting from equal outputs.

    The last expert then receives the task again and again, and pays contraction, contraction^2, ... more. The result is
    its smallest lead, which is negative if another expert gets ahead.

    Args:
        drive: kappa = eta c |v|^2 / M, where c is the move of an expert that learns a new task.
        contraction: the factor of |dw| when an expert receives a task again at once, 0 if it has fully learned it.
    """
    require(AT_LEAST_TWO, num_experts=num_experts)
    outputs = np.zeros(num_experts)

    def pay(expert: int, cost: float) -> None:
        weights = np.exp(outputs - outputs.max())
        weights /= weights.sum()
        outputs[:] += num_experts * drive * cost * weights[expert] * weights  # for all j. The next line completes j = m
        outputs[expert] -= num_experts * drive * cost * weights[expert]

    for expert in range(num_experts - 1):
        pay(expert, 1.0)
    smallest_lead = np.inf
    cost = 1.0
    while cost > SETTLED:
        pay(num_experts - 1, cost)
        smallest_lead = min(smallest_lead, outputs[-1] - outputs[:-1].max())
        cost = cost * contraction
    return float(smallest_lead)


@checked
def critical_drive(
    num_experts: Annotated[int, AT_LEAST_TWO],
    contraction: Annotated[float, Within(0, 1, open_high=True, why="at 1 an expert never learns its task")],
    perturbation: Annotated[float, Within(low=0)] | None = None,
) -> float:
    """Return kappa_c(M), the least gate drive at which the last expert to pay for a task leads afterwards.

    Signals are orthogonal, costs equal, alpha = 0, beta = 1. Below kappa_c a leader loses its task by paying for it.

    Args:
        num_experts: M >= 2.
        contraction: in [0, 1), the factor of |dw| when a task is repeated. It is 0 for experts that fit a task in one
            update, ((d - s)/(d - 1))^0.5 for slow experts.
        perturbation: lambda, the required lead. None stands for a small lead. A value is needed if M = 2, or if M = 3
            and experts fit a task in one update. There kappa_c tends to 0 like (4 lambda)^(1/3) and (6 lambda)^(1/4).
    Returns: the drive kappa = eta c |v|^2 / M, where c is an expert's move after another task, E|w| in `gate_drive`.
        The critical drive depends neither on the number of tasks nor on sigma_0, and only weakly on lambda.
    Raises: InvalidValueError outside these ranges, or if a perturbation is needed but missing.
    Source: docs/pages/derivations/gates.md. Contradicts Lemma 15, Propositions 1 and 3 of `continual`, and 3 of `edge`.

    Examples:
        >>> from moe_theory.continual import corrected
        >>> [round(corrected.critical_drive(number, 0), 2) for number in (6, 12, 100)]
        [0.73, 0.83, 0.63]
    """
    depends_on_lead = num_experts == 2 or (num_experts == 3 and contraction == 0)
    if perturbation is None and depends_on_lead:
        raise InvalidValueError(
            f"num_experts={num_experts} is so small that the size of the lead matters. Give it as perturbation.",
            argument="num_experts",
        )
    from scipy import optimize  # takes longer to import than the paper

    required_lead = perturbation or 0.0
    if required_lead == 0 and num_experts <= 3 and contraction == 0:
        return 0.0  # the limit for small leads

    def excess(drive: float) -> float:
        return lead_after_turns(num_experts, drive, contraction) - required_lead

    low, high = DRIVES
    if excess(low) >= 0 or excess(high) <= 0:
        raise InvalidValueError(
            f"the critical drive of num_experts={num_experts}, contraction={contraction}, perturbation={perturbation} "
            f"is not between {low:g} and {high:g}. Change these arguments."
        )
    return float(optimize.root_scalar(excess, bracket=(low, high), rtol=1e-10).root)
