"""Latency and memory of every serving method, and of Tanbr's choice of weights.

Every repetition times all programs once, in a new random order. Ratios are taken within a repetition.
"""

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from moe_theory.core import faults
from moe_theory.core.programs import jit
from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import System
from moe_theory.merging import policies, rewards, uncertainty
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.serving import merge, routing
from moe_theory.merging.serving.methods import MERGED, METHODS, Deployment, ServingMethod, begin_slot, loaded_bytes
from moe_theory.merging.system import State, system
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import TRAIN, Examples, Recipe, examples
from moe_theory.merging.testbed.transformer import Model, Norm
from moe_theory.runs import Run
from moe_theory.runs.cells import Cell
from moe_theory.verification.claim import Measure, Runs

WARM_UP = 2  # calls of every program before anything is timed
NUM_LEAVES = 20  # feasible leaves up to which Fig. 6 counts slots
MAX_SLOTS = 2000  # largest number of slots for a tree
_SLOTS_A_CALL = 50
_SPREAD = 0.05  # standard deviation between untrained experts

Clock = Callable[[], float]  # seconds


class Program(NamedTuple):
    run: Any
    arguments: tuple[Any, ...]

    def __call__(self) -> None:
        jax.block_until_ready(self.run(*self.arguments))

    @property
    def peak_bytes(self) -> int:
        memory = self.run.memory_analysis()
        sizes = (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes)
        return sum(int(size) for size in sizes)


class Timer:
    """Compiled programs on one batch, for methods named as in `METHODS`, including `merged`."""

    def __init__(self, methods: Sequence[str], deployment: Deployment, inputs: Any, tags: Any) -> None:
        self.merges: dict[str, Program] = {}  # for methods that merge slot by slot
        self.serves: dict[str, Program] = {}
        weights = merge.equal_weights(deployment.model)
        programs: dict[int, Any] = {}  # by function, so that methods with the same function share a program
        for method in (METHODS[name] for name in methods):
            loaded = method.prepare(deployment)
            if method.merge is not None:
                self.merges[method.name] = _compiled(programs, method.merge, (loaded, weights))
            arguments = (begin_slot(method, loaded, weights), jnp.asarray(inputs), jnp.asarray(tags))
            self.serves[method.name] = _compiled(programs, method.serve, arguments)

    def measure(self, repeats: int, seed: int, clock: Clock) -> "dict[str, MethodCosts]":
        """Time one batch per repetition with every method. Raises: InvalidValueError for no repetitions."""
        columns = interleaved([*self.serves.values(), *self.merges.values()], repeats, seed, clock).T[:, None]
        serving = dict(zip(self.serves, columns, strict=False))
        merging = dict.fromkeys(self.serves, np.zeros((1, repeats)))  # stays 0 where nothing is merged
        merging |= dict(zip(self.merges, columns[len(self.serves) :], strict=True))
        reference = serving[MERGED] + merging[MERGED]
        return {
            name: MethodCosts(
                serving=serving[name],
                merging=merging[name],
                ratio=(serving[name] + merging[name]) / reference,
                serving_ratio=serving[name] / serving[MERGED],
                loaded_bytes=np.full((1, repeats), float(loaded_bytes(program.arguments[0]))),
                peak_bytes=np.full((1, repeats), float(program.peak_bytes)),
            )
            for name, program in self.serves.items()
        }


def _compiled(programs: dict[int, Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
    if id(function) not in programs:
        programs[id(function)] = jax.jit(function).lower(*arguments).compile(faults.avoiding())
    return Program(programs[id(function)], arguments)


def interleaved(
    runs: Sequence[Callable[[], None]], repeats: int, seed: int, clock: Clock = time.perf_counter
) -> Float[np.ndarray, "repeats runs"]:
    """Return the seconds that one call of each run takes in every repetition, in a new random order."""
    order = np.random.default_rng(seed)
    seconds = np.zeros((repeats, len(runs)))
    for run in runs:
        for _ in range(WARM_UP):
            run()
    for repeat in range(repeats):
        for place in order.permutation(len(runs)):
            began = clock()
            runs[place]()
            seconds[repeat, place] = clock() - began
    return seconds


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    _pin({min(before)})
    try:
        yield
    finally:
        _pin(before)


def _pin(cores: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # a thread that has ended since
            os.sched_setaffinity(int(thread), cores)


class MethodCosts(NamedTuple):
    """Costs of one method by repetition, with ratios to one merged expert in the same repetition."""

    serving: Float[np.ndarray, "1 B"]  # seconds per batch
    merging: Float[np.ndarray, "1 B"]  # seconds per slot, 0 for methods that do not merge slot by slot
    ratio: Float[np.ndarray, "1 B"]  # of serving and merging, with one batch per slot
    serving_ratio: Float[np.ndarray, "1 B"]  # of serving alone, as with many batches per slot
    loaded_bytes: Float[np.ndarray, "1 B"]  # while a slot is served
    peak_bytes: Float[np.ndarray, "1 B"]  # of the program that serves a batch


class StepCosts(NamedTuple):
    seconds: Float[np.ndarray, "1 B"]
    peak_bytes: Float[np.ndarray, "1 B"]  # of the program


class ChoiceCosts(NamedTuple):
    seconds: Float[np.ndarray, "1 B"]


def latencies(methods: Sequence[str], setting: Recipe) -> Measure:
    """Measure what a batch costs with each method, on an untrained model of the setting's sizes."""
    timed = tuple(dict.fromkeys([MERGED, *methods]))

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        rows = {}
        for cell in cells:
            timer = _timer(timed, setting, int(cell.params.slot_size))
            with on_one_core():
                records = timer.measure(count, _order(seed, first), time.process_time)
            rows[cell.name] = _run(cell, first, count, records)
        return rows

    return measure


def step_times(methods: Sequence[str], setting: Recipe) -> Measure:
    """Measure what a fine-tuning step costs, on an untrained model of the setting's sizes.

    The gradient of a batch's loss is taken in all norms and in a method's routers. A bandit merges again in every step,
    without a gradient.
    """
    timed = tuple(methods)

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        rows = {}
        for cell in cells:
            programs = _step_programs(timed, setting, int(cell.params.slot_size))
            with on_one_core():
                seconds = interleaved(programs, count, _order(seed, first), time.process_time)
            records = {
                name: StepCosts(seconds[None, :, place], np.full((1, count), float(programs[place].peak_bytes)))
                for place, name in enumerate(timed)
            }
            rows[cell.name] = _run(cell, first, count, records)
        return rows

    return measure


def choice_times(forms: Mapping[str, str]) -> Measure:
    """Measure the seconds of Tanbr's choice among 20 feasible leaves, by `num_experts`."""

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        programs = [_choice_program(int(cell.params.num_experts), forms[cell.name]) for cell in cells]
        with on_one_core():
            seconds = interleaved(programs, count, _order(seed, first), time.process_time)
        return {
            cell.name: _run(cell, first, count, ChoiceCosts(seconds[None, :, place]))
            for place, cell in enumerate(cells)
        }

    return measure


def untrained(setting: Recipe) -> Deployment:
    random = np.random.default_rng(0)
    model = jit(training.initial, static_argnums=1)(root_key(0), setting)
    copies = [
        jax.tree.map(lambda part: np.repeat(part, setting.num_experts, axis=0), lone)
        for lone in merge.experts_of(model)
    ]
    model = transformer.replace_experts(model, [_noisy(random, experts, _SPREAD) for experts in copies])
    widths = [setting.width] * setting.num_layers
    routers = {
        name: _noisy(random, routing.zeros(kind, widths, setting.num_experts, setting.num_tasks), 1.0)
        for name, kind in routing.KINDS.items()
    }
    return Deployment(model, routers, examples(setting, TRAIN))


def _noisy(random: np.random.Generator, tree: Any, scale: float) -> Any:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf + scale * random.standard_normal(leaf.shape), jnp.float32), jax.device_get(tree)
    )


def drawn_batch(data: Examples, size: int, seed: int = 0) -> Examples:
    batch = np.random.default_rng(seed).integers(0, len(data.labels), size)
    return Examples(*(part[batch] for part in data))


@functools.lru_cache
def _timer(methods: tuple[str, ...], setting: Recipe, batch_size: int) -> Timer:
    deployment = untrained(setting)
    batch = drawn_batch(deployment.calibration, batch_size)
    return Timer(methods, deployment, batch.inputs, batch.tasks)


@functools.lru_cache
def _step_programs(methods: tuple[str, ...], setting: Recipe, batch_size: int) -> list[Program]:
    deployment = untrained(setting)
    batch = drawn_batch(deployment.calibration, batch_size)
    inputs, labels, tags = map(jnp.asarray, batch)
    weights = merge.equal_weights(deployment.model)

    def program_of(method: ServingMethod) -> Program:
        loaded = method.prepare(deployment)
        is_merged = method.merge is not None
        model, routers = (loaded, ()) if is_merged else loaded

        def loss(tuned: tuple[Any, Any], model: Model) -> Float[Array, ""]:
            norms, routers = tuned
            tuned_model = _with_norms(model, norms)
            served = begin_slot(method, tuned_model, weights) if is_merged else (tuned_model, routers)
            values = method.serve(served, inputs, tags)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(values, labels))

        pairs = [(layer.attention_norm, layer.experts_norm) for layer in model.layers]
        norms = [model.head_norm, *itertools.chain.from_iterable(pairs)]
        arguments = ((norms, routers), model)
        return Program(jax.jit(jax.value_and_grad(loss)).lower(*arguments).compile(faults.avoiding()), arguments)

    return [program_of(METHODS[name]) for name in methods]


def _with_norms(model: Model, norms: list[Norm]) -> Model:
    """Return the model with these norms: the head's, then those of each layer's attention and experts."""
    triples = zip(model.layers, norms[1::2], norms[2::2], strict=True)
    layers = tuple(layer._replace(attention_norm=first, experts_norm=second) for layer, first, second in triples)
    return model._replace(head_norm=norms[0], layers=layers)


@functools.lru_cache
def _choice_program(num_experts: int, form: str) -> Program:
    return choice_program(grow_trees(num_experts, replicates=1, seed=0, form=form), form)


def _order(seed: int, first: int) -> int:
    return int(np.random.SeedSequence([seed, first]).generate_state(1)[0])


def _run(cell: Cell, first: int, count: int, records: Any) -> Run:
    return Run(cell.params, np.array([1]), np.arange(first, first + count), None, records)


class GrownTrees(NamedTuple):
    slots: Int[np.ndarray, " B"]  # slots until each tree had its leaves, `MAX_SLOTS` + 1 if it never did
    state: State  # of the first replicate, after `num_slots`
    num_slots: int  # until all trees had their leaves


def grow_trees(
    num_experts: int, replicates: int, seed: int = 0, form: str = uncertainty.DIAGONAL, params: Params | None = None
) -> GrownTrees:
    """Run Tanbr with w = 64 and V = 8 on peaked rewards until each tree has `NUM_LEAVES` feasible leaves.

    Source: Fig. 6 and Sec. V-D of `merging`.
    """
    params = _with_experts(num_experts, params)
    run = system(_room_for(num_experts), rewards.PEAKED, policies.TANBR, uncertainty=form)
    keys = replicate_keys(root_key(seed), jnp.asarray(np.arange(replicates)))
    start_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, 0)
    states = jax.vmap(lambda key: run.init(key, params))(start_keys)
    advance = _compiled_slots(run)
    counts: list[np.ndarray] = []
    for first in range(1, MAX_SLOTS, _SLOTS_A_CALL):
        states, numbers = advance(states, keys, jnp.arange(first, first + _SLOTS_A_CALL, dtype=jnp.int32), params)
        counts += list(np.asarray(numbers))
        if np.all(counts[-1] == NUM_LEAVES):
            break
    has_all = np.stack(counts) == NUM_LEAVES
    slots = np.where(has_all.any(axis=0), has_all.argmax(axis=0) + 1, MAX_SLOTS + 1)
    return GrownTrees(slots, jax.tree.map(lambda leaf: leaf[0], states), len(counts))


def choice_program(trees: GrownTrees, form: str = uncertainty.DIAGONAL) -> Program:
    num_experts = trees.state.memory.tree.point.shape[1]
    dims = _room_for(num_experts)
    params = _with_experts(num_experts)
    policy = policies.named(policies.TANBR, dims, form)
    key = root_key(0)
    mix = jnp.full(dims.num_tasks, 1 / dims.num_tasks)
    now = jnp.asarray(trees.num_slots, jnp.int32)

    def choose(memory: Any, mix: Array, now: Array) -> Array:
        return policy.choose(key, memory, mix, now, params).weights

    arguments = (trees.state.memory, mix, now)
    return Program(jax.jit(choose).lower(*arguments).compile(faults.avoiding()), arguments)


def _room_for(num_experts: int) -> Dims:
    return Dims(num_experts, max_rounds=MAX_SLOTS, max_leaves=NUM_LEAVES)


def _with_experts(num_experts: int, params: Params | None = None) -> Params:
    layer_params = params or Params()
    active = min(num_experts, int(layer_params.max_active))
    return layer_params._replace(num_experts=num_experts, max_active=active)  # pyright: ignore[reportArgumentType]


def _compiled_slots(run: System) -> Any:
    def slots(states: State, keys: Array, times: Int[Array, " n"], params: Params) -> tuple[State, Int[Array, "n B"]]:
        def slot(states: State, now: Array) -> tuple[State, Array]:
            slot_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, now)
            states, infos = jax.vmap(run.step, in_axes=(0, 0, None))(slot_keys, states, params)
            return states, infos.pick.num_candidates

        return jax.lax.scan(slot, states, times)

    return jit(slots)
