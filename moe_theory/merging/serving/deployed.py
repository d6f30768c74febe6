"""A setting's trained model with trained routers, kept on disk beside the model."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core.errors import OutputError
from moe_theory.merging.serving import routers
from moe_theory.merging.serving.methods import Deployment
from moe_theory.merging.serving.routing import KINDS, Router, Routers
from moe_theory.merging.testbed import storage, training
from moe_theory.merging.testbed.tasks import TRAIN, Setting, examples
from moe_theory.merging.testbed.tensors import InvalidCheckpointError, read_safetensors, write_safetensors
from moe_theory.merging.testbed.transformer import Model

# What decides routers besides the model.
SOURCES = ("dispatch.py", "routers.py", "routing.py", "soft.py", "../testbed/stream.py")


def deployed(
    setting: Setting,
    kinds: Sequence[str] = tuple(KINDS),
    num_steps: int = routers.NUM_STEPS,
    folder: Path | None = None,
    progress: Callable[[str], None] = training.tell,
) -> Deployment:
    """The model with routers of these kinds, each trained unless that has been done.

    A folder that cannot be written costs the cache and not the routers: it is told by `progress`.
    """
    model = training.trained(setting, progress, folder)
    data = examples(setting, TRAIN)
    place = storage.cache_folder() if folder is None else folder
    made: dict[str, Routers] = {}
    for number, kind in enumerate(KINDS):
        if kind not in kinds:
            continue
        path = place / f"{_name(setting, kind, num_steps, model)}.safetensors"
        found = _stored(path)
        if found is None:
            progress(f"router: {kind}, {num_steps} steps")
            key = jax.random.fold_in(jax.random.key(setting.seed), 1000 + number)
            found = routers.train(KINDS[kind], model, data, setting.num_tasks, key, num_steps)
            try:
                write_safetensors(path, _arrays(found), {"router": kind})
            except OutputError as failure:
                progress(f"the trained router is not kept: {failure}")
        made[kind] = found
    return Deployment(model, made, data)


def _stored(path: Path) -> Routers | None:
    """What was written there whole; a file that is not is written anew."""
    if not path.exists():
        return None
    try:
        arrays = read_safetensors(path)[0]
        return tuple(
            Router(jnp.asarray(arrays[f"{layer}.weights"]), jnp.asarray(arrays[f"{layer}.bias"]))
            for layer in range(len(arrays) // 2)
        )
    except (InvalidCheckpointError, KeyError):
        return None


def _arrays(made: Routers) -> dict[str, np.ndarray]:
    return {
        f"{layer}.{name}": np.asarray(part) for layer, own in enumerate(made) for name, part in own._asdict().items()
    }


def _name(setting: Setting, kind: str, num_steps: int, model: Model) -> str:
    """A hash of what decides the router."""
    digest = hashlib.sha256(json.dumps([dataclasses.asdict(setting), kind, num_steps], sort_keys=True).encode())
    for name in SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    for array in storage.arrays_of(model).values():
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"router-{kind}-{digest.hexdigest()[:20]}"
