"""Files that describe a classifier: the size of its weights, or a trained model's code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidValueError
from moe_theory.generalization import certificate
from moe_theory.runs.tensors import open_checkpoint

_PACKED = {"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"}  # dtypes that quantised weights are packed into


class StoredSize(NamedTuple):
    num_weights: int
    num_bits: int  # of all its tensors


def stored(path: str | Path) -> StoredSize:
    """Return the size of a checkpoint, from its headers alone.

    Args:
        path: a safetensors file, or a folder of its shards.
    Source: the safetensors format.
    Raises: DamagedError for a file that is no checkpoint, or InvalidValueError where weights cannot be counted.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> from moe_theory import generalization
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_file({"experts": np.zeros((4, 3), np.float16)}, path)
        >>> generalization.stored(path)
        StoredSize(num_weights=12, num_bits=192)
    """
    tensors = open_checkpoint(Path(path))
    packed = sorted({tensor.kind for tensor in tensors} & _PACKED)
    num_weights = sum(tensor.num_weights for tensor in tensors)
    if packed or not num_weights:
        reason = f"several are packed into a number ({', '.join(packed)})" if packed else "there are none"
        raise InvalidValueError(
            f"{path} does not say how many weights it has: {reason}. Give --weights and --bits in its place."
        )
    return StoredSize(num_weights, sum(tensor.num_bits for tensor in tensors))


def fields(
    checkpoint: Path | None, num_errors: int | None, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return fields of a `calculator.Setting` that files give, and notes.

    Args:
        values: the fields that are given otherwise.
    Raises: InvalidValueError for unreadable files, too little in them, or fields given twice.
    """
    if num_errors is not None or (checkpoint is not None and "training_error" in values):
        return _trained(checkpoint, num_errors, values)
    if checkpoint is None:
        return {}, []
    for name in ("num_weights", "bits"):
        if name in values:
            raise InvalidValueError(f"{name}={values[name]} is what --checkpoint {checkpoint} says. Drop one of both.")
    size = stored(checkpoint)
    return _sizes(size.num_weights, size.num_bits), [
        f"By its headers {checkpoint.name} has {size.num_weights:,} weights in {size.num_bits:,} bits.",
        "Tokens of a text are not independent samples: m counts independent ones, such as documents.",
    ]


def _sizes(num_weights: int, num_bits: int) -> dict[str, Any]:
    bits, remainder = divmod(num_bits, num_weights)
    if remainder or not bits:
        return {"num_weights": num_weights, "num_bits": num_bits}
    return {"num_weights": num_weights, "bits": bits}


def _trained(
    checkpoint: Path | None, num_errors: int | None, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    if checkpoint is None:
        raise InvalidValueError("--errors needs --checkpoint, the weights of the model that makes them. Name it.")
    if "num_samples" not in values:
        raise InvalidValueError("--errors needs --samples, and training_error num_samples: how many it is of. Give it.")
    num_samples = values["num_samples"]
    training_error = values.get("training_error")
    if num_errors is not None:
        if training_error is not None:
            raise InvalidValueError("num_errors and training_error say the same. Drop one of both.")
        if not 0 <= num_errors <= num_samples:
            raise InvalidValueError(f"--errors {num_errors} must be from 0 to --samples {num_samples}. Change one.")
        training_error = num_errors / max(num_samples, 1)
    model = certificate.code_of(checkpoint)
    fields = {"code_bits": model.num_bits, "training_error": training_error}
    if not values.keys() - {"num_samples", "delta", "bits", "training_error"}:
        num_bits = values["bits"] * model.num_weights if "bits" in values else model.stored_bits
        fields |= _sizes(model.num_weights, num_bits)
    return fields, [
        f"{checkpoint}: {model.num_weights:,} weights, {model.stored_bits:,} bits as stored and {model.num_bits:,} as "
        f"coded; training error {training_error:.4g} of {num_samples:,} samples."
    ]
