"""A bound on the risk of one trained model, by the length of a code for its weights and its training error.

Let a prefix-free code, fixed before the samples, have length L(h) in bits for each model h, so that the 2^-L(h) sum to
at most 1 (Kraft). For one h, m independent samples and a loss in [0, 1], with risk p and mean loss q <= p on the
samples, P(kl(q, p) >= x) <= exp(-m x) (Hoeffding 1963, Theorem 1; Chernoff for losses 0 and 1), where
kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1 - p)). With x(h) = (L(h) log 2 + log(1/delta)) / m the failures of all
models sum to at most delta, so that, whatever the samples chose, kl(q, p) < x(h) with probability 1 - delta: p is below
the largest number for which that holds.

The code pays for all that training chose: how many tensors there are and their shapes, whether a tensor is written as
it is stored or by its levels, these levels, and which of them each weight has. The last part has ceil(-log2 P) + 1
bits, where P is the probability that Krichevsky and Trofimov's estimate gives the weights in their order. The code of
Shannon, Fano and Elias has that length and is prefix-free. How a network computes its output from tensors in the order
of their names is fixed before the samples, or else one of a number of choices, which costs its logarithm.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.constraints import Count, OpenProbability, Probability, require
from moe_theory.core.errors import InvalidValueError, shortened
from moe_theory.core.fields import documented
from moe_theory.runs.tensors import NUMBERS, array_of, open_checkpoint

MOST_WEIGHTS = 4_000_000  # that are counted
MOST_LEVELS = 4096  # of a tensor that is coded by its levels
_KINDS = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}  # bytes of a number
_BITS_OF_FORM = 4  # that say whether a tensor is coded by its levels, and by which kind of numbers
_LARGEST = 2**31  # of levels that are coded as whole numbers

_Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


@documented
class Certificate(NamedTuple):
    """A bound on the risk of a trained model, and what it is made of."""

    risk: float  # at most this, with probability 1 - delta
    training_error: float  # mean loss on the samples
    num_bits: int  # length of the weights' code
    num_samples: int  # m
    num_choices: int  # ways to compute with the weights, or to code them, that one was chosen from
    delta: float


def certificate(
    num_bits: int, training_error: float, num_samples: int, delta: float = 0.05, num_choices: int = 1
) -> Certificate:
    """The bound on the risk of a model that a prefix-free code describes in `num_bits`.

    Args:
        training_error: mean loss on the m samples, in [0, 1].
        num_choices: architectures, codes or other hypotheses fixed in advance that one was chosen from.
    Source: Hoeffding (1963), Theorem 1, and a union over a prefix-free code; derived at the head of the module.
    Raises: InvalidValueError for numbers out of range.

    Examples:
        Nothing is to be described, and no errors were made: 1 - delta^(1/m).

        >>> from moe_theory.generalization import certificate
        >>> found = certificate.certificate(num_bits=0, training_error=0.0, num_samples=100)
        >>> isinstance(found, certificate.Certificate), round(found.risk, 6)
        (True, 0.029513)
    """
    require(Count, num_samples=num_samples, num_choices=num_choices)
    require(Probability, training_error=training_error)
    require(OpenProbability, delta=delta)
    if num_bits < 0:
        raise InvalidValueError(
            f"num_bits={num_bits} must not be negative: it is the length of a code. Raise it.", argument="num_bits"
        )
    nats = num_bits * math.log(2) + math.log(num_choices) + math.log(1 / delta)
    risk = largest_risk(training_error, nats / num_samples)
    return Certificate(risk, training_error, num_bits, num_samples, num_choices, delta)


def largest_risk(training_error: float, divergence: float) -> float:
    """The largest p with kl(q, p) <= `divergence` for q the training error, rounded up.

    Source: inversion of the binary kl divergence by bisection, as it increases in p >= q.

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> round(certificate.largest_risk(0.0, 0.5), 6)  # 1 - exp(-0.5)
        0.393469
    """
    low, high = training_error, 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        low, high = (middle, high) if divergence_of(training_error, middle) <= divergence else (low, middle)


def divergence_of(first: float, second: float) -> float:
    """kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1 - p)) in nats, between coins.

    Source: Hoeffding (1963).

    Examples:
        >>> from moe_theory.generalization import certificate
        >>> certificate.divergence_of(0.3, 0.3)
        0.0
    """
    heads = first * math.log(first / second) if first > 0 else 0.0
    tails = (1 - first) * (math.log1p(-first) - math.log1p(-second)) if first < 1 else 0.0
    return max(heads + tails, 0.0)


def code_length(arrays: _Arrays) -> int:
    """Return the length in bits of a prefix-free code of the weights.

    Args:
        arrays: floating-point tensors of any shapes, in the order of their names.
    Source: Elias (1975) for sizes, Krichevsky and Trofimov (1981) for levels, and the code of Shannon, Fano and Elias.
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
                "are coded. Convert it."
            )
        length += sum(_elias_length(size + 1) for size in (array.ndim, *array.shape))
        as_stored = 8 * _KINDS[array.dtype.name] * array.size
        length += _BITS_OF_FORM + min(as_stored, _length_by_levels(array) or as_stored)
    return length


@documented
class Coded(NamedTuple):
    """The weights of a trained model, and the length of their code."""

    num_weights: int
    stored_bits: int  # of the weights as they are stored
    num_bits: int  # of their code


def code_of(path: str | Path) -> Coded:
    """The code's length for the weights of a checkpoint.

    Args:
        path: a safetensors file, or a folder of shards, of at most `MOST_WEIGHTS` floating-point weights.
    Source: `code_length`.
    Raises: DamagedError for what is no checkpoint; InvalidValueError for other dtypes, or too many weights.

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
    tensors = open_checkpoint(Path(path)).tensors
    count = sum(math.prod(tensor.shape) for tensor in tensors.values())
    if not 0 < count <= MOST_WEIGHTS:
        raise InvalidValueError(
            f"{path} has {count:,} weights, but 1 to {MOST_WEIGHTS:,} are coded. Name another, or drop --errors and "
            "losses."
        )
    if other := next((name for name, tensor in tensors.items() if tensor.kind not in NUMBERS), None):
        raise InvalidValueError(
            f"{path} has {other} of type {tensors[other].kind}, but {', '.join(NUMBERS)} are coded. Convert it."
        )
    stored = 8 * sum(tensor.stop - tensor.start for tensor in tensors.values())
    return Coded(count, stored, code_length({name: array_of(tensor) for name, tensor in tensors.items()}))


def mean_loss(path: str | Path) -> tuple[float, int]:
    """The mean of losses in [0, 1], and how many there are.

    Args:
        path: an .npy of numbers, (m,), or text of one a line.
    Source: the loss of each sample, as `certificate` needs it.
    Raises: InvalidValueError for a file that is none, or numbers that are not in [0, 1].

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from moe_theory.generalization import certificate
        >>> path = Path(tempfile.mkdtemp()) / "losses.txt"
        >>> path.write_text("0.5\\n1\\n") > 0
        True
        >>> certificate.mean_loss(path)
        (0.75, 2)
    """
    try:
        file = Path(path)
        if file.suffix == ".npy":
            losses = np.load(file, mmap_mode="r", allow_pickle=False)  # a map of no more than the file has
        else:
            losses = np.array([float(line) for line in file.read_text(encoding="utf-8").split()])
        if losses.ndim != 1 or not len(losses) or losses.dtype.kind not in "biuf":
            raise ValueError(f"it has {losses.dtype.name} of shape {losses.shape}")
    except (OSError, ValueError, EOFError) as failure:
        raise InvalidValueError(
            f"{path} cannot be read as losses ({shortened(str(failure))}). Name an .npy of m numbers, or text of one a "
            "line."
        ) from None
    losses = losses.astype(np.float64)
    if not np.all((losses >= 0) & (losses <= 1)):
        worst = losses[~((losses >= 0) & (losses <= 1))][0]
        raise InvalidValueError(
            f"{path} has the loss {worst:g}, which is not in [0, 1]: for other losses no bound here holds. Clip "
            "or scale it."
        )
    return min(math.fsum(losses) / len(losses), 1.0), len(losses)


def _length_by_levels(array: np.ndarray) -> int | None:
    """Return the length of a tensor's code by its levels. It is None for too many levels, or none."""
    levels, counts = np.unique(array.reshape(-1), return_counts=True)  # -0.0 is 0.0, and computes the same
    if not 0 < len(levels) <= MOST_LEVELS:
        return None
    length = _elias_length(len(levels)) + _estimate_length(counts.tolist())
    if np.all(levels == np.round(levels)) and np.max(np.abs(levels)) < _LARGEST:
        first = int(levels[0])
        gaps = np.diff(levels).astype(int).tolist()
        return length + _elias_length(2 * abs(first) + (first < 0) + 1) + sum(map(_elias_length, gaps))
    kind = next(kind for kind in _KINDS if _holds(kind, levels))
    return length + 8 * _KINDS[kind] * len(levels)


def _estimate_length(counts: list[int]) -> int:
    """Return ceil(-log2 P) + 1, where P is Krichevsky and Trofimov's probability of symbols with these counts.

    The last bit halves the sum of 2^-length over all sequences. So rounding in the logarithms cannot take it above 1.
    """
    half = len(counts) / 2
    log_probability = math.lgamma(half) - math.lgamma(sum(counts) + half)
    log_probability += sum(math.lgamma(count + 0.5) - math.lgamma(0.5) for count in counts)
    return math.ceil(-log_probability / math.log(2)) + 1


def _dtype(kind: str) -> np.dtype:
    import jax.numpy as jnp

    return np.dtype(jnp.bfloat16) if kind == "bfloat16" else np.dtype(kind)


def _holds(kind: str, values: np.ndarray) -> bool:
    """Return whether numbers of this kind hold the values exactly."""
    with np.errstate(over="ignore"):
        return np.array_equal(values.astype(_dtype(kind)).astype(np.float64), values.astype(np.float64))


def _elias_length(number: int) -> int:
    """Return the length of Elias's delta code of a number from 1 on."""
    digits = number.bit_length()
    return 2 * (digits.bit_length() - 1) + digits
