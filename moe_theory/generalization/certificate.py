"""A bound on the risk of one trained model, by the length of a code for its weights and its training error.

Let a prefix-free code, fixed before the samples, have length L(h) in bits for each model h, so that the 2^-L(h) sum to
at most 1 (Kraft). For one h, m independent samples and a loss in [0, 1], with risk p and mean loss q <= p on the
samples, P(kl(q, p) >= x) <= exp(-m x) (Hoeffding 1963, Theorem 1; Chernoff for losses 0 and 1), where
kl(q, p) = q log(q/p) + (1 - q) log((1 - q)/(1 - p)). With x(h) = (L(h) log 2 + log(1/delta)) / m the failures of all
models sum to at most delta, so that, whatever the samples chose, kl(q, p) < x(h) with probability 1 - delta: p is below
the largest number for which that holds.

The code pays for all that training chose: how many tensors there are and their shapes, whether a tensor is written as
it is stored or by its levels, these levels, and which of them each weight has, by the estimate of Krichevsky and
Trofimov and an arithmetic coder. How a network computes its output from tensors in the order of their names is fixed
before the samples, or else one of a number of choices, which costs its logarithm.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from moe_theory.core.constraints import Count, OpenProbability, Probability, require
from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.core.fields import documented
from moe_theory.runs.reading import open_file, read_text
from moe_theory.runs.tensors import NUMBERS, array_of, open_checkpoint

MOST_WEIGHTS = 4_000_000  # that are coded, in about half a minute
MOST_LEVELS = 4096  # of a tensor that is coded by its levels
_KINDS = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}  # bytes of a number, in the order of their codes
_WHOLE_NUMBERS = len(_KINDS)  # the code of levels that are whole numbers
_LARGEST = 2**31  # of these
_PRECISION = 48  # bits of the arithmetic coder's interval
_WHOLE, _HALF, _QUARTER = 1 << _PRECISION, 1 << (_PRECISION - 1), 1 << (_PRECISION - 2)

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
    Raises: InvalidParamsError for numbers out of range.

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
        raise InvalidParamsError(f"num_bits={num_bits} must not be negative: it is the length of a code. Raise it.")
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


def encode(arrays: _Arrays) -> str:
    """The weights' code, of the digits 0 and 1; prefix-free over all lists of tensors.

    Args:
        arrays: floating-point tensors of any shapes; they are coded in the order of their names.
    Source: Elias (1975) for sizes, Krichevsky and Trofimov (1981) with an arithmetic coder for levels.
    Raises: InvalidParamsError for tensors of other dtypes, or with NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import certificate
        >>> weights = {"experts": np.float32([[1, -1, 0, 0], [0, 0, 0, 1]])}
        >>> code = certificate.encode(weights)
        >>> np.array_equal(certificate.decode(code)[0], weights["experts"])
        True
    """
    parts = [_elias(len(arrays) + 1)]
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.name not in _KINDS or np.isnan(array.astype(np.float64)).any():
            raise InvalidParamsError(
                f"{name} has numbers of type {array.dtype.name}, or NaN among them, but weights of {', '.join(_KINDS)} "
                "are coded. Convert it."
            )
        shape = (array.ndim, *array.shape)
        parts += [_elias(size + 1) for size in shape]
        as_stored = "0" + _kind(array.dtype.name) + _bits_of(array, array.dtype.name)
        by_levels = _by_levels(array)
        parts.append(min((as_stored, by_levels), key=len) if by_levels else as_stored)
    return "".join(parts)


def decode(code: str) -> list[Float[np.ndarray, "..."]]:
    """The tensors of a code, in the order of their names, as float64, which holds all of them exactly.

    Source: the inverse of `encode`.
    Raises: InvalidParamsError for digits that are no code.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.generalization import certificate
        >>> certificate.decode(certificate.encode({"bias": np.float32([0.5, 0.5])}))
        [array([0.5, 0.5])]
    """
    reader, arrays = _Reader(code), []
    try:
        for _ in range(reader.elias() - 1):
            shape = [reader.elias() - 1 for _ in range(reader.elias() - 1)]
            size = math.prod(shape)
            has_levels, kind = reader.number(1), reader.number(3)
            if has_levels:
                levels = reader.whole_numbers() if kind == _WHOLE_NUMBERS else reader.numbers(reader.elias(), kind)
                symbols, used = _decoded(reader.code[reader.place :], size, len(levels))
                reader.place += used
                values = levels[np.asarray(symbols, int)]
            else:
                values = reader.numbers(size, kind)
            arrays.append(values.reshape(shape))
    except (ValueError, IndexError):
        raise InvalidParamsError("These digits are no code of weights: they end too early. Encode again.") from None
    return arrays


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
    Source: `encode`.
    Raises: InvalidCheckpointError for what is no checkpoint; InvalidParamsError for other dtypes, or too many weights.

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
        raise InvalidParamsError(
            f"{path} has {count:,} weights, but 1 to {MOST_WEIGHTS:,} are coded, which takes half a minute. Name "
            "another, or drop --errors and --losses."
        )
    if other := next((name for name, tensor in tensors.items() if tensor.kind not in NUMBERS), None):
        raise InvalidParamsError(
            f"{path} has {other} of type {tensors[other].kind}, but {', '.join(NUMBERS)} are coded. Convert it."
        )
    stored = 8 * sum(tensor.stop - tensor.start for tensor in tensors.values())
    return Coded(count, stored, len(encode({name: array_of(tensor) for name, tensor in tensors.items()})))


def mean_loss(path: str | Path) -> tuple[float, int]:
    """The mean of losses in [0, 1], and how many there are.

    Args:
        path: an .npy of numbers, (m,), or text of one a line.
    Source: the loss of each sample, as `certificate` needs it.
    Raises: InvalidParamsError for a file that is none, or numbers that are not in [0, 1].

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
        if Path(path).suffix == ".npy":
            open_file(path).close()
            losses = np.load(path, mmap_mode="r", allow_pickle=False)  # a map of no more than the file has
        else:
            losses = np.array([float(line) for line in read_text(path).split()])
        if losses.ndim != 1 or not len(losses) or losses.dtype.kind not in "biuf":
            raise ValueError(f"it has {losses.dtype.name} of shape {losses.shape}")
    except (OSError, ValueError, EOFError) as failure:
        raise InvalidParamsError(
            f"{path} cannot be read as losses ({shortened(str(failure))}). Name an .npy of m numbers, or text of one a "
            "line."
        ) from None
    losses = losses.astype(np.float64)
    if not np.all((losses >= 0) & (losses <= 1)):
        worst = losses[~((losses >= 0) & (losses <= 1))][0]
        raise InvalidParamsError(
            f"{path} has the loss {worst:g}, which is not in [0, 1]: for other losses no bound here holds. Clip "
            "or scale it."
        )
    return min(math.fsum(losses) / len(losses), 1.0), len(losses)


def _by_levels(array: np.ndarray) -> str:
    """Code of a tensor by its levels; empty for one of too many, or of none."""
    flat = array.reshape(-1)
    levels, symbols = np.unique(flat, return_inverse=True)  # -0.0 is 0.0, and computes the same but for its inverse
    if not 0 < len(levels) <= MOST_LEVELS:
        return ""
    if np.all(levels == np.round(levels)) and np.max(np.abs(levels)) < _LARGEST:
        first, *rest = map(int, levels)
        gaps = np.diff([first, *rest]).tolist()
        written = f"{_WHOLE_NUMBERS:03b}" + _elias(len(levels)) + _elias(2 * abs(first) + (first < 0) + 1)
        return "1" + written + "".join(map(_elias, gaps)) + _coded(symbols, len(levels))
    kind = next(kind for kind in _KINDS if _holds(kind, levels))
    return "1" + _kind(kind) + _elias(len(levels)) + _bits_of(levels, kind) + _coded(symbols, len(levels))


def _dtype(kind: str) -> np.dtype:
    import jax.numpy as jnp

    return np.dtype(jnp.bfloat16) if kind == "bfloat16" else np.dtype(kind)


def _holds(kind: str, values: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        return np.array_equal(values.astype(_dtype(kind)).astype(np.float64), values.astype(np.float64))


def _bits_of(values: np.ndarray, kind: str) -> str:
    """The bits of numbers as they are stored."""
    return "".join(f"{byte:08b}" for byte in np.ascontiguousarray(values.astype(_dtype(kind))).tobytes())


def _kind(kind: str) -> str:
    return f"{[*_KINDS].index(kind):03b}"


def _elias(number: int) -> str:
    """Elias's delta code of a number from 1 on: its length's length in unary, its length, and itself."""
    digits = f"{number:b}"
    length = f"{len(digits):b}"
    return "0" * (len(length) - 1) + length + digits[1:]


class _Reader:
    """A place in a code."""

    def __init__(self, code: str) -> None:
        self.code, self.place = code, 0

    def number(self, width: int) -> int:
        taken = self.code[self.place : self.place + width]
        if len(taken) < width:
            raise ValueError("too short")
        self.place += width
        return int(taken or "0", 2)

    def elias(self) -> int:
        zeros = self.code.index("1", self.place) - self.place
        self.place += zeros
        length = self.number(zeros + 1)
        return (1 << (length - 1)) | self.number(length - 1)

    def numbers(self, count: int, kind: int) -> np.ndarray:
        name = [*_KINDS][kind]
        data = bytes(self.number(8) for _ in range(count * _KINDS[name]))
        return np.frombuffer(data, _dtype(name)).astype(np.float64)

    def whole_numbers(self) -> np.ndarray:
        count, folded = self.elias(), self.elias() - 1
        first = -(folded // 2) if folded % 2 else folded // 2
        return np.cumsum([first, *(self.elias() for _ in range(count - 1))]).astype(np.float64)


class _Frequencies:
    """Krichevsky and Trofimov's estimate: symbol j follows with probability (n_j + 1/2) / (n + q/2)."""

    def __init__(self, size: int) -> None:
        self.twice = [1] * size  # 2 n_j + 1
        self.total = size

    def interval(self, symbol: int) -> tuple[int, int]:
        low = sum(self.twice[:symbol])
        return low, low + self.twice[symbol]

    def at(self, target: int) -> int:
        for symbol, count in enumerate(self.twice):
            target -= count
            if target < 0:
                return symbol
        raise ValueError("beyond the last symbol")

    def add(self, symbol: int) -> None:
        self.twice[symbol] += 2
        self.total += 2


def _coded(symbols: np.ndarray, size: int) -> str:
    """Arithmetic code (Witten, Neal and Cleary 1987), which names an interval within that of these symbols alone."""
    frequencies, low, high, pending, out = _Frequencies(size), 0, _WHOLE, 0, []

    def put(bit: int) -> None:
        nonlocal pending
        out.append(str(bit) + str(1 - bit) * pending)
        pending = 0

    for symbol in map(int, symbols):
        start, stop = frequencies.interval(symbol)
        width = high - low
        low, high = low + width * start // frequencies.total, low + width * stop // frequencies.total
        frequencies.add(symbol)
        for bit, offset in _settled(low, high):
            if bit is None:
                pending += 1
            else:
                put(bit)
            low, high = 2 * (low - offset), 2 * (high - offset)
    if size > 1 and len(symbols):
        pending += 1
        put(int(low >= _QUARTER))
    return "".join(out)


def _settled(low: int, high: int) -> Iterator[tuple[int | None, int]]:
    """Bits that are decided, None where the interval straddles the middle, each with what is to be taken off."""
    while True:
        if high <= _HALF:
            bit, offset = 0, 0
        elif low >= _HALF:
            bit, offset = 1, _HALF
        elif low >= _QUARTER and high <= 3 * _QUARTER:
            bit, offset = None, _QUARTER
        else:
            return
        yield bit, offset
        low, high = 2 * (low - offset), 2 * (high - offset)


def _decoded(code: str, count: int, size: int) -> tuple[list[int], int]:
    """The symbols, and how many digits of the code are theirs."""
    frequencies, low, high, symbols = _Frequencies(size), 0, _WHOLE, []
    taken = min(_PRECISION, len(code))
    value = int(code[:taken].ljust(_PRECISION, "0"), 2)
    place = _PRECISION
    for _ in range(count):
        width = high - low
        symbol = frequencies.at(((value - low + 1) * frequencies.total - 1) // width)
        start, stop = frequencies.interval(symbol)
        low, high = low + width * start // frequencies.total, low + width * stop // frequencies.total
        frequencies.add(symbol)
        symbols.append(symbol)
        for _, offset in _settled(low, high):
            digit = int(code[place]) if place < len(code) else 0
            low, high, value = 2 * (low - offset), 2 * (high - offset), 2 * (value - offset) + digit
            place += 1
    return symbols, len(_coded(np.asarray(symbols, int), size))
