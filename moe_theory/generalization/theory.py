"""Closed forms of the paper on sparse MoE's generalization: Theorem 1, Corollary 4 and steps of their proofs.

Formulas are as printed, right or wrong, with the proof's constants where the paper writes O(). There are T experts, k
of them active, and m samples. The loss is in [0, 1] and C-Lipschitz in the model's output. Everything is float64 on the
host and dimensionless. Sizes may be arrays, which broadcast. Arguments outside their domains raise InvalidValueError.

Source: J. Zhao, P. Wang, Z. Wang, "Generalization Error Analysis for Sparse Mixture-of-Experts", 2024.

Examples:
    >>> import math
    >>> from moe_theory.generalization import theory
    >>> bound = theory.theorem_1(2, 2, num_samples=200, rademacher=0.1, natarajan=0)
    >>> round(bound, 3)  # 0.4 + 2 sqrt(log(80) / 400)
    0.609
    >>> layers = {"operator_norms": [1.0], "row_norms": [1.0]}
    >>> experts, router = theory.lemma_3(10**6, feature_norm=1.0, **layers), theory.lemma_2(10, 8)
    >>> bound = theory.corollary_4(8, 1, 10**6, feature_norm=1.0, num_parameters=10, **layers)
    >>> bound == theory.theorem_1(8, 1, 10**6, experts, router)
    True
    >>> theory.lemma_2(num_parameters=10, num_outputs=8)
    800.0
    >>> round(theory.lemma_3(25, feature_norm=2.0, operator_norms=[3.0], row_norms=[3.0]), 6)  # 2 / sqrt(25) * 3
    1.2
    >>> round(math.exp(theory.lemma_6(num_points=3, num_labels=2, natarajan=1)), 6)  # 3 * 2^2
    12.0
    >>> round(math.exp(theory.log_labelings(3, math.log(2), natarajan=1)), 6)
    12.0
    >>> round(math.exp(theory.equation_16(4, 2, num_samples=3, natarajan=1)), 6)  # 6^2 * 6
    216.0
    >>> round(math.exp(theory.log_masks(num_experts=4, num_active=2)), 6)
    6.0
    >>> theory.sparsity_term(num_experts=4, num_active=4)
    2.0
    >>> round(theory.tail_printed(num_samples=50, excess=0.1), 6)  # 1 / e
    0.367879
    >>> round(theory.ghost_factor(num_samples=200, gap=0.1), 6)  # 1 - 2 / e
    0.264241
    >>> theory.smallest_num_samples(lambda num_samples: 10 / num_samples)
    11
"""

import bisect
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from scipy import special

from moe_theory.core.constraints import A_PROBABILITY, FEW_ACTIVE, OneOf, Whole, Within, checked
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.numerics import plain

__all__ = [
    "FORMS", "MOST_SAMPLES", "Real", "corollary_4", "equation_16", "ghost_factor", "lemma_2", "lemma_3", "lemma_6",
    "log_labelings", "log_masks", "smallest_num_samples", "sparsity_term", "tail_printed", "theorem_1",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

Real = float | np.ndarray  # a number or an array. Results have the shape to which arguments broadcast
Counts = Annotated[Real, Whole(1)]
Active = Annotated[Real, Whole(1), FEW_ACTIVE]
Amounts = Annotated[Real, Within(low=0)]
Deltas = Annotated[Real, A_PROBABILITY]
Norms = Annotated[Sequence[float], Within(low=0, open_low=True, why="a layer of zeros computes nothing")]

FORMS = ("printed", "binomial")  # Eq. (23), and Eq. (22), where the binomial coefficient is not yet bounded
MOST_SAMPLES = 2**62  # where `smallest_num_samples` gives up


@checked
def theorem_1(
    num_experts: Counts,
    num_active: Active,
    num_samples: Counts,
    rademacher: Amounts,
    natarajan: Amounts,
    lipschitz: Amounts = 1.0,
    delta: Deltas = 0.05,
    form: str = "printed",
) -> Real:
    """Return Theorem 1's bound on the generalization error, with its proof's constants.

    The bound is 4 C R_m(H) + 2 sqrt((2 k d_N (1 + log(T/k)) + d_N log(2m) + log(4/delta)) / (2m)).

    Args:
        rademacher: R_m(H) of each expert's class.
        natarajan: d_N, of the masks or of the whole router.
        form: "printed" for Eq. (23), or "binomial" for Eq. (22), with 2 d_N log binom(T, k) as the first term.
    Source: Eq. (8), (22), (23) and Lemma 5.
    Raises: UnknownNameError for another form.
    """
    if form not in FORMS:
        raise unknown_name("form", form, FORMS)
    patterns = log_labelings(2 * np.asarray(num_samples, float), log_masks(num_experts, num_active, form), natarajan)
    inside = patterns + np.log(4 / np.asarray(delta, float))
    return plain(4 * lipschitz * np.asarray(rademacher, float) + 2 * np.sqrt(inside / (2 * num_samples)))


@checked
def corollary_4(
    num_experts: Counts,
    num_active: Active,
    num_samples: Counts,
    *,
    feature_norm: Amounts,
    operator_norms: Norms,
    row_norms: Norms,
    num_parameters: Amounts,
    lipschitz: Amounts = 1.0,
    delta: Deltas = 0.05,
) -> Real:
    """Return Theorem 1 with Lemma 3 for the experts and Lemma 2, with the constant 1 in its O(), for the router.

    Args:
        feature_norm: c, the largest |x|.
        operator_norms, row_norms: K_i and b_i of an expert's layers.
        num_parameters: p of the router network. Its number of outputs, d of Lemma 2, is T.
    Source: Eq. (9).
    Raises: the errors of `theorem_1` and `lemma_3`.
    """
    experts = lemma_3(num_samples, feature_norm, operator_norms, row_norms)
    router = lemma_2(num_parameters, num_experts)
    return theorem_1(num_experts, num_active, num_samples, experts, router, lipschitz=lipschitz, delta=delta)


@checked
def lemma_2(num_parameters: Amounts, num_outputs: Amounts) -> Real:
    """Return d p^2, the order of the Natarajan dimension of a ReLU network with p parameters and d outputs.

    Source: Lemma 2.
    """
    return plain(np.asarray(num_outputs, float) * np.asarray(num_parameters, float) ** 2)


@checked
def lemma_3(num_samples: Counts, feature_norm: Amounts, operator_norms: Norms, row_norms: Norms) -> Real:
    """Return the bound (c/sqrt(m)) prod K_i (sum_i (b_i/K_i)^(2/3))^(3/2) on the Rademacher complexity of networks.

    Args:
        operator_norms: K_i, bounds on the layers' spectral norms.
        row_norms: b_i, bounds on the sums of the l2 norms of the layers' rows.
    Source: Lemma 3. The cited bound of Bartlett et al. (2017) has additional logarithms of m and of the width.
    Raises: InvalidValueError unless norms are positive, with one of each per layer.
    """
    operators = np.asarray(operator_norms, float)
    rows = np.asarray(row_norms, float)
    if operators.shape != rows.shape or operators.ndim != 1 or not operators.size:
        raise InvalidValueError(
            f"operator_norms has {operators.size} entries, but row_norms has {rows.size}. Pass one entry per layer.",
            argument="row_norms",
        )
    capacity = np.prod(operators) * np.sum((rows / operators) ** (2 / 3)) ** 1.5
    return plain(np.asarray(feature_norm, float) * capacity / np.sqrt(num_samples))


@checked
def lemma_6(num_points: Counts, num_labels: Counts, natarajan: Amounts) -> Real:
    """Return log of Natarajan's bound m^d k^(2d) on the number of labelings of m points by a class of dimension d.

    Source: Lemma 6, Eq. (33).
    """
    return log_labelings(num_points, np.log(num_labels), natarajan)


@checked
def log_labelings(num_points: Counts, log_labels: Amounts, natarajan: Amounts) -> Real:
    """Return 2 d log k + d log m: `lemma_6` as a function of `log_labels`, because k may overflow.

    Source: Lemma 6, Eq. (33).
    """
    return plain(2 * natarajan * np.asarray(log_labels) + natarajan * np.log(num_points))


@checked
def equation_16(num_experts: Counts, num_active: Active, num_samples: Counts, natarajan: Amounts) -> Real:
    """Return log of the bound binom(T, k)^(2 d_N) (2m)^(d_N) on the mask patterns of 2m points. Source: Eq. (16)."""
    return log_labelings(2 * np.asarray(num_samples, float), log_masks(num_experts, num_active), natarajan)


@checked
def log_masks(num_experts: Counts, num_active: Active, form: Annotated[str, OneOf(FORMS)] = "binomial") -> Real:
    """Return log binom(T, k), the number of masks of one input, or its "printed" upper bound k (1 + log(T/k)).

    Source: between Eq. (22) and Eq. (23).
    """
    experts = np.asarray(num_experts, float)
    active = np.asarray(num_active, float)
    if form == "printed":
        return plain(active * (1 + np.log(experts / active)))
    logs = special.gammaln(experts + 1) - special.gammaln(active + 1) - special.gammaln(experts - active + 1)
    return plain(np.where(active == experts, 0.0, logs))


@checked
def sparsity_term(num_experts: Counts, num_active: Active) -> Real:
    """Return sqrt(k (1 + log(T/k))), the paper's scaling of the error with sparsity.

    Source: Section 1 and the remark on sparsity awareness.
    """
    return plain(np.sqrt(log_masks(num_experts, num_active, "printed")))


@checked
def tail_printed(num_samples: Counts, excess: Amounts) -> Real:
    """Return exp(-2 m x^2), the printed bound on P(phi(S, S') - E phi >= x). Source: Eq. (20)."""
    return plain(np.exp(-2 * np.asarray(num_samples, float) * np.asarray(excess, float) ** 2))


@checked
def ghost_factor(num_samples: Counts, gap: Amounts) -> Real:
    """Return 1 - 2 exp(-eps^2 m / 2), the factor of ghost sampling. Source: Lemma 7, Eq. (34)."""
    return plain(1 - 2 * np.exp(-(np.asarray(gap, float) ** 2) * np.asarray(num_samples, float) / 2))


@checked
def smallest_num_samples(bound: Callable[[int], Real], threshold: Annotated[float, Within()] = 1.0) -> int | None:
    """Return the smallest m at which `bound`, decreasing in m, is below `threshold`, or None if it is above 2^62.

    Source: a search by doubling and bisection.
    """
    low = 0
    high = 1
    while float(bound(high)) >= threshold:
        if high >= MOST_SAMPLES:
            return None
        low = high
        high = 2 * high
    return bisect.bisect_left(range(high + 1), True, lo=low + 1, hi=high, key=lambda m: float(bound(m)) < threshold)
