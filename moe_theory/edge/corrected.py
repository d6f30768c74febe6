"""Corrections of the false statements of `edge`: Propositions 1 and 4, Theorem 1.

Proposition 4 is about nearest, fastest and uniform offloading, which ignore the content of tasks. Given the loads, an
expert's arrivals are independent draws of a task and its own ground truth, whatever other experts received. So an
expert with load L has the expected error g(L) of a single expert after L arrivals, and exactly

    E[G_T | loads] = sum_m (L_m / T) g(L_m).

`generalization_error` gives g, and `by_loads` the sum. Delays do not matter, because an expert is idle only once it has
its new model. A model in training counts as learned, so this is G with pending tasks completed. Each expert holds one
task at a time, and T is the number of served tasks. Arguments outside their domains raise InvalidValueError.
"""

from typing import Annotated

import numpy as np
from jaxtyping import Float, Int, Real

from moe_theory.core import linear
from moe_theory.core.constraints import Size, Switch, Whole, Within, checked, is_known
from moe_theory.core.critical import critical_drive as critical_drive
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import Gaps, one_expert_a_round, power, power_complement
from moe_theory.core.numerics import Numbers, array_namespace
from moe_theory.core.single_expert import fixed_signals, given_arrivals, learn_arrivals, signals_along_truths
from moe_theory.core.tasks import Pool
from moe_theory.edge.theory import Floor, Specialists, _binomial_tail

__all__ = [
    "by_loads", "critical_drive", "generalization_error", "given_routes", "proposition_4", "theorem_1", "unserved",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports


@checked
def unserved(max_delay: Size, num_tasks: Size, specialists: Specialists) -> float:
    """Return the probability that a task finds its `specialists` busy, if every delay is `max_delay`.

    The specialists are busy if at least that many of the previous max_delay - 1 arrivals are of the same task. For a
    whole number of specialists the result is at least `theory.tail`. With shorter delays it is an upper bound.

    Source: replaces the window of Appendix B for Proposition 1 of `edge`.

    Examples:
        >>> from moe_theory.edge import corrected
        >>> round(corrected.unserved(max_delay=2, num_tasks=2, specialists=1), 6)
        0.5
    """
    return float(_binomial_tail(np.ceil(specialists) - 1, max_delay - 1, num_tasks))


@checked
def generalization_error(
    pool: Pool,
    num_samples: Size,
    max_load: Size,
    cluster_spread: Annotated[float, Within(low=0, why="it is a deviation")],
    follows_truth: Switch,
) -> Float[np.ndarray, " L"]:
    """Return g(L) for L = 0..`max_load`, the expected mean error of one expert over its L arrivals, with g(0) = 0.

    An arrival of task n has its own ground truth w_n + xi, where xi has independent N(0, `cluster_spread`^2) entries.
    Its signal points along this ground truth if `follows_truth`, else along v_n. The expectation, in float64, is over
    tasks, ground truths and features, for this `pool`.

    Source: the module's docstring. It replaces Proposition 4, (22), of `edge`.
    Raises: InvalidValueError unless 1 <= num_samples < p and max_load >= 1, for a negative spread, or for a signal
        without direction.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import Pool, corrected
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> errors = corrected.generalization_error(pool, 2, max_load=3, cluster_spread=0.0, follows_truth=True)
        >>> errors.shape, np.allclose(errors, 0)
        ((4,), True)
    """
    if follows_truth:
        arrivals = signals_along_truths(pool.truths, cluster_spread)
    else:
        arrivals = fixed_signals(pool.truths, pool.signals, cluster_spread)
    errors = learn_arrivals(arrivals, num_samples, max_load).generalization_error
    return np.concatenate([[0.0], errors])


@checked
def by_loads(
    errors: Annotated[Float[Numbers, " L"], Within()],  # rounding may put these computed values on either side of 0
    loads: Annotated[Real[Numbers, "*batch M"], Whole(0)],
) -> Float[Numbers, "*batch"]:
    """Return E[G_T | loads] from `errors` g(0..max_load) and integer `loads`, or 0 without any task.

    A traced load above max_load gives NaN.

    Source: the module's docstring.
    Raises: InvalidValueError for a known load above max_load.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import corrected
        >>> float(corrected.by_loads(np.array([0.0, 3.0, 1.5]), np.array([1, 2])))  # (1 * 3 + 2 * 1.5) / 3
        2.0
    """
    if is_known(loads) and np.any(loads >= len(errors)):
        raise InvalidValueError(
            f"loads from {np.min(loads)} to {np.max(loads)} must be in 0..{len(errors) - 1}, for which `errors` has "
            "values. Raise max_load of generalization_error.",
            argument="loads",
        )
    xp = array_namespace(errors, loads)
    indices = loads.astype(int)
    known_errors = xp.asarray(errors)[xp.minimum(indices, len(errors) - 1)]
    expected = xp.where(indices < len(errors), known_errors, xp.nan)
    return xp.sum(loads * expected, axis=-1) / xp.maximum(xp.sum(loads, axis=-1), 1)


@checked
def given_routes(
    truths: Annotated[Float[Numbers, "T p B"], Within()],
    signals: Annotated[Float[Numbers, "N p B"], Within()],
    num_samples: Size,
    tasks: Annotated[Int[np.ndarray, "T B"], Whole(0)],
    experts: Annotated[Int[np.ndarray, "T B"], Whole(-1)],
    follows_truth: Switch,
) -> Float[np.ndarray, "T B"]:
    """Return E[G_t | tasks, routes] once pending tasks are completed, after each round, under any policy.

    The result is exact if routes do not depend on the noise in features. Otherwise it is within 2 % of Algorithm 1's
    mean error at Fig. 3's sizes. Float64, O(T B p^2) for any M.

    Args:
        truths: of each arrival.
        signals: of the pool. Under `follows_truth` they are along an arrival's own ground truth.
        experts: -1 for a dropped task.
    Source: `core/single_expert.py`. It replaces Theorem 1, (23), of `edge`.
    Raises: InvalidValueError unless 1 <= num_samples < p, for a signal without direction, or without rounds.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import corrected
        >>> truths, tasks = np.eye(2, 4)[[0, 1, 0], :, None], np.array([[0], [1], [0]])
        >>> signals = np.eye(2, 4)[:, :, None]
        >>> corrected.given_routes(truths, signals, 2, tasks, experts=tasks, follows_truth=True).ravel()
        array([0., 0., 0.])
    """
    directions = truths
    if not follows_truth:
        features_first = np.moveaxis(np.asarray(signals), 1, 0)  # (p, N, B)
        directions = features_first[:, tasks, np.arange(tasks.shape[1])].swapaxes(0, 1)  # (T, p, B)
    return given_arrivals(truths, directions, num_samples, experts).generalization_error


@checked
def proposition_4(
    pool_gaps: Gaps, ratio: linear.Ratio, loads: linear.Loads, round: linear.Rounds
) -> Float[Numbers, "*batch"]:
    """Return `theory.proposition_4` without the error between a task and its own arrival, which is 0.

    The result is the sum of (34), which is exact for Gaussian columns of X.

    Source: Lemma 9, (34), of `edge`. It replaces Proposition 4, (22).
    Raises: InvalidValueError for loads that do not add up to `round`. If these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import corrected, theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> round(float(corrected.proposition_4(gaps, 0.5, loads=np.array([1, 1]), round=2)), 6)  # 0.5 * 1
        0.5
    """
    xp = array_namespace(*pool_gaps, ratio, loads, round)
    round = one_expert_a_round(loads, round)
    confused = xp.sum((loads - 1) * power_complement(ratio, loads), axis=-1)
    unlearned = xp.sum(loads * power(ratio, loads), axis=-1)
    total = unlearned * pool_gaps.truth_norm + confused * pool_gaps.task_gap
    return total / round


@checked
def theorem_1(
    pool_gaps: Gaps,
    ratio: linear.Ratio,
    loads: linear.Loads,
    explored_loads: linear.ExploredLoads,
    round: linear.Rounds,
    floor: Floor = 0.0,
) -> Float[Numbers, "*batch"]:
    """Return an upper bound on E[G_T] under Algorithm 1 in which the tasks of the exploration keep their error.

    As in (22), the error of a task up to T1 is its distance to its expert's last model. Only the errors of later tasks
    fade to the floor. The bound is 1/T times the sum over m of L_T1 (r^L_T W + (1 - r^L_T) Delta) + (L_T - L_T1) (floor
    + r^(L_T - L_T1) Delta).

    Args:
        explored_loads: the loads at round min(T, T1).
        floor: the term G^4 = O(sigma_0^2), whose constant is open.
    Source: ours. It replaces Theorem 1, (23), of `edge`, because the last step of Appendix F lets the other terms of
        (34) fade for the tasks up to T1.
    Raises: InvalidValueError for loads that do not add up to `round`. If these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import corrected, theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> loads = np.array([1, 1])
        >>> round(float(corrected.theorem_1(gaps, 0.5, loads, explored_loads=loads, round=2, floor=0.25)), 6)
        2.0
    """
    xp = array_namespace(*pool_gaps, ratio, loads, explored_loads, round)
    round = one_expert_a_round(loads, round)
    late_loads = loads - explored_loads
    norm = xp.expand_dims(xp.asarray(pool_gaps.truth_norm), -1)  # with a last axis for experts, like the loads
    gap = xp.expand_dims(xp.asarray(pool_gaps.task_gap), -1)
    early = power(ratio, loads) * norm + power_complement(ratio, loads) * gap
    late = xp.expand_dims(xp.asarray(floor), -1) + power(ratio, late_loads) * gap
    return xp.sum(explored_loads * early + late_loads * late, axis=-1) / round
