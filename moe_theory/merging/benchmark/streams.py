"""What is recorded: three trained models, their test sets, and 64 streams of requests under two laws of the task mix.

Arrivals are made anew from uniform numbers of a seeded generator; weights are kept in half precision beside this file
and used in single. `digest_of` is of both and of the test set, so that scores are compared only with scores of the same
requests and experts, whatever another NumPy draws.

In all families task v has an expert of its own. Tasks conflict where two label maps disagree about every input, which
no fixed merge can serve; they agree where each of four changes of the image has one label map.
"""

import functools
import hashlib
from importlib import resources
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.errors import unknown_name
from moe_theory.merging.params import Params
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed.tasks import TRAIN, VALIDATION, Examples, Recipe, examples
from moe_theory.merging.testbed.training import model_of
from moe_theory.merging.testbed.transformer import Experts, Model

NUM_STREAMS, NUM_SLOTS, SLOT_SIZE = 64, 512, 64
FAMILIES = {
    "conflicting": Recipe(),
    "agreeing": Recipe(num_tasks=4, num_experts=4),
    "sequences": Recipe(tasks="sequences"),
}
LAWS = {"fixed": 0.0, "drifting": 1.0}  # `Params.mix_drift`
KNOWN, ESTIMATED = MIXES = ("known", "estimated")  # what a policy is told of the mix: itself, or the monitor's average
SEED = 20261128  # of the arrivals that are recorded; others tune
BASE = "base."  # before names of the dense expert that all began from


class Condition(NamedTuple):
    """One of the twelve in which policies are scored."""

    tasks: str  # a name of `FAMILIES`
    law: str  # of `LAWS`
    mix: str  # of `MIXES`


CONDITIONS = tuple(Condition(tasks, law, mix) for mix in MIXES for tasks in FAMILIES for law in LAWS)


class Traffic(NamedTuple):
    """What arrives in T slots of n requests on each of B streams."""

    mix: Float[np.ndarray, "B T V"]  # psi, the law of the tasks of a slot's requests
    tasks: Int[np.ndarray, "B T n"]
    places: Int[np.ndarray, "B T n"]  # rows of the test set


class Testbed(NamedTuple):
    """A trained model with the data that it is scored on."""

    model: Model
    base: tuple[Experts, ...]  # by layer: the dense expert (E = 1) that all experts began from
    tests: Examples
    calibration: Examples  # training inputs with their tasks, for merges that look at data

    @property
    def num_tasks(self) -> int:
        return int(np.max(self.tests.tasks)) + 1

    @property
    def num_experts(self) -> int:
        return merge.num_experts_of(self.model)


@functools.cache
def testbed(tasks: str) -> Testbed:
    """The recorded model of a family. Raises: UnknownNameError."""
    if tasks not in FAMILIES:
        raise unknown_name("family of recorded streams", tasks, FAMILIES)
    arrays = {name: array.astype(np.float32) for name, array in recorded_arrays(tasks).items()}
    model = model_of({name: array for name, array in arrays.items() if not name.startswith(BASE)})
    base = tuple(
        Experts(*(jnp.asarray(arrays[f"{BASE}layers.{layer}.experts.0.{name}"])[None] for name in Experts._fields))
        for layer in range(len(model.layers))
    )
    setting = FAMILIES[tasks]
    return Testbed(model, base, examples(setting, VALIDATION), examples(setting, TRAIN))


def recorded_arrays(tasks: str) -> dict[str, np.ndarray]:
    """The weights of a family as they are kept, in half precision."""
    from safetensors.numpy import load

    return load(kept(f"{tasks}.safetensors"))


def kept(name: str) -> bytes:
    """A file that comes with the package, beside this one."""
    return resources.files("moe_theory.merging.benchmark").joinpath(name).read_bytes()


@functools.cache
def arrivals(tasks: str, law: str, seed: int = SEED, num_streams: int = NUM_STREAMS) -> Traffic:
    """The requests of a family under a law.

    Args:
        seed: of other streams than the recorded ones.
    Raises: UnknownNameError.
    """
    if law not in LAWS:
        raise unknown_name("law of the task mix", law, LAWS)
    tests, num_tasks = testbed(tasks).tests, testbed(tasks).num_tasks
    per_task, family = len(tests.labels) // num_tasks, list(FAMILIES).index(tasks)
    found = [_stream([seed, family, stream], LAWS[law], num_tasks, per_task) for stream in range(num_streams)]
    served = Traffic(*map(np.stack, zip(*found, strict=True)))
    for part in served:
        part.flags.writeable = False  # the arrays are cached
    return served


def _stream(seed: list[int], drift: float, num_tasks: int, per_task: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A stream's mix, as `rewards.mix_of` has it, and its requests, from uniform numbers alone."""
    random = np.random.Generator(np.random.PCG64(seed)).random
    logs = np.log(-np.log1p(-random(num_tasks)))  # of exponentials: normalised, they are uniform on the simplex
    phases = 2 * np.pi * random(num_tasks)
    turns = np.arange(1, NUM_SLOTS + 1)[:, None] / Params().mix_period
    unnormalised = np.exp(logs + drift * np.sin(2 * np.pi * turns + phases))
    mix = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    edges = np.cumsum(mix, axis=1)[:, None, :-1]
    draws = random((2, NUM_SLOTS, SLOT_SIZE))
    kinds = np.sum(draws[0][..., None] >= edges, axis=-1)
    places = kinds * per_task + np.floor(draws[1] * per_task).astype(int)
    return mix.astype(np.float32), kinds.astype(np.int32), places.astype(np.int32)


@functools.cache
def digest_of(tasks: str) -> str:
    """A hash of a family's arrivals, experts and test set."""
    tests = testbed(tasks).tests
    parts = [part for law in LAWS for part in arrivals(tasks, law)[1:]]
    parts += [array for _, array in sorted(recorded_arrays(tasks).items())]
    parts += [tests.inputs.astype(np.float16), tests.labels]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]
