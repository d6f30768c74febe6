"""Checkpoints in the safetensors format: a file, or a folder of shards with an index, as Hugging Face's libraries do.

Headers are read alone, and say of each tensor its dtype, its shape and where its bytes are.
"""

import math
import os
import re
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from moe_theory.core.errors import MoeTheoryError, shortened
from moe_theory.runs.files import read_json


class InvalidCheckpointError(MoeTheoryError):
    """A checkpoint that cannot be read, or whose experts are not what a merge needs."""


class Tensor(NamedTuple):
    """Place of a tensor's bytes."""

    path: Path
    kind: str  # its dtype, as the format calls it: "BF16"
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    stop: int

    def bytes(self) -> np.ndarray:
        """Its bytes, memory-mapped."""
        with self.path.open("rb") as file:
            return np.memmap(file, np.uint8, "r")[self.start : self.stop]


class Header(NamedTuple):
    """A file's metadata and tensors."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]  # by name, in the order of their bytes


def read_header(path: Path) -> Header:
    """The metadata of a file, and the names and places of its tensors.

    Raises: InvalidCheckpointError for a file that is missing, damaged or of another format.
    """
    path = Path(path)
    if os.path.isdir(path):  # which is false of names that no file can have
        raise InvalidCheckpointError(f"{path} is a folder, but one file is read here. Name a file in it.")
    try:
        path.open("rb").close()
        with safe_open(path, framework="np") as file:  # checks the header against itself and the file's size
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            metadata = file.metadata() or {}
            kinds = {name: (own.get_dtype(), tuple(own.get_shape())) for name, own in slices.items()}
        start = path.stat().st_size - sum(_num_bytes(*kind) for kind in kinds.values())  # tensors have no gaps
    except FileNotFoundError:
        raise InvalidCheckpointError(f"{path} is not there. Change the path.") from None
    except SafetensorError as failure:
        raise InvalidCheckpointError(
            f"{path} is damaged, truncated or not a safetensors file ({shortened(str(failure))}). Fetch it again."
        ) from None
    except (OSError, ValueError, MemoryError) as failure:  # of more bytes than can be mapped, too
        raise InvalidCheckpointError(
            f"{path} cannot be read ({getattr(failure, 'strerror', None) or failure}). Change the path."
        ) from None
    tensors = {}
    for name, (kind, shape) in kinds.items():
        stop = start + _num_bytes(kind, shape)
        tensors[name] = Tensor(path, kind, shape, start, stop)
        start = stop
    return Header(metadata, tensors)


def _num_bytes(kind: str, shape: tuple[int, ...]) -> int:
    bits = re.search(r"\d+", kind)  # "BF16", "F8_E4M3"; "BOOL" takes a byte
    return math.prod(shape) * (int(bits[0]) if bits else 8) // 8


INDEX = "model.safetensors.index.json"
_NUMBERED = re.compile(r"(.*-)([0-9]{1,9})-of-([0-9]{1,9})\.safetensors")  # names of shards
_MOST_SHARDS = 100_000  # that a name may announce
NUMBERS = {  # dtypes that can be averaged
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}


class Checkpoint(NamedTuple):
    """The tensors of a checkpoint, not read yet."""

    path: Path
    shards: dict[str, Header]  # by file name
    tensors: dict[str, Tensor]


def open_checkpoint(path: Path) -> Checkpoint:
    """Read the headers of a file or of a folder of shards, with or without an index. Raises: InvalidCheckpointError,
    for shards that are missing, too.
    """
    if not os.path.isdir(path):
        header = read_header(path)
        return Checkpoint(path, {path.name: header}, header.tensors)
    if (path / INDEX).is_file():
        shard_of = _shard_of(path / INDEX)
        names = sorted(set(shard_of.values()))
        if len(names) > 1:
            _require_all(path, names)
        shards = {name: read_header(path / name) for name in names}
        for name, shard in shard_of.items():
            if name not in shards[shard].tensors:
                raise InvalidCheckpointError(
                    f"{path / INDEX} puts {name} into {shard}, where it is not. Fetch both again."
                )
        return Checkpoint(path, shards, {name: shards[shard].tensors[name] for name, shard in shard_of.items()})
    names = sorted(file.name for file in path.glob("*.safetensors"))
    if not names:
        raise InvalidCheckpointError(f"{path} has no safetensors files. Name the folder that they are in.")
    for counted in {(found[1], len(found[2]), found[3]) for found in map(_NUMBERED.fullmatch, names) if found}:
        prefix, width, total = counted
        numbers = range(1, min(int(total), _MOST_SHARDS) + 1)
        _require_all(path, [f"{prefix}{number:0{width}}-of-{total}.safetensors" for number in numbers])
    shards = {name: read_header(path / name) for name in names}
    tensors: dict[str, Tensor] = {}
    for shard, header in shards.items():
        for name, tensor in header.tensors.items():
            if (other := tensors.setdefault(name, tensor)) is not tensor:
                raise InvalidCheckpointError(
                    f"{path} has {name} in {other.path.name} and in {shard}, and no {INDEX} says which counts. Move "
                    "one of them elsewhere."
                )
    return Checkpoint(path, shards, tensors)


def _require_all(folder: Path, names: list[str]) -> None:
    """Refuse a download of which shards are missing."""
    if missing := [name for name in names if not os.path.lexists(folder / name)]:
        raise InvalidCheckpointError(
            f"the download of {folder} is incomplete: {len(names) - len(missing)} of {len(names)} shards are there, "
            f"{missing[0]} is not. Finish it."
        )


def array_of(tensor: Tensor) -> np.ndarray:
    """A floating-point tensor, memory-mapped."""
    return tensor.bytes().view(NUMBERS[tensor.kind]).reshape(tensor.shape)


def _shard_of(index: Path) -> dict[str, str]:
    try:
        shard_of = read_json(index)["weight_map"]
        if not shard_of or any(Path(shard).name != shard for shard in shard_of.values()):
            raise ValueError("its weight_map must name files beside it")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise InvalidCheckpointError(
            f"{index} is no index of a checkpoint ({shortened(str(failure))}). Fetch it again."
        ) from None
    return shard_of
