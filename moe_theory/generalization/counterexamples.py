"""A class of sparse MoE whose gap exceeds Theorem 1's bound far more often than delta.

Theorem 1 bounds sup_f |L_S(f) - L_D(f)| with probability 1 - delta. The loss here is the ramp, clip((1 - y f)/2, 0, 1),
1/2-Lipschitz and in [0, 1]. The label y = +1 or -1 is a fair coin, independent of x. So L_D(f) = E_x [l(1, f(x)) +
l(-1, f(x))] / 2 = 1/2 exactly for every f. `moe-theory verify generalization.theorem-1` tests more classes.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from moe_theory.core.constraints import Count, OpenProbability, require, require_active
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import simulate_batch
from moe_theory.generalization import complexity, instances, theory
from moe_theory.generalization.model import LIPSCHITZ, Dims, Params

GRANTED = 1.0  # d_N in the bound, although a class of one router has d_N = 0
ERROR = 0.05  # error probability of the intervals of frequencies


class Counterexample(NamedTuple):
    """Gaps of independent samples, and the bound on them."""

    gap: Float[np.ndarray, " draws"]  # sup_f |L_S(f) - L_D(f)| of each sample
    bound: float  # Theorem 1
    frequency: float  # share of samples whose gap exceeds `bound`
    interval: tuple[float, float]  # 95 % interval (Clopper-Pearson) for the probability of exceeding `bound`
    refutes: bool  # whether the lower end exceeds `delta`
    delta: float
    rademacher: float  # R_m(H)


def fixed_router(
    key: Key[Array, ""], num_samples: int = 500, num_experts: int = 5000, num_draws: int = 200, delta: float = 0.05
) -> Counterexample:
    """Return a counterexample under both readings of d_N: one router, k = 1, two experts.

    An input x is uniform on [0, 1]. The router sends it to the expert floor(T x). H has the constants +1 and -1. The
    best f takes the majority in each cell. So the gap is sum_j |S_j| / (2m) with the sums S_j of labels in cells j.

    The bound uses the exact R_m(H) = E|S| / m for the sum S of m signs. A single router has d_N = 0 under both
    readings, but the bound uses the larger `GRANTED`.

    Source: against Theorem 1 and Eq. (23).
    Raises: InvalidValueError for sizes below 1, a delta outside (0, 1) or an invalid key.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.generalization import counterexamples
        >>> example = counterexamples.fixed_router(mt.root_key(0), num_draws=5)
        >>> isinstance(example, counterexamples.Counterexample), example.gap.shape, example.frequency, example.refutes
        (True, (5,), 1.0, True)
    """
    require_active(num_experts, 1)
    require(Count, num_samples=num_samples, num_draws=num_draws)
    if np.ndim(delta):
        raise InvalidValueError(
            f"delta={delta} must be a single number to compare a frequency with. Pass a float.", argument="delta"
        )
    require(OpenProbability, delta=delta)
    from moe_theory.verification.intervals import clopper_pearson  # takes a second to import

    system = instances.cells(Dims(num_experts, num_features=1, max_samples=num_samples))
    params = Params(num_experts, num_active=1, num_samples=num_samples)
    _, records = simulate_batch(system, key, np.arange(num_draws), params, num_rounds=1)
    gap = np.asarray(records.gap[0], float)
    rademacher = float(complexity.constants(num_samples))
    bound = float(theory.theorem_1(num_experts, 1, num_samples, rademacher, GRANTED, lipschitz=LIPSCHITZ, delta=delta))
    num_exceeding = int(np.sum(gap > bound))
    lows, highs = clopper_pearson(np.asarray([num_exceeding]), len(gap), ERROR)  # arrays of one entry
    return Counterexample(
        gap,
        bound,
        frequency=num_exceeding / len(gap),
        interval=(float(lows[0]), float(highs[0])),
        refutes=float(lows[0]) > delta,
        delta=float(delta),
        rademacher=rademacher,
    )
