"""What files say of the classifier that bounds are for: the size of its weights, or the code of a trained model."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidValueError, shortened
from moe_theory.core.fields import documented
from moe_theory.generalization import certificate
from moe_theory.runs.files import read_json
from moe_theory.runs.tensors import INDEX, open_checkpoint

Found = tuple[dict[str, Any], list[str]]  # fields of a `calculator.Setting`, and notes
_PACKED = {"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"}  # dtypes that quantised weights are packed into


@documented
class StoredSize(NamedTuple):
    """Size of a checkpoint, from its headers."""

    num_weights: int | None  # numbers in all its tensors; None where several are packed into one
    num_bits: int  # of all its tensors
    note: str  # a sentence about where this is from


def stored(path: str | Path) -> StoredSize:
    """Return the size of a checkpoint, from its headers alone.

    Args:
        path: a safetensors file, a folder of its shards, or its index alone.
    Source: the safetensors format.
    Raises: DamagedError for what is no checkpoint; InvalidValueError for an index that says no size.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> from moe_theory import generalization
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_file({"experts": np.zeros((4, 3), np.float16)}, path)
        >>> generalization.stored(path)[:2]
        (12, 192)
    """
    path = Path(path)
    index = path / INDEX if path.is_dir() else path
    if index.name.endswith(".index.json") and index.is_file() and not any(index.parent.glob("*.safetensors")):
        return _stated_size(index)
    tensors = open_checkpoint(index.parent if index.name == INDEX else path).tensors.values()
    packed = sorted({tensor.kind for tensor in tensors} & _PACKED)
    num_bits = 8 * sum(tensor.stop - tensor.start for tensor in tensors)
    if not num_bits:
        raise InvalidValueError(f"{path} has no weights in its tensors. Name another checkpoint.")
    words = f"By the headers of {path.name}: {len(tensors):,} tensors in {num_bits // 8:,} bytes"
    if packed:
        return StoredSize(None, num_bits, f"{words}, some of them packed ({', '.join(packed)}).")
    return StoredSize(sum(math.prod(tensor.shape) for tensor in tensors), num_bits, f"{words}.")


def _stated_size(index: Path) -> StoredSize:
    """Return the size that an index states of shards that are not beside it."""
    try:
        metadata = read_json(index)["metadata"]
        num_bytes = metadata["total_size"]
        num_weights = metadata.get("total_parameters")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise InvalidValueError(
            f"{index} states no total_size in its metadata ({shortened(str(failure))}), and its shards are not beside "
            "it. Fetch them, or give --weights and --bits."
        ) from None
    if type(num_bytes) is not int or not 0 < num_bytes < 2**58:
        raise InvalidValueError(
            f"{index} has total_size={shortened(num_bytes)}, which is no number of bytes. Fetch its shards, or give "
            "--weights and --bits."
        )
    is_count = type(num_weights) is int and 0 < num_weights < 2**62
    note = f"Sizes are those that {index.name} states: its shards are not here."
    return StoredSize(num_weights if is_count else None, 8 * num_bytes, note)


def fields(
    checkpoint: Path | None,
    num_errors: int | None,
    losses: Path | None,
    given: Mapping[str, Any],
    options: Mapping[str, str],
) -> Found:
    """Return the fields that files give. There are none without a file.

    Args:
        given: the fields that are given beside them. Of a trained model its number of samples may be.
        options: what messages call these.
    Raises: InvalidValueError for files that cannot be read, that say too little, or what is given too.
    """
    if num_errors is not None or losses is not None:
        return _trained(checkpoint, num_errors, losses, given)
    if checkpoint is None:
        return {}, []
    if clash := [options[name] for name in ("num_weights", "bits") if name in given]:
        raise InvalidValueError(f"{clash[0]} is what --checkpoint {checkpoint} says. Drop one of both.")
    size = stored(checkpoint)
    if size.num_weights is None:
        raise InvalidValueError(
            f"{checkpoint} does not say how many weights it has: several are packed into a number, or its index states "
            "no total_parameters. Give --weights and --bits in its place."
        )
    independence = "Tokens of a text are not independent samples: m counts independent ones, such as documents."
    return _sizes(size.num_weights, size.num_bits), [size.note, independence]


def _sizes(num_weights: int, num_bits: int) -> dict[str, Any]:
    """Return fields for weights of as many bits each, or on average."""
    bits, rest = divmod(num_bits, num_weights)
    if rest or not bits:
        return {"num_weights": num_weights, "num_bits": num_bits}
    return {"num_weights": num_weights, "bits": bits}


def _trained(checkpoint: Path | None, num_errors: int | None, losses: Path | None, given: Mapping[str, Any]) -> Found:
    """Return the code length of a trained model's weights, and its training error."""
    if checkpoint is None:
        raise InvalidValueError("--errors needs --checkpoint, the weights of the model that makes them. Name it.")
    if num_errors is not None and losses is not None:
        raise InvalidValueError("num_errors and losses both give the training error. Leave one of both out.")
    if losses is not None:
        training_error, num_samples = certificate.mean_loss(losses)
        if given.get("num_samples", num_samples) != num_samples:
            raise InvalidValueError(
                f"{losses} has {num_samples} numbers, but the number of samples is {given['num_samples']}: there is "
                "one loss a sample. Drop num_samples."
            )
    elif "num_samples" not in given:
        raise InvalidValueError("--errors needs --samples, the number of samples that they are among. Give it.")
    else:
        num_samples = given["num_samples"]
        if not 0 <= (num_errors or 0) <= num_samples:
            raise InvalidValueError(f"--errors {num_errors} must be from 0 to --samples {num_samples}. Change one.")
        training_error = (num_errors or 0) / num_samples
    model = certificate.code_of(checkpoint)
    found = {"code_bits": model.num_bits, "training_error": training_error, "num_samples": num_samples}
    if not given.keys() - {"num_samples", "delta", "threshold", "num_choices", "bits"}:
        found |= _sizes(model.num_weights, given["bits"] * model.num_weights if "bits" in given else model.stored_bits)
    return found, [
        f"{checkpoint}: {model.num_weights:,} weights, {model.stored_bits:,} bits as stored and {model.num_bits:,} as "
        f"coded; training error {training_error:.4g} of {num_samples:,} samples."
    ]
