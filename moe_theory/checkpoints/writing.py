"""Merging a checkpoint's experts into one a layer, tensor by tensor, and writing what libraries load.

Tensors are memory-mapped and merged a few rows at a time, so that memory does not grow with the checkpoint. A folder is
there whole or not at all; its finished shards are kept beside it until then, and the same call goes on from them.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.checkpoints import forms
from moe_theory.checkpoints.forms import MOE_1, Dense
from moe_theory.checkpoints.layouts import ExpertLayer, ExpertStack, ExpertTensors, find_experts
from moe_theory.checkpoints.methods import (
    ALIGNED,
    PLAIN,
    Method,
    UnitOrder,
    alignment,
    check_method,
    hidden_units,
    is_output,
    merge_tensors,
)
from moe_theory.core.errors import InvalidParamsError, OutputError
from moe_theory.core.fields import documented
from moe_theory.runs.files import SUFFIX, read_json, remove_leftovers, whole
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

_BLOCK = 1 << 24  # bytes that are copied at once
_SUM_TOLERANCE = 1e-5  # weights may have been computed in single precision
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"}  # not copied

Progress = Callable[[int, int], None]  # bytes that are done, and all


@documented
class Merged(NamedTuple):
    """Files and tensors that a merge has written."""

    num_layers: int
    num_experts: int  # K, of each layer
    num_merged: int  # tensors that are merges, routers among them
    num_copied: int
    bytes_before: int  # of all tensors
    bytes_after: int


class _Output(NamedTuple):
    """A tensor to be written."""

    name: str
    kind: str
    shape: tuple[int, ...]
    source: Tensor  # whose place it takes
    num_read: int  # bytes
    made: Callable[[], np.ndarray] | None  # None where the source is copied

    @property
    def size(self) -> int:
        """Bytes."""
        if self.made is None:
            return _size(self.source)
        return int(np.prod(self.shape, dtype=np.int64)) * NUMBERS[self.kind].itemsize


class _MergeJob(NamedTuple):
    found: ExpertTensors
    weights: np.ndarray
    method: Method
    base: Checkpoint | None


def merge_checkpoint(
    path: Path | str,
    pattern: str | Sequence[str] | None,
    weights: Sequence[float] | Float[np.ndarray, " K"],
    out: Path | str,
    form: str = MOE_1,
    method: Method = PLAIN,
    base: Path | str | None = None,
    progress: Progress | None = None,
) -> Merged:
    """Merge the experts of each layer into one, and write a checkpoint that the family's libraries load.

    Tensors keep their dtypes; sums are in single precision. What is not the experts' is copied: other tensors, shared
    experts among them, the configuration, the tokenizer and the other files beside the shards.

    Args:
        path: a safetensors file or a folder of shards.
        pattern: of the experts' names, as in `checkpoints.layouts`; None finds those of published families.
        weights: x_k of the experts, (K,), the same in all layers; they are not negative and sum to 1.
        out: the file or folder to write, of the same kind as `path`.
        form: "moe-1", where one expert is left in each layer, and one row of each router, merged as the experts are
            averaged; or "dense", the family's dense model, with shared experts added to its hidden units.
        method: how experts are merged.
        base: for methods that merge task vectors, the checkpoint of W_0: of dense layers, or of one expert a layer.
        progress: called with the bytes that are done and all bytes.
    Raises: InvalidCheckpointError for a checkpoint that `find_experts` refuses, that has experts with numbers that are
        not finite, or a base that has not the tensors; InvalidParamsError, UnknownNameError; OutputError where it is
        there already, cannot be written, or there is no room for it.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from safetensors.numpy import load_file, save_file
        >>> from moe_theory import merging
        >>> folder = Path(tempfile.mkdtemp())
        >>> save_file({"layers.0.experts.up": np.array([[1.0, 0.0], [0.0, 4.0]])}, folder / "model.safetensors")
        >>> merging.merge_checkpoint(folder / "model.safetensors", None, [0.25, 0.75], folder / "one.safetensors")[:4]
        (1, 2, 1, 0)
        >>> load_file(folder / "one.safetensors")["layers.0.experts.up"].tolist()
        [[0.25, 3.0]]
    """
    out, found = Path(out), find_experts(path, pattern)
    checkpoint = found.checkpoint
    shares = _checked_weights(weights, found)
    check_method(method, base is not None)
    if found.overlooked:
        raise InvalidCheckpointError(
            f"{found.overlooked[0]} belongs to an expert, but does not match the pattern {found.patterns[0]!r}: "
            "experts are merged whole. Put {name} where its tensors differ."
        )
    if out.exists():
        raise OutputError(f"{out} is there already: name another place.")
    is_folder = checkpoint.path.is_dir()
    config = None  # which a file alone needs only where it is to be another model's
    if is_folder or form != MOE_1:
        config = forms.read_config(checkpoint.path if is_folder else checkpoint.path.parent)
    dense = forms.require_form(form, config, checkpoint.path)
    job = _MergeJob(found, shares, method, None if base is None else open_checkpoint(Path(base)))
    outputs = _outputs(job, dense, config)
    planned = [output for plan in outputs.values() for output in plan]
    after = sum(output.size for output in planned)
    partial = out.absolute().parent / f".{out.name}.{_request(job, form)}{SUFFIX}"
    _require_room(out, after - sum(path.stat().st_size for path in partial.glob("*.safetensors")))
    report = _Report(progress, sum(output.num_read for output in planned))
    if not is_folder:
        ((shard, plan),) = outputs.items()
        with whole(out) as temporary:
            _write_file(temporary, checkpoint.shards[shard], plan, report)
    else:
        _write_folder(out, partial, checkpoint, outputs, _new_config(config, dense, outputs), report)
    num_merged = sum(output.made is not None for output in planned)
    before = sum(_size(tensor) for tensor in checkpoint.tensors.values())
    return Merged(len(found.layers), len(shares), num_merged, len(planned) - num_merged, before, after)


def _checked_weights(weights: Sequence[float] | np.ndarray, found: ExpertTensors) -> np.ndarray:
    shares = np.asarray(weights, np.float64)
    for layer, own in found.layers.items():
        if shares.shape != (own.num_experts,):
            raise InvalidParamsError(
                f"weights have shape {shares.shape}, but layer {layer} has {own.num_experts} experts. Give one each."
            )
    if not np.all(shares >= 0) or not abs(np.sum(shares) - 1) <= _SUM_TOLERANCE:
        raise InvalidParamsError(
            f"weights={shares.tolist()} must not be negative and must sum to 1, as a merged expert is an average. "
            "Divide them by their sum."
        )
    return shares


def _require_room(out: Path, size: int) -> None:
    folder = next(parent for parent in out.absolute().parents if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OutputError(
            f"{out} takes {size:,} bytes, but {folder} has room for {free:,}: make room or name another place."
        )


def _outputs(job: _MergeJob, dense: Dense | None, config: Mapping[str, Any] | None) -> dict[str, list[_Output]]:
    """Tensors to write into each shard: a merged one goes where the first of its sources is."""
    tensors = job.found.checkpoint.tensors
    gone: set[str] = set()
    made: list[_Output] = []
    for layer in job.found.layers.values():
        if job.method.name == ALIGNED:  # what cannot be merged is refused before anything is written
            hidden_units({name: stack.shape for name, stack in layer.stacks.items()})
        for name, stack in layer.stacks.items() if job.base is not None else ():
            _base_of(job, layer, name, stack.expert(0))
        orders = functools.cache(functools.partial(_orders, job, layer))
        if dense is None:
            made += [_alone(job, layer, name, orders) for name in layer.stacks]
            made += [_router_row(job, layer, name, axis) for name, axis in layer.router.items()]
            if config is not None and not layer.router:
                raise InvalidCheckpointError(
                    f"{job.found.checkpoint.path} has no router beside the experts of {layer.module}, of which one row "
                    "is to be left. Move its config.json elsewhere to merge the tensors alone."
                )
        else:
            shared = {name for name in tensors if dense.shared and name.startswith(f"{_shared_module(layer, dense)}.")}
            gone |= shared
            made += _densified(job, layer, dense, orders, shared, config or {})
        gone |= {name for stack in layer.stacks.values() for name in stack.names} | set(layer.router)
    plans: dict[str, list[_Output]] = {shard: [] for shard in job.found.checkpoint.shards}
    copied = (
        _Output(name, tensor.kind, tensor.shape, tensor, _size(tensor), None)
        for name, tensor in tensors.items()
        if name not in gone
    )
    for output in (*copied, *made):
        plans[output.source.path.name].append(output)
    return {shard: sorted(plan, key=lambda output: output.source.start) for shard, plan in plans.items() if plan}


def _orders(job: _MergeJob, layer: ExpertLayer) -> list[dict[str, UnitOrder] | None]:
    experts = [{name: stack.expert(k) for name, stack in layer.stacks.items()} for k in range(layer.num_experts)]
    return alignment(experts, job.weights)


def _merged(
    job: _MergeJob, layer: ExpertLayer, name: str, orders: Callable[[], list[dict[str, UnitOrder] | None]]
) -> np.ndarray:
    """One tensor of a layer's merged expert. Raises: InvalidCheckpointError."""
    stack = layer.stacks[name]
    moved = [None if own is None else own.get(name) for own in orders()] if job.method.name == ALIGNED else None
    parts = stack.experts()
    base = None if job.base is None else _base_of(job, layer, name, parts[0])
    try:
        return merge_tensors(parts, job.weights, job.method, base, moved, zlib.crc32(stack.names[0].encode()))
    except FloatingPointError:
        raise stack.not_finite(job.weights) from None


def _base_of(job: _MergeJob, layer: ExpertLayer, name: str, like: np.ndarray) -> np.ndarray:
    """The tensor that all experts began from, under the name of a single expert or of a dense layer."""
    assert job.base is not None
    stack, tensors = layer.stacks[name], job.base.tensors
    parent = layer.module.rpartition(".")[0]
    new = next((dense.names[name][0] for dense in forms.FAMILIES.values() if len(dense.names.get(name, ())) == 1), name)
    names = [stack.names[0], f"{parent}.mlp.{new}".strip("."), f"{layer.module}.{new}".strip(".")]
    found = [tensors[each] for each in names if each in tensors and tensors[each].kind in NUMBERS]
    is_stacked = stack.axis is not None and any(tensor.shape == stack.tensors[0].shape for tensor in found)
    if is_stacked or any(each in tensors for each in stack.names[1:]):
        raise InvalidCheckpointError(
            f"{job.base.path} has several experts in {layer.module}, but all are to have begun from one. Merge these "
            "first, and name what that wrote."
        )
    for tensor in found:
        if tensor.shape in (like.shape, (1, *like.shape)):
            return array_of(tensor).reshape(like.shape)
    raise InvalidCheckpointError(
        f"{job.base.path} has no {names[0]} nor {names[1]} of shape {like.shape}, from which these experts could have "
        "begun. Name the checkpoint that they are fine-tuned from."
    )


def _alone(job: _MergeJob, layer: ExpertLayer, name: str, orders: Callable[[], Any]) -> _Output:
    """A tensor of the one expert that is left."""
    stack = layer.stacks[name]
    shape = list(stack.shape)
    if stack.axis is not None and stack.tensors[0].shape[stack.axis] == stack.num_experts:
        shape.insert(stack.axis, 1)
    return _Output(
        stack.names[0],
        stack.kind,
        tuple(shape),
        stack.tensors[0],
        _read(job, stack),
        lambda: _merged(job, layer, name, orders),
    )


def _router_row(job: _MergeJob, layer: ExpertLayer, name: str, axis: int) -> _Output:
    """The average row of a router, as of one more tensor that all experts have."""
    tensor = job.found.checkpoint.tensors[name]
    if tensor.kind not in NUMBERS:
        raise InvalidCheckpointError(
            f"{name} has numbers of type {tensor.kind}, which cannot be averaged. Dequantise it."
        )
    stack = ExpertStack((tensor,), (name,), axis, layer.num_experts)
    plain = job._replace(method=PLAIN, base=None)
    alone = layer._replace(stacks={name: stack})
    return _alone(plain, alone, name, lambda: None)


def _shared_module(layer: ExpertLayer, dense: Dense) -> str:
    parent = layer.module.rpartition(".")[0]
    return f"{parent}.{dense.shared}" if parent else dense.shared


def _densified(
    job: _MergeJob,
    layer: ExpertLayer,
    dense: Dense,
    orders: Callable[[], Any],
    shared: set[str],
    config: Mapping[str, Any],
) -> list[_Output]:
    """The tensors of a dense layer: the merged expert's hidden units, then the shared expert's, then zeros up to the
    width that other dense layers have.
    """
    parent, _, last = layer.module.rpartition(".")
    module = ".".join(filter(None, (parent, dense.module or last)))
    width = _dense_width(job) if dense.shared and not dense.model_type else None
    made = []
    for name, stack in layer.stacks.items():
        is_out = is_output(name)
        factor = float(dense.factor(config)) if is_out else 1.0
        axis = 1 if is_out and len(stack.shape) == 2 else 0
        news = dense.names.get(name, (name,))
        beside = job.found.checkpoint.tensors[f"{_shared_module(layer, dense)}.{name}"] if shared else None
        own, added = (part and part.shape[axis] // len(news) for part in (stack, beside))
        units = (own or 0) + (added or 0)
        if width is not None and units > width:
            raise InvalidParamsError(
                f"{layer.module} would have {units} hidden units, but layers that are dense have {width}, and all have "
                "the same number. Write a mixture of one expert, moe-1."
            )
        shape = (*stack.shape[:axis], width or units, *stack.shape[axis + 1 :])
        read = _read(job, stack) + (0 if beside is None else _size(beside) // len(news))
        for place, new in enumerate(news):
            merged = functools.partial(_merged, job, layer, name, orders)
            make = functools.partial(_joined, merged, beside, place, len(news), axis, factor, shape)
            made.append(_Output(f"{module}.{new}", stack.kind, shape, stack.tensors[0], read, make))
    return made


def _joined(
    merged: Callable[[], np.ndarray],
    beside: Tensor | None,
    place: int,
    count: int,
    axis: int,
    factor: float,
    shape: tuple[int, ...],
) -> np.ndarray:
    """One of `count` parts of a merged tensor, times a factor, and that of a shared expert's, along an axis."""
    whole = merged()
    parts = [np.split(each, count, axis)[place] for each in (whole, *([] if beside is None else [array_of(beside)]))]
    if parts[0].shape == shape and factor == 1:
        return parts[0]
    filled, end = np.zeros(shape, whole.dtype), 0
    for part, scale in zip(parts, (factor, 1.0), strict=False):
        filled[(slice(None),) * axis + (slice(end, end + part.shape[axis]),)] = part * whole.dtype.type(scale)
        end += part.shape[axis]
    return filled


def _dense_width(job: _MergeJob) -> int | None:
    """Hidden units of the layers that are dense already; None if all have experts."""
    modules = {layer.module for layer in job.found.layers.values()}
    lasts = {module.rpartition(".")[2] for module in modules}
    for name, tensor in job.found.checkpoint.tensors.items():
        module, _, last = name.rpartition(".gate_proj.")
        if last == "weight" and module.rpartition(".")[2] in lasts and module not in modules:
            return tensor.shape[0]
    return None


def _new_config(
    config: dict[str, Any] | None, dense: Dense | None, outputs: Mapping[str, Sequence[_Output]]
) -> dict[str, Any] | None:
    if config is None or dense is None:
        return None if config is None else forms.of_one_expert(config)
    widths = [
        output.shape[0]
        for plan in outputs.values()
        for output in plan
        if output.made is not None and output.name.endswith("gate_proj.weight")
    ]
    return forms.of_dense(config, dense, widths[0] if widths else int(config.get("intermediate_size", 0)))


class _Report:
    """Bytes that are done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


def _write_folder(
    out: Path,
    partial: Path,
    checkpoint: Checkpoint,
    outputs: Mapping[str, Sequence[_Output]],
    config: Mapping[str, Any] | None,
    report: _Report,
) -> None:
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise OutputError(f"{out} cannot be written ({failure.strerror}): name another place.") from None
    try:
        for shard, plan in outputs.items():
            if (partial / shard).exists():  # whole, from an earlier call that was stopped
                report.add(sum(output.num_read for output in plan))
                continue
            with whole(partial / shard) as temporary:
                _write_file(temporary, checkpoint.shards[shard], plan, report)
    except BaseException:
        with contextlib.suppress(OSError):  # of a folder that has a shard, from which the same call goes on
            partial.rmdir()
        raise
    with whole(out) as temporary:
        os.replace(partial, temporary)
        for path in checkpoint.path.iterdir():
            if path.is_file() and path.suffix not in _WEIGHTS and path.name not in (INDEX, forms.CONFIG):
                shutil.copyfile(path, temporary / path.name)
        if config is not None:
            (temporary / forms.CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if (checkpoint.path / INDEX).is_file():
            index = read_json(checkpoint.path / INDEX)
            total = sum(output.size for plan in outputs.values() for output in plan)
            index["metadata"] = {**(index.get("metadata") or {}), "total_size": total}
            index["weight_map"] = {output.name: shard for shard, plan in outputs.items() for output in plan}
            (temporary / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    remove_leftovers(out.absolute().parent, f".{out.name}")


def _request(job: _MergeJob, form: str) -> str:
    """A digest of what a merge is of, in place of the mark of a temporary name."""
    read = [each.tensors.values() for each in (job.found.checkpoint, job.base) if each]
    files = [path for tensors in read for path in sorted({tensor.path for tensor in tensors})]
    facts = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    wanted = [job.weights.tolist(), job.method, job.found.patterns, form, facts]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:12]


def _write_file(out: Path, header: Header, plan: Sequence[_Output], report: _Report) -> None:
    metadata = {name: text for name, text in header.metadata.items() if name not in (SEAL, NAME)}
    entries: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for output in plan:
        start, end = end, end + output.size
        entries[output.name] = {"dtype": output.kind, "shape": list(output.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors begin aligned
    with out.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for output in plan:
            if output.made is None:
                _copy(file, output.source, report)
            else:
                file.write(np.ascontiguousarray(output.made()).reshape(-1).view(np.uint8).data)
                report.add(output.num_read)


def _copy(file: IO[bytes], tensor: Tensor, report: _Report) -> None:
    data = tensor.bytes()
    for start in range(0, len(data), _BLOCK):
        piece = data[start : start + _BLOCK]
        file.write(piece.data)
        report.add(len(piece))


def _read(job: _MergeJob, stack: ExpertStack) -> int:
    """Bytes that a merge reads."""
    count = int(np.prod(stack.shape, dtype=np.int64)) * NUMBERS[stack.kind].itemsize
    return count * int(np.sum(job.weights > 0))


def _size(tensor: Tensor) -> int:
    return tensor.stop - tensor.start
