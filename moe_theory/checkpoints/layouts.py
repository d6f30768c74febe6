"""Layouts of experts in a checkpoint: one tensor each, or all of a layer in one tensor.

A pattern of names says which tensors are the experts'. With {expert} in it, each expert has its own,
"model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}"; [{expert}], or no {expert}, says that the first axis of
one tensor is the experts, "model.layers.{layer}.mlp.experts[{expert}].{name}", and [:,{expert}] the second. Without a
pattern, experts are found by the names that published checkpoints give them; shared experts are none of them.
"""

import difflib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import shortened
from moe_theory.runs.tensors import NUMBERS, Checkpoint, InvalidCheckpointError, Tensor, array_of, open_checkpoint

_PARTS = {"layer": r"[0-9]{1,9}", "expert": r"[0-9]{1,9}", "name": r".+"}
_AXIS = re.compile(r"\[((?::,)*)\{expert\}\]")  # what says that an axis is the experts
_GROUP = r"(?P<prefix>(?:.*\.)?)(?P<group>(?!shared)\w*experts)\."
_SEPARATE = re.compile(_GROUP + r"(?P<before>(?:expert_)?)(?P<expert>[0-9]{1,9})\.(?P<name>.+)")
_STACKED = (
    re.compile(_GROUP + r"(?P<name>.+)"),
    re.compile(r"(?P<prefix>.*\.)(?P<group>block_sparse_moe|moe)\.(?P<name>(?:input|output)_linear\.weight)"),
)
_ATTENTION = re.compile(r"(^|[._])att(entio)?n[._]")  # whose experts, of queries, are no feed-forward layers
_ROUTER = re.compile(r"(^|\.)(gate|router|wg)(\.|$)|correction_bias$")
_BESIDE = re.compile(rf"{_ROUTER.pattern}|^shared")
_NEAREST = 3
_MOST_NAMED = 16  # experts, in a message
WAY_OUT = (
    "Write it in 16 bits first; in Transformers (with accelerate): AutoModelForCausalLM.from_pretrained(FOLDER, "
    "dtype='bfloat16', quantization_config={config}(dequantize=True)).save_pretrained(OTHER)"
)


class Match(NamedTuple):
    """A tensor of an expert, or of all experts of a layer."""

    layer: int
    expert: int  # 0 where the tensor is all experts'
    name: str  # of the tensor within the expert


class Pattern(NamedTuple):
    """A compiled pattern of tensor names."""

    text: str
    whole: re.Pattern[str]
    expert: re.Pattern[str]  # its beginning, up to the expert's number, or to the name within all experts
    axis: int | None  # of the experts; None where each has tensors of its own

    def match(self, name: str) -> Match | None:
        """Layer, expert and name of a tensor; None where the pattern does not match."""
        found = self.whole.fullmatch(name)
        if found is None:
            return None
        parts = found.groupdict()
        within = parts.get("name") or re.split(r"\{\w+\}\]?", self.text)[-1].strip("._/")
        return Match(int(parts.get("layer", 0)), int(parts.get("expert", 0)), within)

    def overlooks(self, name: str) -> bool:
        """Whether a name begins like an expert's tensor but does not match."""
        found = self.expert.match(name) if self.axis is None else None
        return found is not None and not name[found.end() :][:1].isalnum() and self.match(name) is None

    def module(self, name: str) -> str:
        """The module that has the experts of a matching tensor, and their router."""
        found = self.expert.match(name)
        parts = name[: found.end()].rstrip(".").split(".") if found else []
        parts = parts[:-1] if self.axis is None else parts
        return ".".join(parts[:-1] if parts and parts[-1].endswith("experts") else parts)


def compiled(text: str) -> Pattern:
    """Compile a pattern with the placeholders {layer}, {expert} or an axis, and {name} for several tensors.

    Raises: InvalidCheckpointError for other placeholders, or where none says which experts or tensors there are.
    """
    axis = _AXIS.search(text)
    plain = _AXIS.sub("", text)
    known = re.findall(r"\{(\w*)\}", plain)
    for placeholder in known:
        if placeholder not in _PARTS:
            raise InvalidCheckpointError(
                f"pattern {shortened(text)} has the placeholder {{{placeholder}}}, but only {{layer}}, {{expert}} and "
                "{name} are known. Change the pattern."
            )
    if axis is None and not {"expert", "name"} & set(known):
        raise InvalidCheckpointError(
            f"pattern {shortened(text)} must have {{expert}} in it, or [{{expert}}] if an axis is the experts. Add it."
        )
    if "expert" in known:
        head, number = plain[: plain.rindex("{expert}") + len("{expert}")], None
    elif axis is not None:
        head, number = plain[: axis.start()], axis[1].count(":")
    else:
        head, number = plain[: plain.index("{name}")], 0
    return Pattern(text, _expression(plain), _expression(head), number)


def _expression(text: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w*)\}", text)
    expressions = [re.escape(piece) for piece in pieces]
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        is_first = name not in pieces[1:place:2]
        expressions[place] = f"(?P<{name}>{_PARTS[name]})" if is_first else f"(?P={name})"
    return re.compile("".join(expressions))


def discovered(names: Iterable[str]) -> list[str]:
    """Patterns of the experts' names as published checkpoints have them, in the order of the names."""
    found: dict[str, None] = {}
    for name in names:
        match = _SEPARATE.fullmatch(name) or next(filter(None, (each.fullmatch(name) for each in _STACKED)), None)
        if match is None or _ATTENTION.search(match["prefix"]):
            continue
        parts = match.groupdict()
        prefix = re.sub(r"(^|\.)[0-9]{1,9}(?=\.)", r"\1{layer}", parts["prefix"], count=1)
        within = f".{parts['before']}{{expert}}.{{name}}" if "expert" in parts else "[{expert}].{name}"
        found.setdefault(f"{prefix}{parts['group']}{within}")
    return list(found)


class ExpertStack(NamedTuple):
    """One tensor of each expert of a layer."""

    tensors: tuple[Tensor, ...]  # one an expert, or one of all
    names: tuple[str, ...]  # of these in the checkpoint
    axis: int | None  # of the experts in the one tensor
    num_experts: int  # K

    @property
    def kind(self) -> str:
        """The dtype, as the format calls it."""
        return self.tensors[0].kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one expert's tensor."""
        return self.expert(0).shape

    def expert(self, number: int) -> np.ndarray:
        """One expert's tensor, memory-mapped."""
        if self.axis is None:
            return array_of(self.tensors[number])
        whole = array_of(self.tensors[0])
        if whole.shape[self.axis] != self.num_experts:  # one below the other, as DBRX has them
            whole = whole.reshape(self.num_experts, -1, *whole.shape[1:])
        return whole[(slice(None),) * self.axis + (number,)]

    def experts(self) -> list[np.ndarray]:
        """The tensors of all experts, memory-mapped."""
        return [self.expert(number) for number in range(self.num_experts)]

    def not_finite(self, weights: np.ndarray) -> InvalidCheckpointError:
        """The error for a merge of the experts with weights other than 0 that is not finite."""
        names = (
            self.names
            if self.axis is None
            else [f"{self.names[0]}[{':,' * self.axis}{k}]" for k in range(len(weights))]
        )
        parts = zip(names, self.experts(), strict=True)
        return not_finite({name: part for (name, part), weight in zip(parts, weights, strict=True) if weight != 0})


class ExpertLayer(NamedTuple):
    """The experts of one layer."""

    module: str  # that has the experts and their router, as its tensors' names begin
    stacks: dict[str, ExpertStack]  # by name within the expert
    router: dict[str, int]  # tensors that have a row for each expert, with the axis of these rows

    @property
    def num_experts(self) -> int:
        """K."""
        return next(iter(self.stacks.values())).num_experts


class ExpertTensors(NamedTuple):
    """A checkpoint's tensors that belong to its experts."""

    checkpoint: Checkpoint
    patterns: tuple[str, ...]
    layers: dict[int | str, ExpertLayer]  # by number; by the beginning of their names where a number is two layers'
    overlooked: tuple[str, ...]  # names that begin like an expert's but do not match the pattern


def load_experts(
    path: Path | str, pattern: str | Sequence[str] | None = None
) -> dict[int | str, dict[str, np.ndarray]]:
    """The experts' tensors by layer and by name within the expert, each (K, ...) in its own dtype.

    Raises: InvalidCheckpointError, as `find_experts` does.
    """
    return {
        layer: {name: np.stack(stack.experts()) for name, stack in own.stacks.items()}
        for layer, own in find_experts(path, pattern).layers.items()
    }


def find_experts(path: Path | str, pattern: str | Sequence[str] | None = None) -> ExpertTensors:
    """Find and check the experts' tensors without reading them.

    Args:
        pattern: of their names, or several; by default those of published checkpoints.
    Raises: InvalidCheckpointError where the checkpoint or a pattern cannot be read; where nothing matches; where a
        layer has one expert, a gap in their numbers, or experts that differ in tensors, shapes or dtypes; where they
        are quantised.
    """
    checkpoint = open_checkpoint(Path(path))
    texts = [pattern] if isinstance(pattern, str) else discovered(checkpoint.tensors) if pattern is None else pattern
    if not texts:
        raise InvalidCheckpointError(
            f"no experts are found in {checkpoint.path}: no name of {len(checkpoint.tensors):,} tensors is like "
            "experts.0.w or experts.w. Name them by a pattern."
        )
    patterns = [compiled(text) for text in texts]
    modules: dict[str, dict[int, dict[str, str]]] = {}  # full names by module, expert and name within the expert
    pattern_of: dict[str, Pattern] = {}
    numbers: dict[str, int] = {}  # of the modules' layers
    for named in patterns:
        matches = {name: match for name in checkpoint.tensors if (match := named.match(name)) is not None}
        if named.axis is not None:  # of which a module may have more than its experts
            matches = {name: match for name, match in matches.items() if not _BESIDE.search(match.name)}
        if not matches:
            raise nothing_matches(named, checkpoint.tensors, checkpoint.path)
        for name, match in matches.items():
            module = named.module(name)
            numbers[module], pattern_of[module] = match.layer, named
            other = modules.setdefault(module, defaultdict(dict))[match.expert].setdefault(match.name, name)
            if other != name:
                raise InvalidCheckpointError(
                    f"{checkpoint.path} has {shortened(other)} and {shortened(name)}, which {shortened(named.text)} "
                    "takes for the same tensor. Rename one, or change the pattern."
                )
    is_number = len(set(numbers.values())) == len(numbers)
    layers: dict[int | str, ExpertLayer] = {
        numbers[module] if is_number else module: _checked(checkpoint, pattern_of[module], module, numbers[module], own)
        for module, own in sorted(modules.items(), key=lambda each: numbers[each[0]])
    }
    overlooked = [name for name in checkpoint.tensors if any(named.overlooks(name) for named in patterns)]
    return ExpertTensors(checkpoint, tuple(texts), layers, tuple(overlooked))


def not_finite(parts: Mapping[str, np.ndarray]) -> InvalidCheckpointError:
    """The error for a merge of these tensors that is not finite."""
    for name, part in parts.items():
        if len(bad := np.argwhere(~np.isfinite(part))):
            place = tuple(bad[0].tolist())
            return InvalidCheckpointError(
                f"{name} has {part[place]} at {place}, which no average can have in it. Fetch the checkpoint again, or "
                "give that expert a weight of 0."
            )
    return InvalidCheckpointError(
        f"the merge of {next(iter(parts))} is beyond the largest number of its dtype. Lower the scale."
    )


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


def _checked(
    checkpoint: Checkpoint, pattern: Pattern, module: str, layer: int, experts: dict[int, dict[str, str]]
) -> ExpertLayer:
    """A layer whose experts are known to be alike."""
    tensors = checkpoint.tensors
    within = f"{module}." if module else ""
    owned = {name for own in experts.values() for name in own.values()}
    beside = {
        name: tensors[name].shape
        for name in tensors
        if name.startswith(within) and name not in owned and _is_of_router(name[len(within) :])
    }
    if pattern.axis is None:
        stacks = _separate(checkpoint, pattern, layer, experts)
    else:
        rows = next((shape[0] for shape in beside.values() if len(shape) == 2 and shape[0] > 1), None)
        stacks = _stacked(checkpoint, pattern, experts[0], rows)
    count = next(iter(stacks.values())).num_experts
    router = {name: shape.index(count) for name, shape in beside.items() if count in shape}
    return ExpertLayer(module, stacks, router)


def _is_of_router(name: str) -> bool:
    """Whether a tensor of a module of experts, by its name within, is the router's."""
    return _ROUTER.search(name) is not None and not name.startswith("shared")


def _separate(
    checkpoint: Checkpoint, pattern: Pattern, layer: int, experts: dict[int, dict[str, str]]
) -> dict[str, ExpertStack]:
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
    for name in (names := sorted({name for parts in experts.values() for name in parts})):
        for expert in range(len(experts)):
            if name not in experts[expert]:
                raise InvalidCheckpointError(
                    f"expert {expert} of layer {layer} has no {name}, which other experts have. Change the pattern, or "
                    "complete the checkpoint."
                )
            _require_alike(checkpoint, experts[0][name], experts[expert][name])
    stacks = {}
    for name in names:
        full = tuple(experts[expert][name] for expert in range(len(experts)))
        stacks[name] = ExpertStack(tuple(checkpoint.tensors[each] for each in full), full, None, len(experts))
    return stacks


def _stacked(
    checkpoint: Checkpoint, pattern: Pattern, names: dict[str, str], rows: int | None
) -> dict[str, ExpertStack]:
    """Stacks of tensors that are all experts'; `rows` is the router's number of experts, if it is known."""
    axis, tensors = pattern.axis or 0, {name: checkpoint.tensors[full] for name, full in sorted(names.items())}
    for name, tensor in tensors.items():
        _require_numbers(names[name], tensor)
        if len(tensor.shape) <= axis:
            raise InvalidCheckpointError(
                f"{names[name]} has shape {tensor.shape}, but axis {axis} is to be the experts. Change the pattern."
            )
    sizes = {name: tensor.shape[axis] for name, tensor in tensors.items()}
    first = next(iter(sizes))
    count = sizes[first]
    if rows is not None and axis == 0 and count != rows and all(size % rows == 0 for size in sizes.values()):
        count = rows
    elif other := next((name for name, size in sizes.items() if size != count), None):
        raise InvalidCheckpointError(
            f"{names[other]} has shape {tensors[other].shape}, but {names[first]} has {tensors[first].shape}: axis "
            f"{axis} of both is to be the experts. Change the pattern."
        )
    if count < 2:
        raise InvalidCheckpointError(
            f"{names[first]} has shape {tensors[first].shape}, with 1 expert along axis {axis}, but merging takes 2 or "
            "more. Change the pattern."
        )
    return {name: ExpertStack((tensor,), (names[name],), axis, count) for name, tensor in tensors.items()}


def _require_alike(checkpoint: Checkpoint, first_name: str, own_name: str) -> None:
    first, own = checkpoint.tensors[first_name], checkpoint.tensors[own_name]
    if own.shape != first.shape:
        raise InvalidCheckpointError(
            f"{own_name} has shape {own.shape}, but {first_name} has {first.shape}: experts of a layer must be alike."
        )
    _require_numbers(own_name, own)
    if own.kind != first.kind:
        raise InvalidCheckpointError(
            f"{own_name} is {own.kind}, but {first_name} is {first.kind}: experts of a layer must be alike. Change it."
        )


def _require_numbers(name: str, tensor: Tensor) -> None:
    if tensor.kind not in NUMBERS:
        is_mxfp4 = tensor.kind == "U8" and name.endswith(("_blocks", "_scales"))
        config = "Mxfp4Config" if is_mxfp4 else "FineGrainedFP8Config" if tensor.kind.startswith("F8") else None
        way_out = WAY_OUT.format(config=config) if config else "Dequantise the checkpoint"
        raise InvalidCheckpointError(
            f"{name} has numbers of type {tensor.kind}{' (MXFP4)' if is_mxfp4 else ''}, but only {', '.join(NUMBERS)} "
            f"can be averaged: the average of quantised numbers is not that of the weights. {way_out}."
        )
