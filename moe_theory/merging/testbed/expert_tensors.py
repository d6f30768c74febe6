"""Which tensors of an MoE checkpoint are its experts', found by the pattern of their names.

A checkpoint is a file, or a folder of shards with an index as Hugging Face's libraries write it.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from moe_theory.core.errors import shortened
from moe_theory.merging.testbed.pattern import Match, Pattern, compiled, nothing_matches
from moe_theory.merging.testbed.tensors import Header, InvalidCheckpointError, Tensor, read_header

INDEX = "model.safetensors.index.json"
NUMBERS = {kind: np.dtype(kept) for kind, kept in zip(
    ("F64", "F32", "F16", "BF16"), (np.float64, np.float32, np.float16, jnp.bfloat16), strict=True
)}  # fmt: skip


class Checkpoint(NamedTuple):
    """The tensors of a checkpoint, found but not read."""

    path: Path
    shards: dict[str, Header]  # by file name; of a single file, that one
    tensors: dict[str, Tensor]


class ExpertTensors(NamedTuple):
    """Which of a checkpoint's tensors are its experts'."""

    checkpoint: Checkpoint
    layers: dict[int, dict[str, tuple[str, ...]]]  # by layer and name within the expert: K full names, in expert order
    overlooked: tuple[str, ...]  # names that begin as an expert's, and do not fit the pattern

    def num_experts(self, layer: int) -> int:
        """K, the number of experts of a layer."""
        return len(next(iter(self.layers[layer].values())))


def load_experts(path: Path | str, pattern: str) -> dict[int, dict[str, np.ndarray]]:
    """The experts' tensors by layer and by name within the expert, each (K, ...) in its own type of numbers.

    Args:
        pattern: of the tensors' names, such as "model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}"; without
            {name}, what follows the last placeholder is the name.
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
    """Which tensors are experts', checked, without reading them.

    Raises: InvalidCheckpointError where the checkpoint or the pattern cannot be read; where nothing fits; where a layer
        has one expert, lacks a number, or has experts that differ in tensors, shapes or types; where numbers are
        quantised.
    """
    checkpoint, named = open_checkpoint(Path(path)), compiled(pattern)
    matches = {name: match for name in checkpoint.tensors if (match := named.match(name)) is not None}
    if not matches:
        raise nothing_matches(named, checkpoint.tensors, checkpoint.path)
    experts: dict[int, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for name, match in matches.items():
        experts[match.layer][match.expert][match.name] = name
    layers = {layer: _checked(checkpoint, named, layer, experts[layer]) for layer in sorted(experts)}
    return ExpertTensors(checkpoint, layers, tuple(name for name in checkpoint.tensors if named.overlooks(name)))


def open_checkpoint(path: Path) -> Checkpoint:
    """A file or a folder of shards. Raises: InvalidCheckpointError."""
    if not path.is_dir():
        header = read_header(path)
        return Checkpoint(path, {path.name: header}, header.tensors)
    if not (path / INDEX).is_file():
        files = sorted(path.glob("*.safetensors"))
        if len(files) == 1:
            header = read_header(files[0])
            return Checkpoint(path, {files[0].name: header}, header.tensors)
        raise InvalidCheckpointError(
            f"{path} has no {INDEX} and {len(files)} safetensors files, one of which would do. Change the path."
        )
    shard_of = _shard_of(path / INDEX)
    shards = {name: read_header(path / name) for name in sorted(set(shard_of.values()))}
    for name, shard in shard_of.items():
        if name not in shards[shard].tensors:
            raise InvalidCheckpointError(f"{path / INDEX} puts {name} into {shard}, where it is not. Fetch both again.")
    return Checkpoint(path, shards, {name: shards[shard].tensors[name] for name, shard in shard_of.items()})


def array_of(tensor: Tensor) -> np.ndarray:
    """A tensor of floating-point numbers, mapped and not read."""
    return tensor.bytes().view(NUMBERS[tensor.kind]).reshape(tensor.shape)


def _shard_of(index: Path) -> dict[str, str]:
    try:
        shard_of = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if not shard_of or any(Path(shard).name != shard for shard in shard_of.values()):
            raise ValueError("its weight_map must name files beside it")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise InvalidCheckpointError(
            f"{index} is no index of a checkpoint ({shortened(str(failure))}). Fetch it again."
        ) from None
    return shard_of


def _checked(
    checkpoint: Checkpoint, pattern: Pattern, layer: int, experts: dict[int, dict[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Names by name within the expert, where the layer's experts are alike."""
    if len(experts) < 2:
        raise InvalidCheckpointError(
            f"layer {layer} has 1 expert by {shortened(pattern.text)}, but merging takes 2 or more. Change the pattern."
        )
    there = ", ".join(map(str, sorted(experts)))
    if missing := sorted(set(range(max(experts))) - set(experts)):
        raise InvalidCheckpointError(
            f"layer {layer} has the experts {there}, but not {missing[0]}: they must be numbered from 0. Complete it."
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
