"""Exact expected metrics of a single expert (M = 1), where Proposition 4 of `continual` has an approximation.

The recursion over the moments of an expert, with its derivation, is in `core/single_expert.py`: here it gets the
tasks of a pool, whose arrivals share their task's truth. `single_expert_gaussian` is the setting of the paper's proof.
"""

import numpy as np

from moe_theory.core import single_expert as recursion
from moe_theory.core.linear import gaps, overparameterization_ratio
from moe_theory.core.single_expert import Exact as Exact
from moe_theory.core.single_expert import require_rounds
from moe_theory.core.tasks import Pool


def single_expert(pool: Pool, num_samples: int, num_rounds: int) -> Exact:
    """Exact expected metrics for M = 1 and the arrivals of Definition 1: one signal column, the others Gaussian.

    Tasks arrive uniformly; the expectation is over tasks and features, for this `pool`: the forgetting of (15), the
    generalization error of (16) and the error of (14). Float64; O(N d^3 + T (N d^2 + d^3)).

    Source: `core/single_expert.py`, in place of Proposition 4 of `continual`.
    Raises: InvalidDimsError unless 1 <= num_samples < d; InvalidParamsError for a zero signal; InvalidRunError if
        num_rounds < 1.

    Examples:
        A single task whose signal is its ground truth is known after one arrival:

        >>> import numpy as np
        >>> from moe_theory.continual import Pool, exact
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> metrics = exact.single_expert(pool, num_samples=2, num_rounds=3)
        >>> metrics.error.shape, np.allclose(metrics.error, 0)
        ((3,), True)
    """
    return recursion.single_expert(pool.truths, pool.signals, num_samples, num_rounds)


def single_expert_gaussian(pool: Pool, num_samples: int, num_rounds: int) -> Exact:
    """Exact expected metrics for M = 1 if every column of X were Gaussian, the setting of Proposition 4's proof.

    Then Pi_n = I and D = d, and with r = 1 - s/d every error is a mean over the truths learned before:
    E|w_t - w_{n_tau}|^2 = r^t W + (1 - r^t - (1-r) r^(t-tau)) Delta. The last term, absent from (17) and (18), is the
    arrival of the task itself, at distance 0. Float64; O(T).

    Source: Lemma 16, (42), of `continual`, summed without dropping l = i.
    Raises: InvalidDimsError unless 1 <= num_samples < d; InvalidRunError if num_rounds < 1.

    Examples:
        With one task of norm 1 the error is r^t, here with r = 1 - 2/4:

        >>> import numpy as np
        >>> from moe_theory.continual import Pool, exact
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> exact.single_expert_gaussian(pool, num_samples=2, num_rounds=3).error.tolist()
        [0.5, 0.25, 0.125]
    """
    truths = np.asarray(pool.truths, np.float64)
    num_features = truths.shape[1]
    ratio = overparameterization_ratio(num_features, num_samples)
    require_rounds(num_rounds)
    pool_gaps = gaps(pool._replace(truths=truths, clusters=np.asarray(pool.clusters)))
    norm, gap = pool_gaps.truth_norm, pool_gaps.task_gap
    rounds = np.arange(1, num_rounds + 1)
    powers = ratio**rounds
    power_sums = np.concatenate([[0.0], np.cumsum(powers)[:-1]])  # sum over tau < t
    mean_powers = power_sums / np.maximum(rounds - 1, 1)
    forgetting = (powers - mean_powers) * norm + (1 - ratio - powers + ratio * mean_powers) * gap
    forgetting[0] = 0.0
    return Exact(
        forgetting=forgetting,
        generalization_error=powers * norm + (1 - powers) * (1 - 1 / rounds) * gap,
        error=powers * norm + (ratio - powers) * gap,
    )
