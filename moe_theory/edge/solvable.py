"""Pools on which Algorithm 1 is solved exactly, as cells to run; theorems in `docs/pages/derivations/solvable.md`.

Models and gates are those of the tasks that are completed. Once the last gate step is taken too, the theorems are word
for word those of `continual` at alpha = 0, whatever the delays are: a server's move is decided when its task is routed.
"""

from typing import Any

import numpy as np
from jaxtyping import Int

from moe_theory.core.numerics import Numbers
from moe_theory.core.solvable import Solvable
from moe_theory.core.solvable import SolvableCell as SolvableCell
from moe_theory.core.tasks import INDEPENDENT
from moe_theory.edge.algorithm import on_pool
from moe_theory.edge.params import Dims, Params, Reading
from moe_theory.edge.policies import Policy, adaptive


def cell(
    solvable: Solvable,
    num_experts: int,
    num_samples: int = 1,
    execution_delay: Int[Numbers, " M"] | None = None,
    policy: Policy = adaptive,
    **choices: Any,
) -> SolvableCell:
    """Algorithm 1 on a pool of `continual.solvable`, a kind of tasks to a truth, none of them differing inside a kind.

    Args:
        num_samples: s, the signal included.
        execution_delay: d^ex of each server, in rounds; 1 unless given. Transfers take up to 2 rounds.
        policy: from `policies`, or your own.
        choices: any of `Params`; unless given eta = sigma_0^0.5, r is uniform on (0, sigma_0^1.25) and beta = 1.
    Raises: InvalidValueError for delays or samples that do not fit; InvalidValueError for parameters that are outside
        their range or do not exist, and delays that are no whole rounds.

    Examples:
        Servers of different speed meet two orthogonal truths; in the end each has both:

        >>> import moe_theory as mt
        >>> from moe_theory import continual, edge
        >>> pair = continual.solvable.orthonormal(2)
        >>> system, params, dims = edge.solvable.cell(pair, num_experts=3, execution_delay=[1, 2, 4])
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=300)
        >>> (100 * state.experts).round().tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    """
    num_tasks, num_features = solvable.pool.truths.shape
    dims = Dims(num_experts, num_tasks, num_features, num_samples)
    delays = np.ones(num_experts, int) if execution_delay is None else np.asarray(execution_delay)
    orders = Params(
        num_experts=num_experts,
        learning_rate=solvable.scale**0.5,
        perturbation_scale=solvable.scale**1.25,
        truth_scale=solvable.scale,
        cluster_spread=0.0,
        signal_law=INDEPENDENT,  # those of the pool
        noise_scale=solvable.scale,
        max_transfer_delay=2,
        max_execution_delay=int(delays.max()),
    )
    params = Reading("solvable", "a pool that is solved exactly", orders).params(**choices)
    return SolvableCell(on_pool(dims, solvable.pool, delays, policy), params, dims)
