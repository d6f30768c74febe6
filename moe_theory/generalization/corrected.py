"""Corrections of Theorem 1 and its lemmas, with proofs here or in `statements/proofs`.

There are T experts, k of them active, and m i.i.d. samples. The loss is in [0, 1] and C-Lipschitz in the model's
output. Linear experts are w_j.x with |w_j| <= B, linear routers have logits v_j.x with |v_j| <= W, and inputs have |x|
<= c. R_S(F) is the empirical Rademacher complexity E_sigma sup_f (1/m) sum_i sigma_i f(x_i). Everything is float64 on
the host, dimensionless, and sizes may be arrays. Arguments outside their domains raise InvalidValueError.

Examples:
    >>> from moe_theory.generalization import corrected
    >>> bound = corrected.uniform(complexity=0.1, log_patterns=0.0, num_samples=200, lipschitz=0.5)
    >>> round(bound, 3)  # 0.1 + sqrt(log(40) / 400)
    0.196
    >>> corrected.log_mask_patterns(num_experts=8, num_active=8, num_samples=100, num_features=5)
    0.0
    >>> corrected.fixed_router_complexity(num_experts=4, num_samples=100, mean_square_gate=1.0)
    0.2
    >>> round(corrected.cells_complexity(num_experts=1, num_samples=2), 6)  # E|S_2| / 2
    0.5
    >>> corrected.product_complexity(num_experts=4, num_samples=100, expert_norm=2.0)
    0.4
    >>> corrected.lipschitz_complexity(num_experts=4, num_active=1, num_samples=100)
    0.2
    >>> corrected.relu_capacity([2.0], feature_norm=0.5), round(corrected.relu_capacity([1.0, 1.0]), 3)
    (1.0, 2.665)
    >>> linear = corrected.lipschitz_complexity(4, 2, 1000, expert_norm=2.0, router_norm=3.0)
    >>> corrected.network_complexity(4, 2, 1000, expert_norms=[2.0], router_norms=[3.0]) == linear
    True
    >>> few = corrected.log_network_patterns(8, 2, 10**6, num_features=10, widths=[4])
    >>> few < corrected.log_network_patterns(8, 2, 10**6, num_features=10, widths=[8])
    True
    >>> corrected.stored(num_weights=1000, bits=16, num_samples=10**6) < 0.08
    True
    >>> few, many = corrected.covering(2, 1, 1000, num_features=5), corrected.covering(2, 1, 10**6, num_features=5)
    >>> 0 < many < few
    True
    >>> found = corrected.bounds(num_experts=8, num_active=1, num_samples=10**6, num_features=10)
    >>> found.best == min(found)
    True
    >>> round(corrected.tail(num_samples=100, excess=0.1), 6)  # 1 / e
    0.367879
"""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import scipy

from moe_theory.core.constraints import A_PROBABILITY, FEW_ACTIVE, Amount, Size, Whole, Within, checked
from moe_theory.core.numerics import plain
from moe_theory.generalization.theory import Active, Amounts, Counts, Deltas, Real, log_masks

__all__ = [
    "EPSILONS", "LinearBounds", "bounds", "cells_complexity", "covering", "fixed_router_complexity",
    "lipschitz_complexity", "log_mask_patterns", "log_network_patterns", "network_complexity", "product_complexity",
    "relu_capacity", "stored", "tail", "uniform",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

ActiveSize = Annotated[int, Whole(1), FEW_ACTIVE]
Delta = Annotated[float, A_PROBABILITY]
LayerNorms = Annotated[Sequence[float], Within(low=0)]

EPSILONS = (1e-9, 2.0)  # `covering` minimises over cover radii in this range, in units of B c


@checked
def uniform(
    complexity: Amounts, log_patterns: Amounts, num_samples: Counts, lipschitz: Amounts = 1.0, delta: Deltas = 0.05
) -> Real:
    """Return a bound on sup_f |L_S(f) - L_D(f)| that fails with probability at most delta.

    The bound is 2 C rho + 2 sqrt(log Gamma / (2m)) + sqrt(log(2/delta) / (2m)), by McDiarmid, symmetrization, Massart's
    lemma over masks, and contraction.

    Args:
        complexity: rho, at least R_S(F|mu) for every mask pattern of every sample.
        log_patterns: log Gamma(m), 0 where the mask cannot change. The mean of log Gamma(S) over samples also serves
            (Jensen), as does the mean of R_S(F|mu) if there is one mask.
    Source: replaces Eq. (8) and (23). Derivation in `proofs/theorem_1_instead.py`.
    """
    return plain(2 * lipschitz * np.asarray(complexity) + _spread(log_patterns, num_samples, delta))


def _spread(log_count: Real, num_samples: Real, delta: Real) -> np.ndarray:
    """Return 2 sqrt(log_count / (2m)) + sqrt(log(2/delta) / (2m))."""
    two_m = 2 * np.asarray(num_samples, float)
    return 2 * np.sqrt(np.asarray(log_count) / two_m) + np.sqrt(np.log(2 / np.asarray(delta, float)) / two_m)


@checked
def log_mask_patterns(num_experts: Counts, num_active: Active, num_samples: Counts, num_features: Counts) -> Real:
    """Return log Gamma(m) for the top-k mask patterns that linear routers can give m inputs with d features.

    For N >= D it is (T-1) d log(e m T / (2d)). By Sauer and Shelah, this counts the signs of the N = m T(T-1)/2
    differences of logits, which are linear in D = (T-1) d parameters. The result is at most m log binom(T, k), and 0 at
    k = T. Ties go to the lower index.

    Source: replaces Eq. (16). Derivation in `proofs/remark_masks.py`.
    """
    experts = np.asarray(num_experts, float)
    samples = np.asarray(num_samples, float)
    parameters = (experts - 1) * num_features
    num_forms = samples * experts * (experts - 1) / 2
    ratio = np.maximum(num_forms / np.maximum(parameters, 1), 1)  # at T = 1 both are 0
    log_signs = np.where(num_forms >= parameters, parameters * (1 + np.log(ratio)), np.inf)
    return plain(np.minimum(log_signs, samples * log_masks(num_experts, num_active)))


@checked
def fixed_router_complexity(
    num_experts: Counts,
    num_samples: Counts,
    mean_square_gate: Amounts,
    expert_norm: Amounts = 1.0,
    feature_norm: Amounts = 1.0,
) -> Real:
    """Return B c sqrt(T A / m), a bound on R_S(F|a) for a given router a, where A is the sample mean of |a(x_i)|^2.

    With k active experts 1/k <= A <= 1. The bound is at most B c, as a(x) is a convex combination.

    Source: replaces Eqs. (29) to (32) for a given router. Derivation in `proofs/fixed_router.py`.
    """
    square = np.asarray(num_experts, float) * mean_square_gate / num_samples
    return plain(np.asarray(expert_norm) * feature_norm * np.minimum(np.sqrt(square), 1))


@checked
def cells_complexity(num_experts: Size, num_samples: Size) -> float:
    """Return the exact R_m(F|a) of experts +1 and -1 in T cells, each of which has probability 1/T.

    The supremum is (1/m) sum_j |S_j|, where S_j is a sum of n_j signs and n_j ~ Binomial(m, 1/T). So its mean is (T/m)
    E[|S_n|]. Here E|S_n| = n binom(n - 1, floor((n - 1)/2)) / 2^(n - 1), which is the same for n = 2j - 1 and n = 2j.

    Source: replaces Eqs. (29) to (32) for a given router.
    """
    counts = np.arange(1, num_samples + 1, dtype=float)
    half = np.floor((counts - 1) / 2)
    logs = scipy.special.gammaln(counts) - scipy.special.gammaln(half + 1) - scipy.special.gammaln(counts - half)
    means = counts * np.exp(logs - (counts - 1) * np.log(2))  # E|S_n|
    chances = scipy.stats.binom.pmf(counts, num_samples, 1 / num_experts)
    return float(num_experts / num_samples * np.sum(chances * means))


@checked
def product_complexity(
    num_experts: Counts, num_samples: Counts, expert_norm: Amounts = 1.0, feature_norm: Amounts = 1.0
) -> Real:
    """Return rho for k = 1: B c sqrt(min(T, m) / m).

    Given the mask, F|mu is a product of T balls, each on its own inputs. Orthogonal inputs, with the same number for
    each ball, attain the bound. So the factor sqrt(T) is necessary.

    Source: replaces Eqs. (29) to (32) at k = 1. Derivation in `proofs/fixed_router.py`.
    """
    square = np.minimum(num_experts, num_samples) / np.asarray(num_samples, float)
    return plain(np.asarray(expert_norm) * feature_norm * np.sqrt(square))


@checked
def lipschitz_complexity(
    num_experts: Counts,
    num_active: Active,
    num_samples: Counts,
    expert_norm: Amounts = 1.0,
    feature_norm: Amounts = 1.0,
    router_norm: Amounts = 1.0,
) -> Real:
    """Return rho for any k, sqrt(2) (H^(2/3) + (B c G / sqrt(2))^(2/3))^(3/2).

    Here H = B c sqrt(k T/m) and G = W c sqrt(k T/m). Given the mask, an output is phi(h, g) = sum_j softmax(g)_j h_j
    over the outputs h, within +-B c, and logits g of the selected experts.
    1. Its gradient in h is the softmax a, of norm at most 1. In g it is a_j (h_j - phi), whose square norm is at most
       (B c)^2 / 2. It is convex in each h_j, so it is largest for h_j = +-B c. With weight p on the + side it is then
       at most 2 p^2 (1 - p)^2 (2 B c)^2, largest at p = 1/2.
    2. In the coordinates (s h, t g), phi then has the Lipschitz constant sqrt(1/s^2 + (B c)^2 / (2 t^2)). By Maurer's
       vector contraction (2016) R_S(F|mu) <= sqrt(2) sqrt(1/s^2 + (B c)^2 / (2 t^2)) (s H' + t G'). Here H' = E sup
       (1/m) sum_ij sigma_ij w_j.x_i over selected pairs <= (B c/m) sum_j sqrt(n_j) with sum_j n_j = k m. So H' <= B c
       sqrt(k min(T, k m) / m). G' is the same with W.
    3. The least over s and t is (H'^(2/3) + (B c G' / sqrt(2))^(2/3))^(3/2), by Hoelder. At k = 1 the gates are 1, and
    `product_complexity` follows without the factor sqrt(2). The result is at most B c, because outputs are convex
    combinations.

    Source: replaces Eqs. (29) to (32) for k >= 2.
    """
    largest = np.asarray(expert_norm, float) * feature_norm
    logits = np.asarray(router_norm, float) * feature_norm
    return _gated_complexity(num_experts, num_active, num_samples, experts=largest, logits=logits, largest=largest)


def _gated_complexity(
    num_experts: Real, num_active: Real, num_samples: Real, experts: Real, logits: Real, largest: Real
) -> float | np.ndarray:
    """Return `lipschitz_complexity` with `experts` and `logits` for B c and W c, of outputs within +-`largest`."""
    samples = np.asarray(num_samples, float)
    active = np.asarray(num_active, float)
    factor = np.sqrt(active * np.minimum(num_experts, active * samples) / samples)  # H' / (B c)
    gates = np.asarray(largest) * logits * factor / np.sqrt(2)
    experts_and_gates = np.sqrt(2) * ((experts * factor) ** (2 / 3) + gates ** (2 / 3)) ** 1.5
    are_gates_fixed = (active == 1) | (np.asarray(logits) == 0)
    return plain(np.minimum(np.where(are_gates_fixed, experts * factor, experts_and_gates), largest))


@checked
def relu_capacity(layer_norms: LayerNorms, feature_norm: Amount = 1.0) -> float:
    """Return A with R_S <= A / sqrt(n) on any n inputs |x| <= c.

    The value A is c prod_l F_l (sqrt(2 log(2) L) + 1), and c F for one layer. The networks have ReLUs, no biases, one
    output, and L layers with Frobenius norms of at most F_l. This is Theorem 1 of N. Golowich, A. Rakhlin, O. Shamir,
    "Size-independent sample complexity of neural networks" (2018).

    Source: replaces Lemma 3, which has no logarithms.
    """
    depth = len(layer_norms)
    growth = math.sqrt(2 * math.log(2) * depth) + 1 if depth > 1 else 1.0
    return feature_norm * math.prod(layer_norms) * growth


@checked
def network_complexity(
    num_experts: Counts,
    num_active: Active,
    num_samples: Counts,
    expert_norms: LayerNorms,
    router_norms: LayerNorms = (),
    feature_norm: Amount = 1.0,
) -> Real:
    """Return rho for any k and ReLU networks as experts and router, by their layers' Frobenius norms.

    The result is `lipschitz_complexity` with `relu_capacity` in place of B c and W c, and outputs within +-c prod_l
    F_l. Steps 1 and 2 there need nothing else. The norm of the router's last layer is the norm of one row, for one
    logit. The gates of a given router (no `router_norms`) are in [0, 1] and multiply signs, which does not raise a
    complexity (contraction): A sqrt(k min(T, k m) / m).

    Source: replaces Eqs. (29) to (32) for networks.
    """
    experts = relu_capacity(expert_norms, feature_norm)
    logits = relu_capacity(router_norms, feature_norm) if len(router_norms) else 0.0
    largest = feature_norm * math.prod(expert_norms)
    return _gated_complexity(num_experts, num_active, num_samples, experts=experts, logits=logits, largest=largest)


@checked
def log_network_patterns(
    num_experts: Size,
    num_active: ActiveSize,
    num_samples: Size,
    num_features: Size,
    widths: Annotated[Sequence[int], Whole(1)],
) -> float:
    """Return log Gamma(m) for a ReLU network as the router, without biases and with hidden layers of these widths.

    If the signs of all earlier units are known, the m n_i inputs to the units of layer i are polynomials of degree i in
    the w_i weights up to this layer. So their signs have at most 2 (2 e m n_i i / w_i)^(w_i) patterns (Bartlett,
    Harvey, Liaw, Mehrabian 2019, Lemma 17), or 2^(m n_i). After the last layer, the signs of the m T (T - 1) / 2
    differences of logits decide the mask. The patterns of all layers multiply. The result is at most m log binom(T, k),
    and 0 at k = T.

    Source: replaces Eq. (16) with Lemma 2.
    """
    sizes = (num_features, *widths, num_experts)
    total = 0.0
    weights = 0
    num_signs = (*widths, num_experts * (num_experts - 1) / 2)  # one entry per layer, for one sample
    layers = zip(sizes[:-1], sizes[1:], num_signs, strict=True)
    for degree, (inputs, outputs, count) in enumerate(layers, start=1):
        weights += inputs * outputs
        signs = float(num_samples) * count
        if signs >= weights:
            log_patterns = math.log(2) + weights * math.log(2 * math.e * signs * degree / weights)
            total += min(log_patterns, signs * math.log(2))
        else:
            total += signs * math.log(2)
    return min(total, num_samples * float(log_masks(num_experts, num_active)))


@checked
def stored(num_weights: Counts, bits: Counts, num_samples: Counts, delta: Deltas = 0.05) -> Real:
    """Return sqrt((p b log 2 + log(2/delta)) / (2m)), a bound for any classifier that stores p weights in b bits each.

    There are 2^(p b) such classifiers. For each of them |L_S - L_D| >= x has probability at most 2 exp(-2 m x^2)
    (Hoeffding). The bound needs only independent samples and a loss in [0, 1].

    Source: replaces Eq. (8) and (9) for experts and routers of any kind.
    """
    log_count = np.asarray(num_weights, float) * bits * np.log(2)
    return plain(np.sqrt((log_count + np.log(2 / np.asarray(delta, float))) / (2 * np.asarray(num_samples, float))))


@checked
def covering(
    num_experts: Size,
    num_active: ActiveSize,
    num_samples: Size,
    num_features: Size,
    expert_norm: Amount = 1.0,
    feature_norm: Amount = 1.0,
    router_norm: Amount = 1.0,
    lipschitz: Amount = 1.0,
    delta: Delta = 0.05,
) -> float:
    """Return the smallest 2 C eps + 2 sqrt((log Gamma + log N(eps)) / (2m)) + sqrt(log(2/delta) / (2m)) over eps.

    log N = T d [log(1 + 4 B c/eps) + log(1 + 4 B c^2 W/eps)]. At k = 1, where no gate varies, T d log(1 + 2 B c/eps).
    1. A ball of radius B in R^d has a cover at distance eta of at most (1 + 2B/eta)^d points.
    2. Moving the experts by eta moves an output by at most c eta. Moving the router's rows by eta moves logits by at
       most c eta, and an output by at most B c times that. The gradient in the logits has the 1-norm
       sum_j a_j |h_j - f|, at most 4 p (1 - p) B c <= B c for outputs within +-B c.
    3. With eps/2 for each, covers at eps/(2c) and eps/(2 B c^2) approximate every f, given the mask, to eps.
    4. So R_S(l o F) is at most C eps plus the complexity of a finite class of Gamma N losses. Massart's lemma, centred,
       bounds it by sqrt((log Gamma + log N) / (2m)), and the rest is as in `proofs/theorem_1_instead.py`.

    Source: replaces Eq. (8) and (23) for finite dimensions.
    """
    patterns = log_mask_patterns(num_experts, num_active, num_samples, num_features)
    largest = expert_norm * feature_norm

    def bound_at(log_epsilon: float) -> float:
        epsilon = np.exp(log_epsilon)  # the cover radius in units of B c
        if num_active == 1:
            log_cover = num_experts * num_features * np.log1p(2 / epsilon)
        else:
            log_cover = np.log1p(4 / epsilon) + np.log1p(4 * feature_norm * router_norm / epsilon)
            log_cover *= num_experts * num_features
        return float(2 * lipschitz * epsilon * largest + _spread(patterns + log_cover, num_samples, delta))

    if largest == 0:
        return float(_spread(0.0, num_samples, delta))
    ends = tuple(np.log(EPSILONS))
    minimum = scipy.optimize.minimize_scalar(bound_at, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return float(min(minimum.fun, bound_at(ends[0]), bound_at(ends[1])))  # every eps gives a bound


class LinearBounds(NamedTuple):
    """Each form of the bound for linear experts and a linear router, and the smallest of them."""

    product: float  # k = 1 (`product_complexity`), NaN elsewhere
    lipschitz: float
    covering: float
    best: float


@checked
def bounds(
    num_experts: Size,
    num_active: ActiveSize,
    num_samples: Size,
    num_features: Size,
    expert_norm: Amount = 1.0,
    feature_norm: Amount = 1.0,
    router_norm: Amount = 1.0,
    lipschitz: Amount = 1.0,
    delta: Delta = 0.05,
) -> LinearBounds:
    """Return all forms of the bound for this class.

    Each bound fails with probability at most delta. So does the smallest: the sample does not decide which it is.

    Source: `uniform` with each complexity, and `covering`.
    """
    patterns = log_mask_patterns(num_experts, num_active, num_samples, num_features)

    def uniform_bound(complexity: Real) -> float:
        return float(uniform(complexity, patterns, num_samples, lipschitz, delta))

    sizes = (num_experts, num_active, num_samples)
    norms = (expert_norm, feature_norm, router_norm)
    product = np.nan
    if num_active == 1:
        product = uniform_bound(product_complexity(num_experts, num_samples, expert_norm, feature_norm))
    lipschitz_bound = uniform_bound(lipschitz_complexity(*sizes, *norms))
    cover_bound = covering(*sizes, num_features, *norms, lipschitz=lipschitz, delta=delta)
    best = float(np.nanmin([product, lipschitz_bound, cover_bound]))
    return LinearBounds(product, lipschitz_bound, cover_bound, best)


@checked
def tail(num_samples: Counts, excess: Amounts) -> Real:
    """Return exp(-m x^2), a bound on P(phi(S, S') - E phi >= x) by McDiarmid's inequality for 2m samples.

    Source: replaces Eq. (20). Derivation in `proofs/equation_20.py`.
    """
    return plain(np.exp(-np.asarray(num_samples, float) * np.asarray(excess, float) ** 2))
