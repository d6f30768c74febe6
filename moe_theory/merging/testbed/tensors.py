"""Files of tensors in the safetensors format: read and written whole, or looked into without reading their tensors.

The format: eight bytes with the length of a header, the header in JSON, the tensors' bytes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from moe_theory.core.errors import MoeTheoryError
from moe_theory.runs.files import whole


class InvalidCheckpointError(MoeTheoryError):
    """A checkpoint that cannot be read, or whose experts are not what a merge needs."""


class Tensor(NamedTuple):
    """Where a tensor's bytes are."""

    path: Path
    kind: str  # of its numbers, as the format calls it: "BF16"
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    stop: int

    def bytes(self) -> np.ndarray:
        """Its bytes, mapped and not read."""
        return np.memmap(self.path, np.uint8, "r")[self.start : self.stop]


class Header(NamedTuple):
    """What a file says of itself."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]  # by name, in the order of their bytes


def read_header(path: Path) -> Header:
    """The names and places of a file's tensors.

    Raises: InvalidCheckpointError for what is no whole safetensors file.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidCheckpointError(f"{path} is a folder, and one file is read here. Name a file in it.")
    try:
        with safe_open(path, framework="np"):  # checks all that the header says against itself and the file's size
            pass
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except FileNotFoundError:
        raise InvalidCheckpointError(f"{path} is not there. Change the path.") from None
    except SafetensorError as failure:
        raise InvalidCheckpointError(f"{path} {_cause(path)} ({failure}). Fetch or write it again.") from None
    except OSError as failure:
        raise InvalidCheckpointError(
            f"{path} cannot be read ({failure.strerror or failure}). Change the path."
        ) from None
    metadata = header.pop("__metadata__", None) or {}
    found = {
        name: Tensor(path, entry["dtype"], tuple(entry["shape"]), *(8 + length + end for end in entry["data_offsets"]))
        for name, entry in header.items()
    }
    return Header(metadata, dict(sorted(found.items(), key=lambda item: item[1].start)))


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """A file's arrays by name, and its metadata.

    Raises: InvalidCheckpointError for what is no whole safetensors file, or has numbers that NumPy does not know.
    """
    header = read_header(path)
    with safe_open(path, framework="np") as file:
        try:
            return {name: file.get_tensor(name) for name in header.tensors}, header.metadata
        except (AttributeError, SafetensorError) as failure:
            raise InvalidCheckpointError(f"{path} has tensors that NumPy cannot hold ({failure}).") from None


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write a file whole or not at all. Raises: OutputError where it cannot be written."""
    with whole(Path(path)) as temporary:
        dense = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
        try:
            save_file(dense, temporary, dict(metadata))
        except SafetensorError as failure:
            raise OSError(str(failure)) from None


def _cause(path: Path) -> str:
    """What is wrong with a file that the library does not take, as far as its first bytes show it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(9)
        length = int.from_bytes(start[:8], "little")
        if len(start) < 9 or start[8:] != b"{":
            return "is not a safetensors file"
        if 8 + length > size:
            return f"is truncated, or not a safetensors file: {size} bytes, but its header would end at {8 + length}"
        file.seek(8)
        try:
            entries = json.loads(file.read(length))
            end = (
                8
                + length
                + max(
                    (entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"), default=0
                )
            )
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "is not a safetensors file"
    return f"is truncated: {size} of {end} bytes" if end > size else "is damaged"
