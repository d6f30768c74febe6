"""Pools on which Algorithm 1 is solved exactly, as cells to run; theorems in `docs/pages/derivations/solvable.md`."""

from typing import Any

from moe_theory.continual.algorithm import on_pool
from moe_theory.continual.params import Dims, Params, in_order
from moe_theory.core.papers import Reading
from moe_theory.core.solvable import Errors as Errors
from moe_theory.core.solvable import Solvable as Solvable
from moe_theory.core.solvable import SolvableCell as SolvableCell
from moe_theory.core.solvable import chance_deviation as chance_deviation
from moe_theory.core.solvable import gate_remainder as gate_remainder
from moe_theory.core.solvable import last_truths as last_truths
from moe_theory.core.solvable import limit_error as limit_error
from moe_theory.core.solvable import many_tasks as many_tasks
from moe_theory.core.solvable import opposite_errors as opposite_errors
from moe_theory.core.solvable import opposite_truths as opposite_truths
from moe_theory.core.solvable import orthonormal as orthonormal
from moe_theory.core.solvable import orthonormal_errors as orthonormal_errors
from moe_theory.core.solvable import simplex as simplex
from moe_theory.core.solvable import telescoped_gates as telescoped_gates
from moe_theory.core.solvable import truths_met as truths_met
from moe_theory.core.solvable import unmet_probability as unmet_probability
from moe_theory.core.solvable import unseen_part as unseen_part

# The instances by name; each function makes the pool, and says which theorem solves it.
INSTANCES = {
    "opposite-truths": opposite_truths,
    "three-directions": simplex,
    "orthonormal-one-sample": orthonormal,
    "unseen-part": unseen_part,
    "many-tasks": many_tasks,
}


def cell(solvable: Solvable, num_experts: int, num_samples: int = 1, **choices: Any) -> SolvableCell:
    """Algorithm 1 on a pool of `INSTANCES`, at the paper's orders in its sigma_0, without its auxiliary loss.

    Args:
        num_samples: s, the signal included.
        choices: any of `Params`; unless given eta = sigma_0^0.5, lambda = Gamma = sigma_0^1.25, alpha = 0 and beta = 1.
    Raises: as `on_pool`; InvalidValueError for a parameter that does not exist.

    Examples:
        Three experts meet two orthogonal truths; in the end each has both:

        >>> import moe_theory as mt
        >>> from moe_theory.continual import solvable
        >>> system, params, dims = solvable.cell(solvable.orthonormal(2), num_experts=3)
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=100)
        >>> (100 * state.experts).round().tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    """
    num_tasks, num_features = solvable.pool.truths.shape
    dims = Dims(num_experts, num_tasks, num_features, num_samples)
    scale = solvable.scale
    orders = Params(
        num_experts=num_experts,
        **in_order(scale) | {"balance_weight": 0.0, "cluster_spread": 0.0},
        truth_scale=scale,
        signal_scale=1 / scale,
        noise_scale=scale,
        num_clusters=num_tasks,
    )
    params = Reading("solvable", "a pool that is solved exactly", orders).params(**choices)
    return SolvableCell(on_pool(dims, solvable.pool), params, dims)
