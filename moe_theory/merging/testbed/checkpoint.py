"""MoE checkpoints in the safetensors format: find their experts, read them, and merge them into one a layer.

A checkpoint is a file, or a folder of shards with an index as Hugging Face's libraries write it. A pattern of tensor
names, "model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}", says which tensors are the experts'. Merged
tensors are written one by one, so that memory does not grow with the checkpoint.
"""

import difflib
import itertools
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from moe_theory.core.errors import InvalidParamsError, OutputError, shortened
from moe_theory.runs.files import read_json, whole
from moe_theory.runs.tensors import (
    INDEX,
    NAME,
    NUMBERS,
    SEAL,
    Checkpoint,
    Header,
    InvalidCheckpointError,
    Tensor,
    array_of,
    open_checkpoint,
)

_PARTS = {"layer": r"[0-9]{1,9}", "expert": r"[0-9]{1,9}", "name": r".+"}
_NEAREST = 3
_MOST_NAMED = 16  # experts, in a message


class Match(NamedTuple):
    """A tensor of an expert."""

    layer: int
    expert: int
    name: str  # of the tensor within the expert


class Pattern(NamedTuple):
    """A compiled pattern of tensor names."""

    text: str
    whole: re.Pattern[str]
    expert: re.Pattern[str]  # its beginning, up to the expert's number

    def match(self, name: str) -> Match | None:
        """Layer, expert and name of a tensor; None where the pattern does not match."""
        found = self.whole.fullmatch(name)
        if found is None:
            return None
        parts = found.groupdict()
        within = parts.get("name") or re.split(r"\{\w+\}", self.text)[-1].strip("._/")
        return Match(int(parts["layer"]), int(parts["expert"]), within)

    def overlooks(self, name: str) -> bool:
        """Whether a name begins like an expert's tensor but does not match."""
        found = self.expert.match(name)
        return found is not None and not name[found.end() :][:1].isalnum() and self.match(name) is None


def compiled(text: str) -> Pattern:
    """Compile a pattern with the placeholders {layer}, {expert} and, where an expert has several tensors, {name}.

    Raises: InvalidCheckpointError for other placeholders, or where {layer} or {expert} is missing.
    """
    pieces = re.split(r"\{(\w*)\}", text)
    for placeholder in pieces[1::2]:
        if placeholder not in _PARTS:
            raise InvalidCheckpointError(
                f"pattern {shortened(text)} has the placeholder {{{placeholder}}}, but only {{layer}}, {{expert}} and "
                "{name} are known. Change the pattern."
            )
    for needed in ("layer", "expert"):
        if needed not in pieces[1::2]:
            raise InvalidCheckpointError(f"pattern {shortened(text)} must have {{{needed}}} in it. Add it.")
    expressions = [re.escape(piece) for piece in pieces]
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        is_first = name not in pieces[1:place:2]
        expressions[place] = f"(?P<{name}>{_PARTS[name]})" if is_first else f"(?P={name})"
    last = len(pieces) - 1 - pieces[::-1].index("expert")
    return Pattern(text, re.compile("".join(expressions)), re.compile("".join(expressions[: last + 1])))


def nothing_matches(pattern: Pattern, names: Iterable[str], place: object) -> InvalidCheckpointError:
    """The error for a pattern that matches no name, with the nearest names; one of those that differ in numbers."""
    kinds: dict[str, str] = {}
    for name in names:
        kinds.setdefault(re.sub(r"\d+", "0", name), name)
    model = re.sub(r"\{(layer|expert)\}", "0", pattern.text)
    near = difflib.get_close_matches(model, list(kinds), n=_NEAREST, cutoff=0.0)
    listed = ", ".join(kinds[kind] for kind in near) or "none, it has no tensors"
    return InvalidCheckpointError(
        f"no tensor of {place} is named by {shortened(pattern.text)}. Nearest: {listed}. Change the pattern."
    )


class ExpertTensors(NamedTuple):
    """Which of a checkpoint's tensors are its experts'."""

    checkpoint: Checkpoint
    layers: dict[int, dict[str, tuple[str, ...]]]  # by layer and name within the expert: K full names, in expert order
    overlooked: tuple[str, ...]  # names that begin like an expert's but do not match the pattern

    def num_experts(self, layer: int) -> int:
        """K, the number of experts of a layer."""
        return len(next(iter(self.layers[layer].values())))


def load_experts(path: Path | str, pattern: str) -> dict[int, dict[str, np.ndarray]]:
    """The experts' tensors by layer and by name within the expert, each (K, ...) in its own dtype.

    Raises: InvalidCheckpointError, as `find_experts` does.
    """
    found = find_experts(path, pattern)
    return {
        layer: {
            name: np.stack([array_of(found.checkpoint.tensors[full]) for full in names])
            for name, names in parts.items()
        }
        for layer, parts in found.layers.items()
    }


def find_experts(path: Path | str, pattern: str) -> ExpertTensors:
    """Find and check the experts' tensors without reading them.

    Raises: InvalidCheckpointError where the checkpoint or the pattern cannot be read; where nothing matches; where a
        layer has one expert, a gap in their numbers, or experts that differ in tensors, shapes or dtypes; where they
        are quantised.
    """
    checkpoint, named = open_checkpoint(Path(path)), compiled(pattern)
    matches = {name: match for name in checkpoint.tensors if (match := named.match(name)) is not None}
    if not matches:
        raise nothing_matches(named, checkpoint.tensors, checkpoint.path)
    experts: dict[int, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for name, match in matches.items():
        other = experts[match.layer][match.expert].setdefault(match.name, name)
        if other != name:
            raise InvalidCheckpointError(
                f"{checkpoint.path} has {shortened(other)} and {shortened(name)}, which {shortened(named.text)} takes "
                "for the same tensor. Rename one, or change the pattern."
            )
    layers = {layer: _checked_layer(checkpoint, named, layer, experts[layer]) for layer in sorted(experts)}
    return ExpertTensors(checkpoint, layers, tuple(name for name in checkpoint.tensors if named.overlooks(name)))


def _checked_layer(
    checkpoint: Checkpoint, pattern: Pattern, layer: int, experts: dict[int, dict[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Full names by name within the expert, once the layer's experts are known to be alike."""
    if len(experts) < 2:
        raise InvalidCheckpointError(
            f"layer {layer} has 1 expert by {shortened(pattern.text)}, but merging takes 2 or more. Change the pattern."
        )
    missing = next(number for number in itertools.count() if number not in experts)
    if missing < len(experts):
        there = ", ".join(map(str, sorted(experts)[:_MOST_NAMED])) + (", ..." if len(experts) > _MOST_NAMED else "")
        raise InvalidCheckpointError(
            f"layer {layer} has the experts {there}, but not {missing}: they must be numbered from 0. Complete it."
        )
    names = sorted({name for parts in experts.values() for name in parts})
    for name in names:
        for expert in range(len(experts)):
            if name not in experts[expert]:
                raise InvalidCheckpointError(
                    f"expert {expert} of layer {layer} has no {name}, which other experts have. Change the pattern, or "
                    "complete the checkpoint."
                )
            _require_alike(checkpoint, Match(layer, expert, name), experts[0][name], experts[expert][name])
    return {name: tuple(experts[expert][name] for expert in range(len(experts))) for name in names}


def _require_alike(checkpoint: Checkpoint, match: Match, first_name: str, own_name: str) -> None:
    first, own = checkpoint.tensors[first_name], checkpoint.tensors[own_name]
    if own.shape != first.shape:
        raise InvalidCheckpointError(
            f"{own_name} has shape {own.shape}, but {first_name} has {first.shape}: experts of a layer must be alike."
        )
    if own.kind not in NUMBERS:
        raise InvalidCheckpointError(
            f"{own_name} has numbers of type {own.kind}, but only {', '.join(NUMBERS)} can be averaged: the average of "
            "quantised numbers is not that of the weights. Dequantise the checkpoint."
        )
    if own.kind != first.kind:
        raise InvalidCheckpointError(
            f"{own_name} is {own.kind}, but {first_name} is {first.kind}: experts of a layer must be alike. Change it."
        )


_PIECE = 1 << 22  # numbers or bytes that are processed at once
_SUM_TOLERANCE = 1e-5  # weights may have been computed in single precision
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"}  # not copied


class Merged(NamedTuple):
    """What a merge wrote."""

    num_layers: int
    num_experts: int  # K, of each layer
    num_merged: int  # tensors that are averages
    num_copied: int
    bytes_before: int  # of all tensors
    bytes_after: int


class _Planned(NamedTuple):
    """A tensor to write: the weighted average of `sources`, or a copy of a single one."""

    name: str
    sources: tuple[Tensor, ...]


def merge_checkpoint(path: Path | str, pattern: str, weights: Sequence[float] | np.ndarray, out: Path | str) -> Merged:
    """Write the checkpoint with one expert a layer, the weighted average of its K experts, under expert 0's names.

    All other tensors, metadata and files beside the shards are copied: a router keeps its K outputs, and a
    configuration its K experts. Averages are taken in double precision and stored in the experts' dtype.

    Args:
        weights: (K,), not negative, with sum 1; the same in all layers.
        out: a file for a file, a folder for a folder; must not exist.
    Raises: InvalidCheckpointError as `find_experts` does, and where the pattern matches only some of an expert's
        tensors; InvalidParamsError for other weights; OutputError where `out` exists or cannot be written.
    """
    found, out = find_experts(path, pattern), Path(out)
    shares = _checked_weights(weights, found)
    if found.overlooked:
        raise InvalidCheckpointError(
            f"{found.overlooked[0]} belongs to an expert, but does not match the pattern {pattern!r}: experts are "
            "merged whole. Put {name} where its tensors differ."
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


def _checked_weights(weights: Sequence[float] | np.ndarray, found: ExpertTensors) -> np.ndarray:
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
    """What to write into each shard: merged tensors go where expert 0's are."""
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
        index = read_json(checkpoint.path / INDEX)
        total = sum(_size(tensor.sources[0]) for plan in plans.values() for tensor in plan)
        index["metadata"] = {**(index.get("metadata") or {}), "total_size": total}
        index["weight_map"] = {tensor.name: shard for shard, plan in plans.items() for tensor in plan}
        (out / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write_file(out: Path, header: Header, plan: list[_Planned], shares: np.ndarray) -> None:
    metadata = {name: text for name, text in header.metadata.items() if name not in (SEAL, NAME)}
    entries: dict[str, object] = {"__metadata__": metadata} if metadata else {}
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
