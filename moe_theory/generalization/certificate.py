"""A bound on the risk of one trained model, by a code for its weights and its training error.

Let a prefix-free code, fixed before the samples, have length L(h) in bits for each model h, so that the 2^-L(h) sum to
at most 1 (Kraft). For one h, m independent samples and a loss in [0, 1], with risk p and mean loss q <= p on the
samples, P(kl(q, p) >= x) <= exp(-m x) (Hoeffding 1963, Theorem 1), where kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1
- p)). With x(h) = (L(h) log 2 + log(1/delta)) / m the failures of all models sum to at most delta. So with probability
1 - delta kl(q, p) < x(h) for the trained model, and p is below the largest such number.

The code describes all that training chose: the number of tensors, their shapes, whether a tensor is written as stored
or by its levels, these levels, and each weight's level. The last part has ceil(-log2 P) + 1 bits, P the probability of
the weights in their order by Krichevsky and Trofimov's estimate. Shannon, Fano and Elias's code is prefix-free with
that length. How a network uses the tensors is fixed before the samples, and a choice among N ways after seeing them
costs log2 N bits more.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
from jaxtyping import Shaped

from moe_theory.core.constraints import Count, OpenProbability, Probability, require
from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.tensors import open_checkpoint

MOST_WEIGHTS = 4_000_000  # that are counted
MOST_LEVELS = 4096  # of a tensor that is coded by its levels
_KINDS = {np.dtype(kind).name: np.dtype(kind) for kind in (ml_dtypes.bfloat16, np.float16, np.float32, np.float64)}
_BITS_OF_FORM = 4  # that say whether a tensor is coded by its levels, and by which kind of numbers
_LARGEST = 2**31  # of levels that are coded as whole numbers

_Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


def certificate(num_bits: int, training_error: float, num_samples: int, delta: float = 0.05) -> float:
    """Return the largest risk, with probability 1 - delta, of a model that a prefix-free code describes in `num_bits`.

    Args:
        training_error: mean loss on the m samples, in [0, 1].
    Source: Hoeffding (1963), Theorem 1, and a union over a prefix-free code.
    Raises: InvalidValueError for numbers out of range.

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> round(certificate.certificate(num_bits=0, training_error=0.0, num_samples=100), 6)
        0.029513
    """
    require(Count, num_samples=num_samples)
    require(Probability, training_error=training_error)
    require(OpenProbability, delta=delta)
    if num_bits < 0:
        raise InvalidValueError(
            f"num_bits={num_bits} must not be negative: it is the length of a code. Raise it.", argument="num_bits"
        )
    nats = num_bits * math.log(2) + math.log(1 / delta)
    return largest_risk(training_error, nats / num_samples)


def largest_risk(training_error: float, divergence: float) -> float:
    """Return the largest p with kl(q, p) <= `divergence` for q the training error, rounded up.

    Source: inversion of the binary kl divergence by bisection, as it increases in p >= q.

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> round(certificate.largest_risk(0.0, 0.5), 6)  # 1 - exp(-0.5)
        0.393469
    """
    low = training_error
    high = 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        low, high = (middle, high) if divergence_of(training_error, middle) <= divergence else (low, middle)


def divergence_of(first: float, second: float) -> float:
    """Return kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1 - p)) in nats, between coins. Source: Hoeffding (1963).

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> certificate.divergence_of(0.3, 0.3)
        0.0
    """
    divergence = 0.0
    if first > 0:
        divergence += first * math.log(first / second)
    if first < 1:
        divergence += (1 - first) * (math.log1p(-first) - math.log1p(-second))
    return max(divergence, 0.0)


def code_length(arrays: _Arrays) -> int:
    """Return the length in bits of a prefix-free code of the weights.

    Args:
        arrays: floating-point tensors of any shapes, in the order of their names.
    Source: Elias (1975) for sizes, Krichevsky and Trofimov (1981) for levels, and Shannon, Fano and Elias.
    Raises: InvalidValueError for tensors of other dtypes, or with NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import certificate
        >>> certificate.code_length({"experts": np.float32([[1, -1, 0, 0], [0, 0, 0, 1]])})
        47
    """
    length = _elias_length(len(arrays) + 1)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.name not in _KINDS or np.isnan(array.astype(np.float64)).any():
            raise InvalidValueError(
                f"{name} has numbers of type {array.dtype.name}, or NaN among them, but weights of {', '.join(_KINDS)} "
                "are coded. Convert it.",
                argument=name,
            )
        length += sum(_elias_length(size + 1) for size in (array.ndim, *array.shape))
        as_stored = 8 * array.nbytes
        length += _BITS_OF_FORM + min(as_stored, _length_by_levels(array) or as_stored)
    return length


class Coded(NamedTuple):
    """The weights of a trained model, and their code's length."""

    num_weights: int
    stored_bits: int  # of the weights as they are stored
    num_bits: int  # of their code


def code_of(path: str | Path) -> Coded:
    """Return the length of the code for the weights of a checkpoint.

    Args:
        path: a safetensors file, or a folder of shards, of at most `MOST_WEIGHTS` floating-point weights.
    Source: `code_length`.
    Raises: DamagedError unless it is a checkpoint, or InvalidValueError for other dtypes or too many weights.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> from moe_theory.generalization import certificate
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_file({"experts": np.float32([[1, -1, 0, 0], [0, 0, 0, 1]])}, path)
        >>> certificate.code_of(path) == certificate.Coded(num_weights=8, stored_bits=256, num_bits=47)
        True
    """
    tensors = open_checkpoint(Path(path))
    num_weights = sum(tensor.num_weights for tensor in tensors)
    if not 0 < num_weights <= MOST_WEIGHTS:
        raise InvalidValueError(
            f"{path} has {num_weights:,} weights, but 1 to {MOST_WEIGHTS:,} are coded. Name another, or drop the "
            "training error."
        )
    num_bits = code_length({tensor.name: tensor.array() for tensor in tensors})
    return Coded(num_weights, sum(tensor.num_bits for tensor in tensors), num_bits)


def _length_by_levels(array: np.ndarray) -> int | None:
    levels, counts = np.unique(array.reshape(-1), return_counts=True)  # -0.0 is 0.0, and computes the same
    if not 0 < len(levels) <= MOST_LEVELS:
        return None
    length = _elias_length(len(levels)) + _estimate_length(counts.tolist())
    if np.all(levels == np.round(levels)) and np.max(np.abs(levels)) < _LARGEST:
        first = int(levels[0])
        gaps = np.diff(levels).astype(int).tolist()
        return length + _elias_length(2 * abs(first) + (first < 0) + 1) + sum(map(_elias_length, gaps))
    kind = next(kind for kind in _KINDS if _holds(kind, levels))
    return length + 8 * _KINDS[kind].itemsize * len(levels)


def _estimate_length(counts: list[int]) -> int:
    """Return ceil(-log2 P) + 1, P by Krichevsky and Trofimov, with a last bit for rounding."""
    half = len(counts) / 2
    log_probability = math.lgamma(half) - math.lgamma(sum(counts) + half)
    log_probability += sum(math.lgamma(count + 0.5) - math.lgamma(0.5) for count in counts)
    return math.ceil(-log_probability / math.log(2)) + 1


def _holds(kind: str, values: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        return np.array_equal(values.astype(_KINDS[kind]).astype(np.float64), values.astype(np.float64))


def _elias_length(number: int) -> int:
    digits = number.bit_length()
    return 2 * (digits.bit_length() - 1) + digits
