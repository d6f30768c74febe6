"""MoE checkpoints of one's own: their experts, and a merged expert in their place.

What is merged is written tensor by tensor, so that memory does not grow with the checkpoint.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from moe_theory.core.errors import InvalidParamsError, OutputError
from moe_theory.merging.testbed.expert_tensors import INDEX, NUMBERS, ExpertTensors, array_of
from moe_theory.merging.testbed.expert_tensors import find_experts as find_experts
from moe_theory.merging.testbed.expert_tensors import load_experts as load_experts
from moe_theory.merging.testbed.tensors import Header, Tensor
from moe_theory.merging.testbed.tensors import InvalidCheckpointError as InvalidCheckpointError
from moe_theory.merging.testbed.tensors import read_safetensors as read_safetensors
from moe_theory.merging.testbed.tensors import write_safetensors as write_safetensors
from moe_theory.runs.files import whole

_PIECE = 1 << 22  # numbers or bytes that are handled at once
_SUM_TOLERANCE = 1e-5  # weights may have been computed in single precision
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"}  # files that are not copied


class Merged(NamedTuple):
    """What a merge wrote."""

    num_layers: int
    num_experts: int  # K, of each layer
    num_merged: int  # tensors that are an average now
    num_copied: int
    bytes_before: int  # of all tensors
    bytes_after: int


class _Planned(NamedTuple):
    """A tensor to write: the average of `sources` by the weights, or the only one as it is."""

    name: str
    sources: tuple[Tensor, ...]


def merge_checkpoint(path: Path | str, pattern: str, weights: Sequence[float] | np.ndarray, out: Path | str) -> Merged:
    """Write the checkpoint with one expert a layer, the weighted average of its K experts, under expert 0's names.

    All other tensors, metadata and files beside the shards are copied as they are: a router keeps its K outputs, and a
    configuration its K experts. Averages are taken in double precision and stored in the experts' own type of numbers.

    Args:
        weights: (K,) not negative, of sum 1; the same in all layers.
        out: a file for a file, a folder for a folder; not there yet.
    Raises: InvalidCheckpointError as `find_experts` does, and where the pattern fits some of an expert's tensors only;
        InvalidParamsError for other weights; OutputError where `out` is there or cannot be written.
    """
    found, out = find_experts(path, pattern), Path(out)
    shares = _checked(weights, found)
    if found.overlooked:
        raise InvalidCheckpointError(
            f"{found.overlooked[0]} belongs to an expert, but does not fit the pattern {pattern!r}: experts are merged "
            "whole. Put {name} where its tensors differ."
        )
    if out.exists():
        raise OutputError(f"{out} is there already: name another place.")
    plans = _plans(found)
    with whole(out) as temporary:
        if found.checkpoint.path.is_dir():
            temporary.mkdir()
            _write_folder(temporary, found, plans, shares)
        else:
            shard = found.checkpoint.path.name
            _write_file(temporary, found.checkpoint.shards[shard], plans[shard], shares)
    planned = [tensor for plan in plans.values() for tensor in plan]
    num_merged = sum(len(tensor.sources) > 1 for tensor in planned)
    return Merged(
        len(found.layers),
        len(shares),
        num_merged,
        len(planned) - num_merged,
        sum(_size(tensor) for tensor in found.checkpoint.tensors.values()),
        sum(_size(tensor.sources[0]) for tensor in planned),
    )


def _checked(weights: Sequence[float] | np.ndarray, found: ExpertTensors) -> np.ndarray:
    shares = np.asarray(weights, np.float64)
    for layer in found.layers:
        if shares.shape != (found.num_experts(layer),):
            raise InvalidParamsError(
                f"weights have shape {shares.shape}, but layer {layer} has {found.num_experts(layer)} experts. Give "
                "one weight each."
            )
    if not np.all(shares >= 0) or abs(np.sum(shares) - 1) > _SUM_TOLERANCE:
        raise InvalidParamsError(
            f"weights={shares.tolist()} must not be negative and must sum to 1, as a merged expert is an average. "
            "Divide them by their sum."
        )
    return shares


def _plans(found: ExpertTensors) -> dict[str, list[_Planned]]:
    """What to write into each shard: an expert's tensors go where expert 0 has them."""
    tensors = found.checkpoint.tensors
    groups = [names for parts in found.layers.values() for names in parts.values()]
    group_of = {names[0]: names for names in groups}
    dropped = {name for names in groups for name in names[1:]}
    plans: dict[str, list[_Planned]] = {shard: [] for shard in found.checkpoint.shards}
    for name, tensor in tensors.items():
        if name not in dropped:
            sources = tuple(tensors[one] for one in group_of.get(name, (name,)))
            plans[tensor.path.name].append(_Planned(name, sources))
    return {shard: sorted(plan, key=lambda tensor: tensor.sources[0].start) for shard, plan in plans.items() if plan}


def _write_folder(out: Path, found: ExpertTensors, plans: dict[str, list[_Planned]], shares: np.ndarray) -> None:
    checkpoint = found.checkpoint
    for shard, plan in plans.items():
        _write_file(out / shard, checkpoint.shards[shard], plan, shares)
    for path in checkpoint.path.iterdir():
        if path.is_file() and path.suffix not in _WEIGHTS and path.name != INDEX:
            shutil.copyfile(path, out / path.name)
    if (checkpoint.path / INDEX).is_file():
        index = json.loads((checkpoint.path / INDEX).read_text(encoding="utf-8"))
        total = sum(_size(tensor.sources[0]) for plan in plans.values() for tensor in plan)
        index["metadata"] = {**(index.get("metadata") or {}), "total_size": total}
        index["weight_map"] = {tensor.name: shard for shard, plan in plans.items() for tensor in plan}
        (out / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write_file(out: Path, header: Header, plan: list[_Planned], shares: np.ndarray) -> None:
    entries: dict[str, object] = {"__metadata__": header.metadata} if header.metadata else {}
    end = 0
    for tensor in plan:
        first = tensor.sources[0]
        start, end = end, end + _size(first)
        entries[tensor.name] = {"dtype": first.kind, "shape": list(first.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors begin aligned
    with out.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in plan:
            _copy(file, tensor.sources[0]) if len(tensor.sources) == 1 else _average(file, tensor.sources, shares)


def _copy(file: IO[bytes], tensor: Tensor) -> None:
    data = tensor.bytes()
    for start in range(0, len(data), _PIECE):
        file.write(data[start : start + _PIECE].tobytes())


def _average(file: IO[bytes], tensors: tuple[Tensor, ...], shares: np.ndarray) -> None:
    arrays = [array_of(tensor).reshape(-1) for tensor in tensors]
    for start in range(0, arrays[0].size, _PIECE):
        pieces = (
            share * array[start : start + _PIECE].astype(np.float64)
            for share, array in zip(shares, arrays, strict=True)
            if share > 0
        )
        total = next(pieces)
        for piece in pieces:
            total += piece
        file.write(total.astype(NUMBERS[tensors[0].kind]).tobytes())


def _size(tensor: Tensor) -> int:
    return tensor.stop - tensor.start
