"""Closed forms of online expert merging as printed: the threshold, Lemmas 1 to 4 and Theorem 1.

Constants that the paper leaves open are arguments. There are T slots and K experts, and the reward network has L layers
of width w. Numbers are float64 on the host. Arguments outside their domains raise InvalidValueError.

Source: Z. Han, X. Liu, R. Zhou, X. Dai, J. C. S. Lui, "Faster, Smaller, and Smarter: Task-Aware Expert Merging for
    Online MoE Inference". Reference [29] is D. Zhou, L. Li, Q. Gu, "Neural contextual bandits with UCB-based
    exploration", ICML 2020.

Examples:
    >>> import numpy as np
    >>> from moe_theory.merging import Params, theory
    >>> theory.split_threshold(time=1.0, depth=3.0, params=Params(confidence=1.0)).item()
    0.0
    >>> round(theory.leaf_bound(100.0, Params(smoothness_ratio=0.5)), 2)  # 4 * 100 / log(100)
    86.86
    >>> round(theory.leaf_bound_at(50.0, 100.0, Params(smoothness_ratio=0.5)), 2)  # 4 * 50 / log(100)
    43.43
    >>> round(theory.depth_bound(100.0, Params(smoothness_ratio=0.5)), 2)  # 2 log(100 / log(100))
    6.16
    >>> round(float(theory.intermediate_depth_bound(100.0, Params(smoothness_ratio=0.5))), 2)
    2.22
    >>> bound = theory.theorem_1(num_rounds=100, dimension=1.0, num_candidates=10)
    >>> bound.remainder, bound.total > 101
    (101.0, True)
    >>> theory.least_width(width=64, num_rounds=2000, num_candidates=100) > 1e29
    True
    >>> theory.neural_tangent_kernel(np.eye(2)).diagonal().tolist()
    [1.5, 1.5]
"""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float, Real

from moe_theory.core.constraints import Amount, PositiveAmount, Size, Whole, Within, checked
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.numerics import Numbers, array_namespace, plain
from moe_theory.merging.params import Params

__all__ = [
    "FORMS", "Amounts", "RegretBound", "depth_bound", "intermediate_depth_bound", "leaf_bound", "leaf_bound_at",
    "least_width", "neural_tangent_kernel", "split_threshold", "theorem_1",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

FORMS = ("printed", "appendix")  # forms of `theorem_1`
Amounts = float | Real[np.ndarray, "*n"]  # a number or an array
COUNTED = Within(low=1, why="slots are counted from 1")
Slots = Annotated[Amounts, COUNTED]  # one number of slots, or several
Slot = Annotated[float, COUNTED]  # one number of slots
Chance = Annotated[float, Within(0, 1, open_low=True, why="it is a probability")]


@checked
def split_threshold(
    time: Annotated[Numbers | float, COUNTED], depth: Annotated[Numbers | float, Within(low=0)], params: Params
) -> Float[Numbers, "*n"]:
    """Return tau_h(t) = C^2 log(t/delta) rho^(-2h) / nu_1^2, the pulls at which a leaf at depth h is split in slot t.

    With delta = 1, as in the experiments, it is 0 at t = 1. So the root is split at its first pull.

    Source: Eq. (2). Numbers are float64 on the host. Inside a scan `time` and `depth` set the precision.
    """
    namespace = array_namespace(time, depth, *params)
    scale = (params.split_constant / params.smoothness) ** 2
    power = namespace.exp(-2 * depth * namespace.log(params.smoothness_ratio))
    return scale * namespace.log(time / params.confidence) * power


@checked
def leaf_bound(num_rounds: Slots, params: Params) -> Amounts:
    """Return the paper's bound N = 2^(1/(1-rho)) T nu_1^2 / (C^2 log(T/delta)) on the candidates N_t, t <= T.

    The proof writes 2^a X for 2^(a log X), which is X^(a log 2). For large C the bound is below 1, although the root is
    a candidate.

    Source: Lemma 1, Eq. (5).
    """
    return leaf_bound_at(num_rounds, num_rounds, params)


@checked
def leaf_bound_at(time: Slots, num_rounds: Slots, params: Params) -> Amounts:
    """Return the paper's bound on N_t, 2^(1/(1-rho)) t nu_1^2 / (C^2 log(T/delta)), which is below 1 at early t.

    Source: Eq. (8), its first inequality.
    """
    with np.errstate(divide="ignore"):
        per_slot = 1 / _threshold_at_root(num_rounds, params)
    factor = np.float64(2) ** (1 / (1 - float(params.smoothness_ratio)))
    return plain(factor * np.asarray(time, float) * per_slot)


@checked
def depth_bound(num_rounds: Slots, params: Params) -> Amounts:
    """Return the paper's bound log(T nu_1^2 / (C^2 log(T/delta))) / (1-rho) on the depth in every slot t <= T.

    The last step of the proof, 1 / (2 log(1/rho)) <= 1 / (1-rho), is reversed where the logarithm is negative. For
    large C the bound is negative while the root has depth 0.

    Source: Lemma 2, Eq. (7).
    """
    return _log_room(num_rounds, params) / (1 - float(params.smoothness_ratio))


@checked
def intermediate_depth_bound(time: Slots, params: Params) -> Amounts:
    """Return the bound on the depth in slot t in the proof of Lemma 2.

    The bound is log(t nu_1^2 / (C^2 log(t/delta))) / (2 log(1/rho)), because a leaf at depth h is split at tau_h(t) <=
    t pulls. It bounds the depth of split leaves, so the tree may be deeper by one. The next step, from t to T, uses
    log(t/delta) >= log(T/delta), which is false for t < T. It needs t / log(t/delta) <= T / log(T/delta), which holds
    from t = e delta on.

    Source: proof of Lemma 2.
    """
    return _log_room(time, params) / (2 * np.log(1 / float(params.smoothness_ratio)))


class RegretBound(NamedTuple):
    """Parts of Theorem 1's right side."""

    confidence: float  # the term with v, from the confidence ellipsoid
    optimization: float  # the term that J steps of gradient descent shrink
    norm: float  # the term with S
    remainder: float  # T + 1

    @property
    def neural(self) -> float:
        """Bound for finitely many arms: all terms except the remainder."""
        return self.confidence + self.optimization + self.norm

    @property
    def total(self) -> float:
        """Right side of (6)."""
        return self.neural + self.remainder


@checked
def theorem_1(
    num_rounds: Slot,
    dimension: Amount,
    num_candidates: PositiveAmount,
    *,
    norm: Amount = 1.0,
    exploration: Amount = 1.0,
    regularization: PositiveAmount = 1.0,
    confidence: Chance = 0.1,
    num_layers: Size = 2,
    width: PositiveAmount = 64.0,
    learning_rate: Amount = 0.0,
    num_steps: Amount = 0.0,
    constant: Amount = 1.0,
    form: str = "printed",
) -> RegretBound:
    """Return the parts of Theorem 1's bound on the regret, in units of reward.

    (6) cannot fail for rewards in [0, 1], because its remainder T + 1 exceeds any regret. In (10) the remainder is 2 T
    Gamma-bar + sum_t nu_1 rho^(h_t) (`corrected.regret_exponent`).

    Args:
        dimension: the effective dimension. num_candidates: N of Lemma 1.
        norm: S, at least sqrt(2 m' M^-1 m). The paper prints 2 sqrt(lambda S), where [29] has 2 sqrt(lambda) S.
        exploration: v. confidence: delta, 1 in the experiments. learning_rate: eta. num_steps: J.
        constant: C_3.
        form: "printed" for (6), with -2 log delta outside v's square root, or "appendix" for (10), with it inside as in
            [29].
    Source: Theorem 1, Eq. (6) and (10).
    Raises: InvalidValueError for amounts out of range, or UnknownNameError for another form.
    """
    if form not in FORMS:
        raise unknown_name("form", form, FORMS)
    if learning_rate * width * regularization > 1:
        raise InvalidValueError(
            f"learning_rate={learning_rate} must be at most 1 / (width regularization) = "
            f"{1 / (width * regularization):g}, or gradient descent diverges. Lower learning_rate.",
            argument="learning_rate",
        )
    information = dimension * np.log1p(num_rounds * num_candidates / regularization) + 2
    outer = 3 * np.sqrt(num_rounds * information)
    log_odds = -2 * np.log(confidence)
    if form == "appendix":
        radius = exploration * np.sqrt(information + log_odds)
    else:
        radius = exploration * np.sqrt(information) + log_odds
    decay = (1 - learning_rate * width * regularization) ** (num_steps / 2)
    descent_error = (regularization + constant * num_rounds * num_layers) * decay * np.sqrt(num_rounds / regularization)
    return RegretBound(
        confidence=float(outer * radius),
        optimization=float(outer * descent_error),
        norm=float(outer * 2 * np.sqrt(regularization * norm)),
        remainder=float(num_rounds + 1),
    )


@checked
def least_width(
    width: PositiveAmount,
    num_rounds: Slot,
    num_candidates: Annotated[float, Within(low=1, why="the root is one")],
    num_layers: Size = 2,
    regularization: PositiveAmount = 1.0,
    confidence: Chance = 0.1,
    constant: Amount = 1.0,
) -> float:
    """Return Lemma 3's least w: C max{T^7 lambda^-7 L^21 (log w)^3, lambda^-1/2 L^-3/2 (log(T N L^2/delta))^3/2}.

    With C = 1 it exceeds 1e29 at the sizes of Sec. V, where w = 64.

    Source: Lemma 3.
    """
    first = np.float64(num_rounds / regularization) ** 7 * num_layers**21.0 * np.log(width) ** 3
    logarithm = np.log(num_rounds * num_candidates * num_layers**2 / confidence)
    second = regularization**-0.5 * num_layers**-1.5 * logarithm**1.5
    return float(constant * max(first, second))


def _log_room(time: Amounts, params: Params) -> Amounts:
    """Return log(t nu_1^2 / (C^2 log(t/delta))), infinite where log(t/delta) is 0."""
    with np.errstate(divide="ignore"):
        return plain(np.log(np.asarray(time, float) / _threshold_at_root(time, params)))


def _threshold_at_root(time: Amounts, params: Params) -> np.ndarray:
    """Return tau_0(t) = C^2 log(t/delta) / nu_1^2, in float64."""
    times = np.asarray(time, float)
    return np.asarray(split_threshold(times, np.zeros_like(times), params), float)


@checked
def neural_tangent_kernel(
    points: Annotated[Float[np.ndarray, "n K"], Within()],
    mixes: Annotated[Float[np.ndarray, "n V"], Within()] | None = None,
    num_layers: Annotated[int, Whole(2)] = 2,
    output_variance: Amount = 1.0,
) -> Float[np.ndarray, "n n"]:
    """Return the limit of <g, g'>/w for a ReLU network of L layers, where g is the gradient of psi' f(x, theta) in
    theta.

    Entries are N(0, 2/w) in hidden layers, and N(0, s/w) in the last layer. Let S_1 = <x, x'>, S_{l+1} = 2 E[relu(a)
    relu(b)] and D_l = 2 E[1(a > 0) 1(b > 0)] for (a, b) normal with the covariance that S_l gives. Then the last layer
    has <psi, psi'> S_L, and layer l < L has <psi, psi'> (s/2) S_l D_l ... D_{L-1}. For one output this is the H of [29]
    at s = 1, and the kernel before it is halved at s = 2.

    The network is homogeneous in x, so Assumption 2's |x| = 1, which only weights at the corners satisfy, is not
    needed. A candidate that stays is an arm twice, so the smallest eigenvalue over all slots is 0 and not lambda_0 > 0.

    Args:
        mixes: psi, one per point, by default for one output.
        num_layers: L, matrices of the network, at least 2. output_variance: s.
    Source: Eq. (3), Definition 1.
    """
    inputs = np.asarray(points, float)
    covariance = inputs @ inputs.T
    squares = np.diag(covariance)
    norms = np.sqrt(np.outer(squares, squares))
    tangent = np.zeros_like(covariance)
    for _ in range(num_layers - 1):
        cosine = np.clip(covariance / np.where(norms > 0, norms, 1), -1, 1)
        np.fill_diagonal(cosine, 1)  # the square root and the arc cosine would magnify rounding at 1
        angle = np.arccos(cosine)
        slopes = 1 - angle / np.pi
        tangent = (tangent + covariance) * slopes
        covariance = norms * (np.sqrt(1 - cosine**2) + cosine * (np.pi - angle)) / np.pi
    mix_products = 1.0 if mixes is None else np.asarray(mixes, float) @ np.asarray(mixes, float).T  # <psi, psi'>
    return mix_products * (covariance + output_variance / 2 * tangent)
