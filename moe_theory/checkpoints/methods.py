"""Merges of K tensors into one, a few rows at a time: averages, also of aligned experts, and merges of task vectors.

A task vector is what an expert has learned since a common beginning, tau_k = W_k - W_0, with `base` W_0. Sums are in
single precision (double for tensors of double precision), results in the tensors' own.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.errors import InvalidParamsError, unknown_name
from moe_theory.core.fields import documented

AVERAGE, ALIGNED, TASK_ARITHMETIC, TIES, DARE = METHODS = ("average", "aligned", "task-arithmetic", "ties", "dare")
OF_TASK_VECTORS = (TASK_ARITHMETIC, TIES, DARE)
_PIECE = 1 << 18  # numbers that are processed at once: they and their sum stay in a core's cache


@documented
class Method(NamedTuple):
    """How K tensors are merged with weights x_k, which are at least 0 and sum to 1.

    Source: average: Eq. (1) of `merging`. aligned: the same, after the hidden units of each expert have been permuted
    to match those of the heaviest, S. K. Ainsworth, J. Hayase, S. Srinivasa, "Git Re-Basin", ICLR 2023, Sec. 3.2, and
    P. Li et al., "Merge, Then Compress", ICLR 2024. task-arithmetic: W_0 + s sum_k x_k tau_k, G. Ilharco et al.,
    "Editing Models with Task Arithmetic", ICLR 2023. ties: of each tau_k the largest entries, and of these the ones
    whose sign is that of sum_k x_k tau_k, averaged; P. Yadav et al., "TIES-Merging", NeurIPS 2023. dare: entries of
    tau_k kept with probability p and divided by p, L. Yu et al., "Language Models are Super Mario", ICML 2024.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> experts, base = {"w": np.array([[1.0, 0.0], [0.0, 4.0]])}, {"w": np.array([0.0, 1.0])}
        >>> method = merging.Method("task-arithmetic", scale=2.0)
        >>> merging.merge(experts, np.array([0.5, 0.5]), method, base)["w"].tolist()
        [1.0, 3.0]
    """

    name: str = AVERAGE
    scale: float = 1.0  # s, of the merged task vector
    density: float = 0.2  # p, share of the entries of a task vector that are kept
    seed: int = 0  # of the entries that DARE keeps


PLAIN = Method()


def check_method(method: Method, has_base: bool) -> None:
    """Refuse a method that cannot merge. Raises: UnknownNameError, InvalidParamsError."""
    if method.name not in METHODS:
        raise unknown_name("method", method.name, METHODS)
    if not 0 < method.density <= 1:
        raise InvalidParamsError(
            f"density={method.density:g} must be in (0, 1]: it is a share that is kept. Change it."
        )
    if not math.isfinite(method.scale):
        raise InvalidParamsError(f"scale={method.scale:g} must be finite. Change it.")
    if method.name in OF_TASK_VECTORS and not has_base:
        raise InvalidParamsError(
            f"method {method.name!r} merges what experts have learned since a common beginning, which is not given. "
            "Name it as the base, or choose average or aligned."
        )
    if method.scale != PLAIN.scale and method.name not in OF_TASK_VECTORS:
        raise InvalidParamsError(
            f"scale={method.scale:g} is of task vectors, which method {method.name!r} has none of: choose one of "
            f"{', '.join(OF_TASK_VECTORS)}, or leave the scale out."
        )
    if method.density != PLAIN.density and method.name not in (TIES, DARE):
        raise InvalidParamsError(
            f"density={method.density:g} is of {TIES} and {DARE}, and method {method.name!r} keeps every entry: choose "
            "one of these, or leave the density out."
        )
    if has_base and method.name not in OF_TASK_VECTORS:
        raise InvalidParamsError(
            f"method {method.name!r} uses no base: {', '.join(OF_TASK_VECTORS)} do. Choose one, or leave the base out."
        )


def merge_tensors(
    parts: Sequence[Float[np.ndarray, "*shape"]],
    weights: Float[np.ndarray, " K"],
    method: Method = PLAIN,
    base: Float[np.ndarray, "*shape"] | None = None,
    orders: Sequence["UnitOrder | None"] | None = None,
    stream: int = 0,
) -> Float[np.ndarray, "*shape"]:
    """Merge K tensors of one shape; those of weight 0 are not read.

    Args:
        base: W_0, for methods that merge task vectors.
        orders: of each expert's entries along an axis, as `alignment` gives them.
        stream: a number that makes DARE's draws for this tensor independent of those for others.
    Raises: FloatingPointError for a result that is not finite.
    """
    used = [number for number, weight in enumerate(weights) if weight > 0]
    shares = [float(weights[number]) for number in used]
    parts, dtype = [np.atleast_1d(parts[number]) for number in used], parts[0].dtype
    single = np.float64 if dtype == np.float64 else np.float32
    moved = [None if orders is None else orders[number] for number in used]
    base = None if base is None else np.atleast_1d(base)
    thresholds = [0.0] * len(used)
    if method.name == TIES and base is not None:
        thresholds = [_threshold(part, base, method.density, single) for part in parts]
    draws = [np.random.default_rng([method.seed, stream, number]) for number in used]
    out = np.empty(parts[0].shape, dtype)
    for rows in pieces(out.shape):
        start = None if base is None else base[rows].astype(single)
        vectors = (_taken(part, rows, order, single) for part, order in zip(parts, moved, strict=True))
        if start is None:
            merged = _weighted_sum(vectors, shares)
        else:
            taus: Iterator[np.ndarray] = (np.subtract(vector, start, out=vector) for vector in vectors)
            if method.name == DARE:
                taus = (_kept_at_random(tau, draw, method.density) for tau, draw in zip(taus, draws, strict=True))
            if method.name == TIES:
                tau = _elected([_trimmed(tau, least) for tau, least in zip(taus, thresholds, strict=True)], shares)
            else:
                tau = _weighted_sum(taus, shares)
            merged = start + single(method.scale) * tau
        with np.errstate(over="ignore"):
            out[rows] = merged
        if not np.isfinite(np.asarray(out[rows], single)).all():
            raise FloatingPointError
    return out.reshape(np.shape(parts[0]))


def add_weighted(
    parts: Sequence[Float[np.ndarray, "*shape"]],
    weights: Float[np.ndarray, " K"],
    begin: Float[np.ndarray, "*shape"] | None = None,
) -> Float[np.ndarray, "*shape"]:
    """`begin` and the weighted sum of K tensors, in single precision, not to be written to; those of weight 0 are not
    read. Raises: FloatingPointError for a result that is not finite.
    """
    used = [
        (np.atleast_1d(part), np.float32(weight)) for part, weight in zip(parts, weights, strict=True) if weight != 0
    ]
    out = np.zeros(used[0][0].shape, np.float32) if begin is None else np.atleast_1d(begin).copy()
    for rows in pieces(out.shape):
        for part, weight in used:
            out[rows] += weight * part[rows].astype(np.float32)
        if not np.isfinite(out[rows]).all():
            raise FloatingPointError
    out.flags.writeable = False
    return out.reshape(np.shape(parts[0]))


def pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Rows, as many at once as are processed at once."""
    step = max(1, _PIECE // max(1, math.prod(shape[1:])))
    return (slice(start, start + step) for start in range(0, shape[0], step))


def _taken(part: np.ndarray, rows: slice, order: "UnitOrder | None", single: type) -> np.ndarray:
    if order is None:
        return part[rows].astype(single)
    return (part[order.places[rows]] if order.axis == 0 else part[rows][:, order.places]).astype(single)


def _weighted_sum(vectors: Iterator[np.ndarray], shares: Sequence[float]) -> np.ndarray:
    total: np.ndarray | None = None
    for vector, share in zip(vectors, shares, strict=True):
        if len(shares) > 1:
            vector *= vector.dtype.type(share)
        total = vector if total is None else np.add(total, vector, out=total)
    assert total is not None
    return total


def _threshold(part: np.ndarray, base: np.ndarray, density: float, single: type) -> float:
    """The size of the least entry of a task vector that is kept."""
    sizes = np.empty(part.shape, single)
    for rows in pieces(part.shape):
        np.abs(part[rows].astype(single) - base[rows].astype(single), out=sizes[rows])
    place = sizes.size - max(1, round(density * sizes.size))
    flat = sizes.reshape(-1)
    flat.partition(place)
    return float(flat[place])


def _trimmed(tau: np.ndarray, least: float) -> np.ndarray:
    tau[np.abs(tau) < least] = 0
    return tau


def _elected(taus: list[np.ndarray], shares: Sequence[float]) -> np.ndarray:
    """The average, entry by entry, over task vectors whose sign is that of the weighted sum."""
    sign = np.sign(sum(share * tau for share, tau in zip(shares, taus, strict=True)))
    total, weight = np.zeros_like(taus[0]), np.zeros_like(taus[0])
    for share, tau in zip(shares, taus, strict=True):
        agrees = tau * sign > 0
        total[agrees] += tau.dtype.type(share) * tau[agrees]
        weight[agrees] += tau.dtype.type(share)
    return np.divide(total, weight, out=total, where=weight > 0)


def _kept_at_random(tau: np.ndarray, draw: np.random.Generator, density: float) -> np.ndarray:
    tau *= draw.random(tau.shape, np.float32) < density
    tau /= tau.dtype.type(density)
    return tau


class Units(NamedTuple):
    """Places of the hidden units in a tensor of an expert."""

    axis: int
    copies: int  # 2 where gate and up are one tensor
    is_interleaved: bool  # gate and up in turn, not one after the other

    def places(self, order: Int[np.ndarray, " f"]) -> Int[np.ndarray, " n"]:
        """An order of the units, as one of the entries along the axis."""
        if self.copies == 1:
            return order
        if self.is_interleaved:
            return (2 * order[:, None] + np.arange(2)).reshape(-1)
        return np.concatenate([order, len(order) + order])


class UnitOrder(NamedTuple):
    """An order of a tensor's entries along an axis."""

    axis: int
    places: Int[np.ndarray, " n"]


def is_output(name: str) -> bool:
    """Whether a tensor of an expert maps hidden units to outputs, or is added to these."""
    return re.search(r"(^|[._'\[])(down|w2|wo|fc2|output_linear|\w_out)([._']|$)", name) is not None


def hidden_units(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Units]:
    """Places of the f hidden units in each tensor of an expert; tensors without them are left out.

    Raises: InvalidParamsError where shapes and names do not decide.
    """
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2}
    outs = [shape for name, shape in matrices.items() if is_output(name)]
    ins = [shape for name, shape in matrices.items() if not is_output(name)]
    biases = [(name, shape) for name, shape in shapes.items() if len(shape) == 1]
    is_linear = any(name.rstrip("']").endswith(".weight") for name in matrices)  # of torch: (outputs, inputs)
    fitting = []
    for first, second in ((0, 1), (1, 0), (0, 0)):  # axes of hidden units, on the way in and on the way out
        if len(outs) == 1 and ins and (not is_linear or (first, second) == (0, 1)):
            size, width = outs[0][second], outs[0][1 - second]
            fits = all(shape[first] in (size, 2 * size) and shape[1 - first] == width for shape in ins)
            if fits and all(shape[0] in ((width,) if is_output(name) else (size, 2 * size)) for name, shape in biases):
                fitting.append((first, second, size))
    if not fitting or (len(fitting) > 1 and fitting[1][:2] == (1, 0)):
        shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InvalidParamsError(
            f"experts of {shown} cannot be aligned: their hidden units can be on either axis. Average them as they are."
        )
    first, second, size = fitting[0]
    is_interleaved = any("gate_up_proj_bias" in name for name in shapes)  # GPT-OSS
    found = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            axis = second if is_output(name) else first
            found[name] = Units(axis, shape[axis] // size, is_interleaved)
        elif len(shape) == 1 and not is_output(name):
            found[name] = Units(0, shape[0] // size, is_interleaved)
    return found


def alignment(
    experts: Sequence[Mapping[str, np.ndarray]], weights: Float[np.ndarray, " K"]
) -> list[dict[str, UnitOrder] | None]:
    """Orders of each expert's hidden units that match those of the heaviest, by the inner products of their weights.

    A permutation of the hidden units changes no output of an expert, but that of an average. Takes 12 f^2 bytes.

    Returns: an order for each tensor with hidden units; None for the heaviest, and for experts of weight 0.
    Raises: InvalidParamsError, as `hidden_units` does.
    """
    from scipy.optimize import linear_sum_assignment  # which takes longer to import than small merges take

    units = hidden_units({name: part.shape for name, part in experts[0].items()})
    heaviest = int(np.argmax(weights))
    found: list[dict[str, UnitOrder] | None] = []
    for number, expert in enumerate(experts):
        if number == heaviest or weights[number] == 0:
            found.append(None)
            continue
        order = linear_sum_assignment(_likeness(experts[heaviest], expert, units), maximize=True)[1]
        found.append({name: UnitOrder(own.axis, own.places(order)) for name, own in units.items()})
    return found


def _likeness(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], units: Mapping[str, Units]
) -> Float[np.ndarray, "f f"]:
    total: np.ndarray | None = None
    for name, own in units.items():
        for copy in range(own.copies):
            one, other = (_unit_rows(expert[name], own, copy) for expert in (first, second))
            step = max(1, _PIECE // one.shape[0])
            for start in range(0, one.shape[1], step):
                columns = [rows[:, start : start + step].astype(np.float32) for rows in (one, other)]
                product = columns[0] @ columns[1].T
                total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total


def _unit_rows(part: np.ndarray, own: Units, copy: int) -> np.ndarray:
    """A tensor's hidden units as rows; one of the two parts where gate and up are one tensor."""
    rows = part[:, None] if part.ndim == 1 else part.T if own.axis == 1 else part
    if own.copies == 1:
        return rows
    size = rows.shape[0] // own.copies
    return rows[copy::2] if own.is_interleaved else rows[copy * size : (copy + 1) * size]
