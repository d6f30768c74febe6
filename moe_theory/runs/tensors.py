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
from moe_theory.runs.files import read_json

INDEX = "model.safetensors.index.json"
NUMBERS = {  # dtypes that can be averaged
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_NUM_SHARDS = re.compile(r"-of-([0-9]{1,9})\.safetensors$")  # at the end of a shard's name


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
    """Read the headers of a file, or of a folder of shards with or without an index.

    Raises: DamagedError, for shards that are missing, too.
    """
    if not os.path.isdir(path):  # which is false of names that no file can have
        return Checkpoint(path, _tensors_of(path))
    index = path / INDEX
    names = _shards_of(index) if index.is_file() else sorted(file.name for file in path.glob("*.safetensors"))
    if not names:
        raise DamagedError(f"{path} has no safetensors files. Name the folder that they are in.")
    match = _NUM_SHARDS.search(names[0])
    num_shards = int(match[1]) if match else len(names)
    num_present = sum((path / name).exists() for name in names)
    if num_present < num_shards:
        raise DamagedError(
            f"the download of {path} is incomplete: {num_present} of {num_shards} shards are there. Finish it."
        )
    tensors: dict[str, Tensor] = {}
    for shard in names:
        for name, tensor in _tensors_of(path / shard).items():
            if name in tensors:
                raise DamagedError(
                    f"{path} has {name} in {tensors[name].path.name} and in {shard}. Move one of them elsewhere."
                )
            tensors[name] = tensor
    return Checkpoint(path, tensors)


def array_of(tensor: Tensor) -> np.ndarray:
    """Return a floating-point tensor, memory-mapped."""
    with tensor.path.open("rb") as file:
        data = np.memmap(file, np.uint8, "r")[tensor.start : tensor.stop]
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


def _shards_of(index: Path) -> list[str]:
    try:
        names = set(read_json(index)["weight_map"].values())
        if not names or any(Path(name).name != name for name in names):
            raise ValueError("its weight_map must name files beside it")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise DamagedError(
            f"{index} is no index of a checkpoint ({shortened(str(failure))}). Fetch it again."
        ) from None
    return sorted(names)
