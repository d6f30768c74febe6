"""Exact expected generalization error of content-blind routing, where Proposition 4 of `edge` has an approximation.

Assume that tasks are routed independently of their content: nearest, fastest and uniform offloading do so, Algorithm 1
does not. Then, given the loads, an expert's arrivals are independent draws of task and own truth, whatever the other
experts got, so an expert with load L has the expected error g(L) of a single expert after L arrivals, and

    E[G_T | loads] = sum_m (L_m / T) g(L_m).

Delays do not matter: an expert is idle again only once it has its new model, so it learns its arrivals one by one. A
model still being trained counts as learned: this is G with pending updates flushed, and with one task an expert at a
time. T is the number of tasks that were not dropped.

g comes from the moment recursion of `core/single_expert.py`, without any error but rounding in either reading of
where an arrival's signal points.
"""

import numpy as np
from jaxtyping import Float, Real

from moe_theory.core.checks import is_known
from moe_theory.core.errors import InvalidParamsError, InvalidRunError
from moe_theory.core.numerics import Numbers, array_namespace
from moe_theory.core.single_expert import fixed_signals, learn_arrivals, signals_along_truths
from moe_theory.core.tasks import Pool


def generalization_error(
    pool: Pool, num_samples: int, max_load: int, cluster_spread: float, follows_truth: bool
) -> Float[np.ndarray, " L"]:
    """g(L) for L = 0..`max_load`: the expected mean error of one expert over its own L arrivals; g(0) = 0.

    An arrival of task n has the own truth w_n + xi, with independent N(0, `cluster_spread`^2) entries of xi. Its signal
    points along this own truth if `follows_truth` (`pool.signals` are then not used), else along v_n of the pool.
    The expectation is over tasks, own truths and features, for this `pool`. Squared unit of the truths, float64.

    Source: the module's docstring, in place of Proposition 4, (22), of `edge`.
    Raises: InvalidDimsError unless 1 <= num_samples < p; InvalidParamsError for a negative spread or a signal without
        direction; InvalidRunError if max_load < 1.

    Examples:
        A single task without spread is known after one arrival:

        >>> import numpy as np
        >>> from moe_theory.edge import Pool, exact
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> errors = exact.generalization_error(pool, num_samples=2, max_load=3, cluster_spread=0.0, follows_truth=True)
        >>> errors.shape, np.allclose(errors, 0)
        ((4,), True)
    """
    if max_load < 1:
        raise InvalidRunError(f"max_load={max_load} must be at least 1: g(0) is 0 by definition. Raise max_load.")
    if follows_truth:
        arrivals = signals_along_truths(pool.truths, cluster_spread)
    else:
        arrivals = fixed_signals(pool.truths, pool.signals, cluster_spread)
    errors = learn_arrivals(arrivals, num_samples, max_load).generalization_error
    return np.concatenate([[0.0], errors])


def by_loads(errors: Float[Numbers, " L"], loads: Real[Numbers, "*batch M"]) -> Float[Numbers, "*batch"]:
    """E[G_T | loads] from `errors` g(0..max_load) and the experts' whole `loads`; 0 where no task has arrived.

    A load above max_load gives nan where it is traced.

    Source: the module's docstring.
    Raises: InvalidParamsError for a load above max_load, where it is known.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import exact
        >>> float(exact.by_loads(np.array([0.0, 3.0, 1.5]), np.array([1, 2])))  # (1 * 3 + 2 * 1.5) / 3
        2.0
    """
    if is_known(loads) and np.any((loads < 0) | (loads >= len(errors))):
        raise InvalidParamsError(
            f"loads reach from {np.min(loads)} to {np.max(loads)}, and must lie in 0..{len(errors) - 1}, where g is "
            "known. Raise max_load of generalization_error."
        )
    xp = array_namespace(errors, loads)
    indices = loads.astype(int)
    known = xp.asarray(errors)[xp.minimum(indices, len(errors) - 1)]
    means = xp.where(indices < len(errors), known, xp.nan)
    return xp.sum(loads * means, axis=-1) / xp.maximum(xp.sum(loads, axis=-1), 1)
