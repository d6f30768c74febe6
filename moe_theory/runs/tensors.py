"""Checkpoints in the safetensors format: a file, or a folder of shards. Headers say dtypes, shapes and sizes."""

import math
import os
import re
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from moe_theory.core.errors import DamagedError, shortened

INDEX = "model.safetensors.index.json"
NUMBERS = {  # dtypes that can be averaged
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}


class Tensor(NamedTuple):
    """Place of a tensor's bytes."""

    path: Path
    kind: str  # its dtype, as the format calls it: "BF16"
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    stop: int


class Checkpoint(NamedTuple):
    """The tensors of a checkpoint, not read yet."""

    path: Path
    tensors: dict[str, Tensor]  # by name


def open_checkpoint(path: Path) -> Checkpoint:
    """Read the headers of a file, or of all shards in a folder.

    Raises: DamagedError, for shards that are missing, too.
    """
    if not os.path.isdir(path):  # which is false of names that no file can have
        return Checkpoint(path, _tensors_of(path))
    shards = sorted(path.glob("*.safetensors"))
    if not shards:
        raise DamagedError(f"{path} has no safetensors files. Name the folder that they are in.")
    match = re.search(r"-of-(\d{1,9})\.safetensors$", shards[0].name)
    if match and len(shards) != int(match[1]):
        raise DamagedError(
            f"the download of {path} is incomplete: {len(shards)} of {int(match[1])} shards are there. Finish it."
        )
    tensors: dict[str, Tensor] = {}
    for shard in shards:
        for name, tensor in _tensors_of(shard).items():
            if name in tensors:
                raise DamagedError(
                    f"{path} has {name} in {tensors[name].path.name} and in {shard.name}. Move one of them elsewhere."
                )
            tensors[name] = tensor
    return Checkpoint(path, tensors)


def array_of(tensor: Tensor) -> np.ndarray:
    """Return a floating-point tensor, memory-mapped."""
    data = np.memmap(tensor.path, np.uint8, "r")[tensor.start : tensor.stop]
    return data.view(NUMBERS[tensor.kind]).reshape(tensor.shape)


def _tensors_of(path: Path) -> dict[str, Tensor]:
    """Return the places of a file's tensors, in the order of their bytes."""
    try:
        path.open("rb").close()
        with safe_open(path, framework="np") as file:  # checks the header against itself and the file's size
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            kinds = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
        start = path.stat().st_size - sum(_num_bytes(*kind) for kind in kinds.values())  # tensors have no gaps
    except SafetensorError as failure:
        raise DamagedError(
            f"{path} is damaged, truncated or not a safetensors file ({shortened(str(failure))}). Fetch it again."
        ) from None
    except (OSError, ValueError, MemoryError) as failure:  # of more bytes than can be mapped, too
        reason = getattr(failure, "strerror", None) or failure
        raise DamagedError(f"{path} cannot be read ({reason}). Change the path.") from None
    tensors = {}
    for name, (kind, shape) in kinds.items():
        stop = start + _num_bytes(kind, shape)
        tensors[name] = Tensor(path, kind, shape, start, stop)
        start = stop
    return tensors


def _num_bytes(kind: str, shape: tuple[int, ...]) -> int:
    bits = re.search(r"\d+", kind)  # "BF16", "F8_E4M3"; "BOOL" takes a byte
    return math.prod(shape) * (int(bits[0]) if bits else 8) // 8
