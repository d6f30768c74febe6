"""Latency and memory of every serving method, and of Tanbr's choice of weights.

Every repetition times all programs once, in a new random order. Ratios are taken within a repetition.
"""

import contextlib
import functools
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
_SLOTS_A_CALL = 50  # slots between two looks at whether all trees have their leaves
_SPREAD = 0.05  # standard deviation between untrained experts

Clock = Callable[[], float]  # seconds


class Program(NamedTuple):
    run: Any  # a compiled function
    arguments: tuple[Any, ...]  # arguments of each call

    def __call__(self) -> None:
        jax.block_until_ready(self.run(*self.arguments))

    @property
    def peak_bytes(self) -> int:
        memory = self.run.memory_analysis()
        sizes = (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes)
        return sum(int(size) for size in sizes)


class Timer:
    """Compiled programs on one batch, for methods named as in `METHODS`. One of them must be `merged`."""

    def __init__(self, methods: Sequence[str], deployment: Deployment, inputs: Any, tags: Any) -> None:
        self.merges: dict[str, Program] = {}  # programs of methods that merge slot by slot
        self.serves: dict[str, Program] = {}  # by method
        weights = merge.equal_weights(deployment.model)
        compiled: dict[int, Any] = {}  # by the function's `id`, so that methods with one function share its program
        for name in methods:
            method = METHODS[name]
            loaded = method.prepare(deployment)
            if method.merge is not None:
                self.merges[name] = _shared_program(compiled, method.merge, (loaded, weights))
            arguments = (begin_slot(method, loaded, weights), jnp.asarray(inputs), jnp.asarray(tags))
            self.serves[name] = _shared_program(compiled, method.serve, arguments)

    def measure(self, repeats: int, seed: int, clock: Clock) -> "dict[str, MethodCosts]":
        """Time one batch per repetition with every method. Raises: InvalidValueError for no repetitions."""
        seconds = interleaved([*self.serves.values(), *self.merges.values()], repeats, seed, clock)
        columns = seconds.T[:, None]  # one (1, repeats) column for each program
        serving = dict(zip(self.serves, columns, strict=False))  # the other columns belong to merges
        merging = dict.fromkeys(self.serves, np.zeros((1, repeats)))  # stays 0 where nothing is merged
        merging |= dict(zip(self.merges, columns[len(self.serves) :], strict=True))
        reference = serving[MERGED] + merging[MERGED]
        return {
            name: MethodCosts(
                serving=serving[name],
                merging=merging[name],
                ratio=(serving[name] + merging[name]) / reference,
                serving_ratio=serving[name] / serving[MERGED],
                loaded_bytes=np.full((1, repeats), float(loaded_bytes(program.arguments[0]))),  # of `begin_slot`
                peak_bytes=np.full((1, repeats), float(program.peak_bytes)),
            )
            for name, program in self.serves.items()
        }


def _shared_program(compiled: dict[int, Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
    """Return the function's program, with its compiled function from `compiled`, to which a new one is added."""
    if id(function) not in compiled:
        compiled[id(function)] = _compile(function, arguments)
    return Program(compiled[id(function)], arguments)


def _compile(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return jax.jit(function).lower(*arguments).compile(faults.avoiding())


def interleaved(
    runs: Sequence[Callable[[], None]], repeats: int, seed: int, clock: Clock = time.perf_counter
) -> Float[np.ndarray, "repeats runs"]:
    """Return the seconds that one call of each of `runs` takes in every repetition, in a new random order."""
    random = np.random.default_rng(seed)
    seconds = np.zeros((repeats, len(runs)))
    for run in runs:
        for _ in range(WARM_UP):
            run()
    for repeat in range(repeats):
        for place in random.permutation(len(runs)):
            began = clock()
            runs[place]()
            seconds[repeat, place] = clock() - began
    return seconds


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Run this process on one of its cores, where the system can do so, as Linux can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    _pin({min(cores)})
    try:
        yield
    finally:
        _pin(cores)


def _pin(cores: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):  # `sched_setaffinity(0, ...)` would pin the calling thread alone
        with contextlib.suppress(ProcessLookupError):  # a thread that has ended since
            os.sched_setaffinity(int(thread), cores)


class MethodCosts(NamedTuple):
    """Costs of one method by repetition, with ratios to one merged expert in the same repetition."""

    serving: Float[np.ndarray, "1 B"]  # seconds per batch
    merging: Float[np.ndarray, "1 B"]  # seconds per slot, 0 for methods that do not merge slot by slot
    ratio: Float[np.ndarray, "1 B"]  # ratio of serving + merging, as with one batch per slot
    serving_ratio: Float[np.ndarray, "1 B"]  # ratio of serving alone, as with many batches per slot
    loaded_bytes: Float[np.ndarray, "1 B"]  # bytes in memory while a slot is served
    peak_bytes: Float[np.ndarray, "1 B"]  # most memory of the program that serves a batch


class StepCosts(NamedTuple):
    seconds: Float[np.ndarray, "1 B"]
    peak_bytes: Float[np.ndarray, "1 B"]  # most memory of the program


class ChoiceCosts(NamedTuple):
    seconds: Float[np.ndarray, "1 B"]


def latencies(methods: Sequence[str], setting: Recipe) -> Measure:
    """Measure what a batch costs with each method, on an untrained model of the setting's sizes."""
    timed = tuple(dict.fromkeys([MERGED, *methods]))  # each once

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        runs = {}
        for cell in cells:
            timer = _timer(timed, setting, int(cell.params.slot_size))
            with on_one_core():
                records = timer.measure(repeats=count, seed=_order_seed(seed, first), clock=time.process_time)
            runs[cell.name] = _run(cell, first, count, records)
        return runs

    return measure


def step_times(methods: Sequence[str], setting: Recipe) -> Measure:
    """Measure what a fine-tuning step costs, on an untrained model of the setting's sizes.

    A step computes the gradient of a batch's loss with respect to the parameters of all norms and of the method's
    routers. A method without routers merges its experts again in every step, with weights that have no gradient.
    """
    timed = tuple(methods)

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        runs = {}
        for cell in cells:
            programs = _step_programs(timed, setting, int(cell.params.slot_size))
            with on_one_core():
                seconds = interleaved(programs, count, _order_seed(seed, first), time.process_time)
            records = {}
            for name, program, column in zip(timed, programs, seconds.T, strict=True):
                records[name] = StepCosts(column[None], np.full((1, count), float(program.peak_bytes)))
            runs[cell.name] = _run(cell, first, count, records)
        return runs

    return measure


def choice_times(forms: Mapping[str, str]) -> Measure:
    """Measure the seconds of Tanbr's choice among `NUM_LEAVES` leaves, with the form of Z in `forms` for each cell."""

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        programs = [_choice_program(int(cell.params.num_experts), forms[cell.name]) for cell in cells]
        with on_one_core():
            seconds = interleaved(programs, count, _order_seed(seed, first), time.process_time)
        pairs = zip(cells, seconds.T, strict=True)
        return {cell.name: _run(cell, first, count, ChoiceCosts(column[None])) for cell, column in pairs}

    return measure


def untrained(setting: Recipe) -> Deployment:
    """Return a random model, whose experts differ from one another, with random routers of all kinds."""
    random = np.random.default_rng(0)
    model = jit(training.initial, static_argnums=1)(root_key(0), setting)
    layers = []
    for lone_expert in merge.experts_of(model):
        copies = jax.tree.map(lambda part: np.repeat(part, setting.num_experts, axis=0), lone_expert)
        layers.append(_noisy(random, copies, _SPREAD))
    model = transformer.replace_experts(model, layers)
    widths = [setting.width] * setting.num_layers
    routers = {}
    for name, kind in routing.KINDS.items():
        zeros = routing.zeros(kind, widths, setting.num_experts, setting.num_tasks)
        routers[name] = _noisy(random, zeros, scale=1.0)
    return Deployment(model, routers, examples(setting, TRAIN))


def _noisy(random: np.random.Generator, tree: Any, scale: float) -> Any:
    def add_noise(leaf: np.ndarray) -> Array:
        return jnp.asarray(leaf + scale * random.standard_normal(leaf.shape), jnp.float32)

    return jax.tree.map(add_noise, jax.device_get(tree))


def drawn_batch(data: Examples, size: int, seed: int = 0) -> Examples:
    places = np.random.default_rng(seed).integers(0, len(data.labels), size)
    return Examples(*(part[places] for part in data))


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

        norms = [model.head_norm]  # in the order of `_with_norms`
        for layer in model.layers:
            norms += [layer.attention_norm, layer.experts_norm]
        arguments = ((norms, routers), model)
        return Program(_compile(jax.value_and_grad(loss), arguments), arguments)

    return [program_of(METHODS[name]) for name in methods]


def _with_norms(model: Model, norms: list[Norm]) -> Model:
    """Return the model with these norms: the head's, then those of each layer's attention and experts."""
    triples = zip(model.layers, norms[1::2], norms[2::2], strict=True)
    layers = tuple(layer._replace(attention_norm=first, experts_norm=second) for layer, first, second in triples)
    return model._replace(head_norm=norms[0], layers=layers)


@functools.lru_cache
def _choice_program(num_experts: int, form: str) -> Program:
    return choice_program(grow_trees(num_experts, replicates=1, seed=0, form=form), form)


def _order_seed(seed: int, first: int) -> int:
    return int(np.random.SeedSequence([seed, first]).generate_state(1)[0])


def _run(cell: Cell, first: int, count: int, records: Any) -> Run:
    return Run(cell.params, np.array([1]), np.arange(first, first + count), state=None, records=records)


class GrownTrees(NamedTuple):
    slots: Int[np.ndarray, " B"]  # slots until each tree had its leaves, `MAX_SLOTS` + 1 if it never did
    state: State  # state of the first replicate after `num_slots`
    num_slots: int  # slots until all trees had their leaves


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
    leaf_counts: list[np.ndarray] = []  # leaves of each tree, by slot
    for first in range(1, MAX_SLOTS, _SLOTS_A_CALL):
        times = jnp.arange(first, first + _SLOTS_A_CALL, dtype=jnp.int32)
        states, new_counts = advance(states, keys, times, params)
        leaf_counts += list(np.asarray(new_counts))
        if np.all(leaf_counts[-1] == NUM_LEAVES):
            break
    has_all = np.stack(leaf_counts) == NUM_LEAVES
    slots = np.where(has_all.any(axis=0), has_all.argmax(axis=0) + 1, MAX_SLOTS + 1)
    return GrownTrees(slots, state=jax.tree.map(lambda leaf: leaf[0], states), num_slots=len(leaf_counts))


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
    return Program(_compile(choose, arguments), arguments)


def _room_for(num_experts: int) -> Dims:
    return Dims(max_experts=num_experts, max_rounds=MAX_SLOTS, max_leaves=NUM_LEAVES)


def _with_experts(num_experts: int, params: Params | None = None) -> Params:
    params = params or Params()
    active = min(num_experts, int(params.max_active))
    return params._replace(num_experts=num_experts, max_active=active)  # pyright: ignore[reportArgumentType]


def _compiled_slots(run: System) -> Any:
    """Return a compiled function that plays slots in all replicates, and counts the candidates of each slot."""

    def play(states: State, keys: Array, times: Int[Array, " n"], params: Params) -> tuple[State, Int[Array, "n B"]]:
        def play_slot(states: State, now: Array) -> tuple[State, Array]:
            slot_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, now)
            states, infos = jax.vmap(run.step, in_axes=(0, 0, None))(slot_keys, states, params)
            return states, infos.pick.num_candidates

        return jax.lax.scan(play_slot, states, times)

    return jit(play)
