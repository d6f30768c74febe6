"""Checkpoints in the safetensors format: a file, or a folder of shards."""

import itertools
import math
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from moe_theory.core.errors import DamagedError, shortened


class Tensor(NamedTuple):
    path: Path
    name: str
    kind: str  # its dtype, as the format calls it: "BF16"
    shape: tuple[int, ...]

    @property
    def num_weights(self) -> int:
        return math.prod(self.shape)

    @property
    def num_bits(self) -> int:
        bits = re.search(r"\d+", self.kind)  # "BF16", "F8_E4M3"; "BOOL" takes a byte
        return self.num_weights * (int(bits[0]) if bits else 8)

    def array(self) -> np.ndarray:
        with safe_open(self.path, framework="np") as file:
            return file.get_tensor(self.name)


def open_checkpoint(path: Path) -> list[Tensor]:
    """Read the headers (dtypes, shapes, sizes) of a file or a folder's shards. Raises: DamagedError."""
    is_folder = os.path.isdir(path)  # which is false of names that no file can have
    files = sorted(path.glob("*.safetensors")) if is_folder else [path]
    if not files:
        raise DamagedError(f"{path} has no safetensors files. Name the folder that they are in.")
    match = re.search(r"-of-(\d{1,9})\.safetensors$", files[0].name)
    if is_folder and match and len(files) != int(match[1]):
        raise DamagedError(
            f"the download of {path} is incomplete: {len(files)} of {int(match[1])} shards are there. Finish it."
        )
    tensors = list(itertools.chain.from_iterable(map(_tensors_of, files)))
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise DamagedError(f"{path} has a tensor in two files. Move one of them elsewhere.")
    return tensors


def _tensors_of(path: Path) -> list[Tensor]:
    try:
        path.open("rb").close()
        with safe_open(path, framework="np") as file:  # checks the header against itself and the file's size
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            return [Tensor(path, name, part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()]
    except SafetensorError as failure:
        raise DamagedError(
            f"{path} is damaged, truncated or not a safetensors file ({shortened(str(failure))}). Fetch it again."
        ) from None
    except (OSError, ValueError, MemoryError) as failure:  # of more bytes than can be mapped, too
        reason = getattr(failure, "strerror", None) or failure
        raise DamagedError(f"{path} cannot be read ({reason}). Change the path.") from None
