"""Three classes of sparse MoE whose gap exceeds Theorem 1's bound far more often than delta.

Theorem 1 bounds sup_f |L_S(f) - L_D(f)| with probability 1 - delta. The loss here is the ramp, clip((1 - y f)/2, 0, 1),
1/2-Lipschitz and in [0, 1]. y = +1 or -1 is a fair coin, independent of x. So L_D(f) = E_x [l(1, f(x)) + l(-1, f(x))] /
2 = 1/2 exactly for every f.

d_N has two readings, of masks (Definition 4) and of the whole router (Theorem 1). `Counterexample.bounds` has both, and
gaps are compared with the bound for masks.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from moe_theory.core.constraints import Count, OpenProbability, require, require_active
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import System, simulate_batch
from moe_theory.generalization import complexity, instances, theory
from moe_theory.generalization.complexity import natarajan
from moe_theory.generalization.model import LIPSCHITZ, READINGS, Dims, Params

TRUE_RISK = 0.5  # L_D of every f
REFUTED = "mask-dimension"  # the reading whose bound gaps are compared with
GRANTED = 1.0  # d_N that `fixed_router` puts for a class of one router, which has 0
ERROR = 0.05  # of the intervals of frequencies


class Counterexample(NamedTuple):
    """Gaps of independent samples, and the bounds on them."""

    gap: Float[np.ndarray, " draws"]  # sup_f |L_S(f) - L_D(f)| of each sample
    bound: float  # of the reading "mask-dimension"
    bounds: dict[str, float]  # Theorem 1, for each reading of d_N; NaN where the class has no finite d_N
    frequency: float  # share of samples whose gap exceeds `bound`
    frequencies: dict[str, float]  # the same for each of `bounds`; NaN where there is none
    interval: tuple[float, float]  # Clopper-Pearson, 95 %, for the probability of that
    refutes: bool  # whether the lower end exceeds `delta`
    delta: float
    true_risk: float  # L_D of every f
    rademacher: float  # R_m(H)
    natarajan: dict[str, float]  # d_N, or an upper bound on it, for each reading
    num_samples: int  # m
    num_experts: int  # T
    num_active: int  # k


def fixed_router(
    key: Key[Array, ""], num_samples: int = 500, num_experts: int = 5000, num_draws: int = 200, delta: float = 0.05
) -> Counterexample:
    """Return counterexample A, under both readings: one router, k = 1, two experts.

    x is uniform on [0, 1], the router sends it to the expert floor(T x), and H = {+1, -1}, the constants. The best f
    takes the majority in each cell, so the gap is sum_j |S_j| / (2m), S_j the sum of the labels in cell j.

    The bound has R_m(H) = E|S| / m, exact, for the sum S of m signs. One router has d_N = 0 under both readings. The
    bound has the larger `GRANTED` in its place.

    Source: against Theorem 1 and Eq. (23).
    Raises: InvalidValueError for sizes below 1, a delta outside (0, 1) or an invalid key.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.generalization import counterexamples
        >>> found = counterexamples.fixed_router(mt.root_key(0), num_draws=5)
        >>> found.gap.shape, found.frequency, found.refutes
        ((5,), 1.0, True)
    """
    _check(num_experts, 1, num_samples, num_draws, delta)
    dims = Dims(num_experts, 1, num_samples)
    gap = _gaps(instances.cells(dims), key, num_draws, Params(num_experts, 1, num_samples))
    dimensions = dict.fromkeys(READINGS, GRANTED)
    return _counterexample(gap, (num_experts, 1, num_samples), complexity.constants(num_samples), dimensions, delta)


def learned_router(
    key: Key[Array, ""], num_samples: int = 1_000_000, num_experts: int = 64, num_draws: int = 20, delta: float = 0.05
) -> Counterexample:
    """Return counterexample B, under both readings: a learned linear router, k = 1, experts in a ball.

    The router sees one coordinate z of x and a constant. Its logits u_j z + c_j are T lines, whose upper envelope cuts
    the z axis into up to T intervals, here at the sample's quantiles. H is the ball of radius B = sqrt(m/T) in an RKHS
    with k(x, x) = 1 and k(x, x') = 0 for other x'. Inputs have a continuous distribution, so they are almost surely
    distinct and the functions k(x_i, .) orthonormal. An expert with n_j inputs gives them f_i = y_i min(1,
    B/sqrt(n_j)), of norm at most B: all its labels, where n_j <= m/T. Where T divides m the gap is 1/2, its maximum.

    The bound has R_m(H) = E |sum_i sigma_i k(x_i, .)| B/m = B/sqrt(m), exact, and d_N <= 2 (T - 1) under both readings.

    Source: against Theorem 1 and Eq. (23).
    Raises: InvalidValueError for sizes below 1, a delta outside (0, 1) or an invalid key.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.generalization import counterexamples
        >>> found = counterexamples.learned_router(mt.root_key(0), num_samples=64, num_experts=4, num_draws=2)
        >>> found.gap.round(4).tolist()  # T divides m
        [0.5, 0.5]
    """
    _check(num_experts, 1, num_samples, num_draws, delta)
    params = Params(num_experts, 1, num_samples)
    gap = _gaps(instances.learned_cells(Dims(num_experts, 2, num_samples)), key, num_draws, params, width=1)
    dimensions = {name: natarajan("linear", num_experts, 1, 2, name) for name in READINGS}
    return _counterexample(gap, (num_experts, 1, num_samples), 1 / np.sqrt(num_experts), dimensions, delta)


def dense_router(
    key: Key[Array, ""], num_samples: int = 1000, num_draws: int = 200, delta: float = 0.05
) -> Counterexample:
    """Return counterexample C, for d_N of masks: k = T = 2 and a router that is any function of x.

    The experts are the constants +1 and -1, so f = 2 a - 1 with the weight a of the first. The router can bring a
    arbitrarily close to 1 or 0 at each distinct input, so the gap is 1/2. `gap` has logits `instances.DENSE_LOGIT`
    apart, and is 1e-7 less.

    There is one mask, so d_N = 0 and the bound is 4 C R_m(H) + 2 sqrt(log(4/delta) / (2m)), R_m(H) exact. Under
    "router-dimension" this class has no finite d_N, and the theorem is void.

    Source: against Theorem 1 and Eq. (23), with d_N of Definition 4.
    Raises: InvalidValueError for sizes below 1, a delta outside (0, 1) or an invalid key.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.generalization import counterexamples
        >>> found = counterexamples.dense_router(mt.root_key(0), num_draws=20)
        >>> float(found.gap.min().round(4)), found.refutes
        (0.5, True)
    """
    _check(2, 2, num_samples, num_draws, delta)
    gap = _gaps(instances.dense(Dims(2, 1, num_samples)), key, num_draws, Params(2, 2, num_samples))
    dimensions = {"mask-dimension": natarajan("free", 2, 2, 1, "mask-dimension"), "router-dimension": np.nan}
    return _counterexample(gap, (2, 2, num_samples), complexity.constants(num_samples), dimensions, delta)


def _check(num_experts: int, num_active: int, num_samples: int, num_draws: int, delta: float) -> None:
    require_active(num_experts, num_active)
    require(Count, num_samples=num_samples, num_draws=num_draws)
    if np.ndim(delta):
        raise InvalidValueError(
            f"delta={delta} must be one number: a frequency is compared with it. Give one.", argument="delta"
        )
    require(OpenProbability, delta=delta)


def _gaps(system: System, key: Key[Array, ""], num_draws: int, params: Params, width: int | None = None) -> np.ndarray:
    width = width or num_draws
    parts = [range(first, min(first + width, num_draws)) for first in range(0, num_draws, width)]
    gaps = [simulate_batch(system, key, np.asarray(part), params, 1)[1].gap[0] for part in parts]
    return np.concatenate([np.asarray(gap, float) for gap in gaps])


def _counterexample(
    gap: np.ndarray,
    sizes: tuple[int, int, int],
    rademacher: float,
    dimensions: Mapping[str, float],
    delta: float,
) -> Counterexample:
    bounds = {
        name: float("nan")
        if np.isnan(dimension)
        else float(theory.theorem_1(*sizes, rademacher, dimension, LIPSCHITZ, delta))
        for name, dimension in dimensions.items()
    }
    from moe_theory.verification.intervals import clopper_pearson  # takes a second to import

    bound = bounds[REFUTED]
    exceeded = int(np.sum(gap > bound))
    low, high = (float(end[0]) for end in clopper_pearson(np.asarray([exceeded]), len(gap), ERROR))
    num_experts, num_active, num_samples = sizes
    return Counterexample(
        gap=gap,
        bound=bound,
        bounds=bounds,
        frequency=exceeded / len(gap),
        frequencies={name: float("nan") if np.isnan(b) else float(np.mean(gap > b)) for name, b in bounds.items()},
        interval=(low, high),
        refutes=low > delta,
        delta=float(delta),
        true_risk=TRUE_RISK,
        rademacher=float(rademacher),
        natarajan=dict(dimensions),
        num_samples=num_samples,
        num_experts=num_experts,
        num_active=num_active,
    )
