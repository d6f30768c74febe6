"""The testbed's models as files, which are MoE checkpoints like any other, and a cache of trained ones."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from moe_theory.core.errors import OutputError
from moe_theory.merging.testbed.tasks import Setting
from moe_theory.merging.testbed.tensors import InvalidCheckpointError, read_safetensors, write_safetensors
from moe_theory.merging.testbed.transformer import Attention, Experts, Layer, Model, Norm
from moe_theory.runs.files import user_cache

PATTERN = "layers.{layer}.experts.{expert}.{name}"  # of the experts' tensors
# What decides trained weights besides the setting.
SOURCES = (
    "../../core/digits.py",
    "digits.py",
    "families.py",
    "sequences.py",
    "tasks.py",
    "training.py",
    "transformer.py",
)
_DIGEST = "sha256"  # of the arrays, among the metadata


def arrays_of(model: Model) -> dict[str, np.ndarray]:
    """A model's arrays by name; each expert has its own."""
    arrays = {
        **_named("", model._asdict(), "w_embedding", "b_embedding", "positions", "w_head", "b_head"),
        **_named("head_norm.", model.head_norm._asdict(), *Norm._fields),
    }
    for index, layer in enumerate(model.layers):
        for part in ("attention_norm", "attention", "experts_norm"):
            values = getattr(layer, part)
            arrays |= _named(f"layers.{index}.{part}.", values._asdict(), *values._fields)
        for expert in range(layer.experts.b_out.shape[0]):
            own = {name: part[expert] for name, part in layer.experts._asdict().items()}
            arrays |= _named(f"layers.{index}.experts.{expert}.", own, *own)
    return {name: np.asarray(array) for name, array in arrays.items()}


def model_of(arrays: Mapping[str, np.ndarray]) -> Model:
    """The model of such arrays, with as many layers and experts as they have. Raises: KeyError where one is missing."""

    def part(kind: Any, prefix: str) -> Any:
        return kind(*(jnp.asarray(arrays[prefix + name]) for name in kind._fields))

    layers = []
    while (prefix := f"layers.{len(layers)}.") + "attention.w_in" in arrays:
        experts = []
        while (own := f"{prefix}experts.{len(experts)}.") + "w_in" in arrays:
            experts.append(part(Experts, own))
        stacked = Experts(*(jnp.stack(same) for same in zip(*experts, strict=True)))
        norms = (part(Norm, f"{prefix}{name}.") for name in ("attention_norm", "experts_norm"))
        layers.append(Layer(next(norms), part(Attention, f"{prefix}attention."), next(norms), stacked))
    rest = {name: jnp.asarray(arrays[name]) for name in ("w_embedding", "b_embedding", "positions", "w_head", "b_head")}
    return Model(layers=tuple(layers), head_norm=part(Norm, "head_norm."), **rest)


def save_model(path: Path, model: Model, metadata: Mapping[str, str] | None = None) -> None:
    """Write a model as a checkpoint with experts by `PATTERN`. Raises: OutputError."""
    arrays = arrays_of(model)
    write_safetensors(path, arrays, {**(metadata or {}), _DIGEST: _digest(arrays)})


def load_model(path: Path) -> Model:
    """A model that `save_model` wrote, or one merged from it.

    Raises: InvalidCheckpointError for what is no whole safetensors file, or not such a model.
    """
    return _model(path, read_safetensors(path)[0])


def cached(setting: Setting, folder: Path | None, train: Callable[[], Model], progress: Callable[[str], None]) -> Model:
    """What `train` returns, kept under the hash of the setting; from there where it is whole.

    A folder that cannot be written costs the cache and not the model: it is told by `progress`.
    """
    path = (cache_folder() if folder is None else Path(folder)) / f"{_name(setting)}.safetensors"
    if path.exists():
        try:
            arrays, metadata = read_safetensors(path)
            if metadata.get(_DIGEST) != _digest(arrays):
                raise InvalidCheckpointError(f"{path} is damaged: its arrays are not those that were written.")
            return _model(path, arrays)
        except InvalidCheckpointError as failure:
            progress(f"training again: {failure}")
    model = train()
    try:
        save_model(path, model, {"setting": json.dumps(dataclasses.asdict(setting))})
    except OutputError as failure:
        progress(f"the trained model is not kept: {failure}")
    return model


def cache_folder() -> Path:
    """Where trained models are kept unless another folder is named."""
    return user_cache() / "testbed"


def _named(prefix: str, values: Mapping[str, object], *names: str) -> dict[str, object]:
    return {prefix + name: values[name] for name in names}


def _model(path: Path, arrays: Mapping[str, np.ndarray]) -> Model:
    try:
        return model_of(arrays)
    except (KeyError, ValueError, TypeError) as failure:
        raise InvalidCheckpointError(f"{path} is no model of the testbed ({failure}). Change the path.") from None


def _name(setting: Setting) -> str:
    """A hash of what decides the weights."""
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(setting), sort_keys=True).encode())
    for name in SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return f"{setting.tasks}-{digest.hexdigest()[:20]}"


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
