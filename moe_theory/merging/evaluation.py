"""The paper's evaluation: accuracy, latency and memory of every method and policy on a trained MoE.

Methods and policies serve slots from the validation split. All have the same mixes, which are fixed or drift.

Source: Tables I and II and Fig. 3 to 5 of `merging`.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from moe_theory.core import programs
from moe_theory.core.random import root_key
from moe_theory.core.routes import num_late
from moe_theory.core.system import simulate_batch
from moe_theory.core.threads import on_all_cores
from moe_theory.merging import costs, policies, rewards
from moe_theory.merging.params import EFFECTIVE_SPLIT, Dims, Params
from moe_theory.merging.rewards import Feedback, Reward, Tasks, slot_reward
from moe_theory.merging.serving import merge
from moe_theory.merging.serving.methods import MERGED, METHODS, Deployment, Loaded
from moe_theory.merging.serving.routers import deployed
from moe_theory.merging.system import Info, State, system
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import VALIDATION, Examples, Recipe, accuracies, draw_slot, examples
from moe_theory.merging.testbed.transformer import Model
from moe_theory.runs import Run, run_cells
from moe_theory.runs.cells import Cell
from moe_theory.verification.claim import Measure, Runs

if TYPE_CHECKING:
    import xarray as xr

MAX_SLOT_SIZE = 128  # largest number of requests in a slot
BEST = "best-merge"
# Name -> (policy, overrides of the parameters).
POLICIES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "tanbr": (policies.TANBR, {}),
    "tanbr-effective": (policies.TANBR, {"split_rule": EFFECTIVE_SPLIT}),
    "tanbr-warm": (policies.TANBR, {"warm_start": True}),
    "nucb": (policies.NUCB, {}),
    "mix": (policies.MIX, {}),
    "uniform": (policies.UNIFORM, {}),
}
MIXES: Mapping[str, Mapping[str, float]] = {"fixed": {}, "drifting": {"mix_drift": 1.0}}
STATIC_SLOTS = 40  # slots of each seed that are served by methods that learn nothing online
SEARCHED = 512  # random weights from which the search for the best merge starts
ASCENT_STEPS = 80  # steps of this search
ASCENT_RATE = 0.1  # Adam's step size on the logits of the weights
REFERENCES = 4  # slots of each seed for which the best merge is searched
Variable = tuple[str | tuple[str, str], Any]  # dimensions and values, of a data set


class SlotAccuracy(NamedTuple):
    accuracy: Float[Array, ""]  # share of right answers among the slot's requests
    mix: Float[Array, " V"]  # psi, over the slot's tasks


def evaluate(
    deployment: Deployment,
    data: Examples,
    methods: Sequence[str],
    chosen_policies: Sequence[str],
    seeds: int,
    num_slots: int,
    repeats: int,
    slot_size: int = MAX_SLOT_SIZE,
    seed: int = 0,
    make_params: Callable[..., Params] = Params,
) -> "xr.Dataset":
    """Return mean accuracies (over seeds) under each of `MIXES`, and median costs (over repetitions), by approach."""
    import xarray as xr  # takes half a second to import

    num_experts = merge.num_experts_of(deployment.model)
    num_tasks = int(np.max(data.tasks)) + 1
    dims = Dims(max_experts=num_experts, num_tasks=num_tasks, max_rounds=num_slots)
    reward = of_model(deployment.model, data, num_tasks, slot_size)  # one reward for all, so that they share programs
    sizes = {"num_experts": num_experts, "max_active": num_experts, "slot_size": slot_size}
    root = root_key(seed)
    answers = {}  # mix -> approach (a method, a policy or `BEST`) -> accuracy and late accuracy, each by seed
    for mix, overrides in MIXES.items():

        def run(name: str, overrides: Mapping[str, float] = overrides) -> SlotAccuracy:
            policy, options = POLICIES[name]
            params = make_params(**{**sizes, **overrides, **options})
            _, records = simulate_batch(system(dims, reward, policy), root, seeds, params, num_slots, observe=observe)
            return records

        runs = dict(zip(chosen_policies, on_all_cores(run, chosen_policies), strict=True))  # all serve the same mixes
        answers[mix] = _answers(deployment, data, methods, runs=runs, slot_size=slot_size, root=root)
    approaches = list(answers[next(iter(MIXES))])  # names, which are the same for all mixes
    rows = np.array([[answers[mix][name] for name in approaches] for mix in MIXES])  # (mix, approach, measure, seed)
    variables = _costs(deployment, data, methods, approaches, slot_size, repeats=repeats, seed=seed)
    for place, name in enumerate(("accuracy", "late_accuracy")):
        samples = rows[:, :, place]
        variables[name] = (("mix", "approach"), samples.mean(axis=-1))
        variables[f"{name}_error"] = (("mix", "approach"), samples.std(axis=-1, ddof=1) / np.sqrt(seeds))
    attributes = {"num_slots": num_slots, "slot_size": slot_size, "device": jax.devices()[0].device_kind}
    return xr.Dataset(variables, {"mix": list(MIXES), "approach": approaches}, attributes)


def _answers(
    deployment: Deployment,
    data: Examples,
    methods: Sequence[str],
    runs: dict[str, SlotAccuracy],
    slot_size: int,
    root: Key[Array, ""],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the accuracy and late accuracy, each by seed, of all methods, of all policies, and of the best merge."""
    mixes_by_slot = next(iter(runs.values())).mix  # mixes, which are the same for all policies
    num_slots, _, seeds = mixes_by_slot.shape
    num_late_slots = num_late(num_slots)
    policies_answers = {}
    for name, run in runs.items():
        slots = np.asarray(run.accuracy, np.float64)
        policies_answers[name] = slots.mean(axis=0), slots[-num_late_slots:].mean(axis=0)
    places = np.unique(np.linspace(0, num_slots - 1, min(STATIC_SLOTS, num_slots)).astype(int))
    mixes = jnp.moveaxis(jnp.asarray(mixes_by_slot)[places], -1, 0)  # (seeds, slots, V)
    is_late = places >= num_slots - num_late_slots

    def serve(name: str) -> Float[np.ndarray, "seeds slots"]:
        loaded = METHODS[name].prepare(deployment)
        return serve_slots(name, loaded, data, mixes=mixes, slot_size=slot_size, key=jax.random.fold_in(root, seeds))

    # Builds with the same answers are computed once. `merged` has no weights of its own.
    sources = {name: METHODS[name].answers_like or name for name in methods if name != MERGED}
    computed = sorted(set(sources.values()))
    served = dict(zip(computed, on_all_cores(serve, computed), strict=True))
    answers = {}
    for name, source in sources.items():
        answers[name] = served[source].mean(axis=1), served[source][:, is_late].mean(axis=1)
    stride = max(1, mixes.shape[1] // REFERENCES)
    best = best_accuracies(deployment.model, data, mixes[:, ::stride], root)
    late_best = best[:, -num_late(best.shape[1]) :]
    return answers | policies_answers | {BEST: (best.mean(axis=1), late_best.mean(axis=1))}


def observe(state: State, info: Info) -> SlotAccuracy:
    del state
    return SlotAccuracy(slot_reward(info.feedback), info.mix)


def serve_slots(
    name: str, loaded: Loaded, data: Examples, mixes: Float[Array, "seeds slots V"], slot_size: int, key: Key[Array, ""]
) -> Float[np.ndarray, "seeds slots"]:
    """Return the accuracy of a method that learns nothing online. All methods receive the same requests."""
    flat = mixes.reshape(-1, mixes.shape[-1])
    keys = jax.random.split(key, len(flat))
    shares_right = _serve_all(METHODS[name].serve, loaded, jax.tree.map(jnp.asarray, data), keys, flat, slot_size)
    return np.asarray(shares_right, np.float64).reshape(mixes.shape[:2])


@functools.partial(programs.jit, static_argnums=(0, 5))
def _serve_all(
    serve: Any, loaded: Any, data: Examples, keys: Key[Array, " n"], mixes: Float[Array, "n V"], slot_size: int
) -> Float[Array, " n"]:
    def accuracy_of_slot(arguments: tuple[Key[Array, ""], Float[Array, " V"]]) -> Float[Array, ""]:
        key, mix = arguments
        slot = draw_slot(key, data, mix, slot_size)
        answers = jnp.argmax(serve(loaded, slot.inputs, slot.tasks), axis=-1)
        return jnp.mean((answers == slot.labels).astype(mixes.dtype))

    return jax.lax.map(accuracy_of_slot, (keys, mixes))


def best_accuracies(
    model: Model, data: Examples, mixes: Float[Array, "seeds slots V"], key: Key[Array, ""]
) -> Float[np.ndarray, "seeds slots"]:
    """Return the largest psi' f(x) found for each mix.

    The search draws random weights, and then ascends the gradient from the best. The accuracy f is over all of `data`,
    which the search itself uses.
    """
    flat = np.asarray(mixes, np.float32).reshape(-1, mixes.shape[-1])
    distinct, places = np.unique(flat, axis=0, return_inverse=True)  # without drift a seed has one mix
    on_device = jax.tree.map(jnp.asarray, data)
    candidates, accuracies_by_task = _candidates(model, on_device, key, mixes.shape[-1])

    def ascend(mix: Float[Array, " V"]) -> Float[Array, ""]:
        return _ascend(model, on_device, candidates, accuracies_by_task @ mix, mix)

    optima = on_all_cores(ascend, list(jnp.asarray(distinct)))
    return np.asarray(optima, np.float64)[places].reshape(mixes.shape[:2])


def _losses_and_accuracies(
    model: Model, data: Examples, weights: Float[Array, " K"], num_tasks: int
) -> tuple[Float[Array, " V"], Float[Array, " V"]]:
    """Return each task's mean loss and accuracy. `data` has equally many inputs of each task, in order."""
    values = transformer.forward(merge.weighted(model, weights), jnp.asarray(data.inputs), merge.single)
    losses = optax.softmax_cross_entropy_with_integer_labels(values, data.labels)
    hits = (jnp.argmax(values, axis=-1) == data.labels).astype(values.dtype)
    return jnp.mean(losses.reshape(num_tasks, -1), axis=1), jnp.mean(hits.reshape(num_tasks, -1), axis=1)


@functools.partial(programs.jit, static_argnums=3)
def _candidates(
    model: Model, data: Examples, key: Key[Array, ""], num_tasks: int
) -> tuple[Float[Array, "S K"], Float[Array, "S V"]]:
    """Return Dirichlet weights, of which half are uniform and half favour few experts, and accuracies by task."""
    concentrations = jnp.repeat(jnp.asarray([0.3, 1.0], jnp.float32), SEARCHED // 2)
    shape = (SEARCHED, merge.num_experts_of(model))
    candidates = jax.nn.softmax(jax.random.loggamma(key, concentrations[:, None], shape, jnp.float32))

    def accuracies_of(weights: Float[Array, " K"]) -> Float[Array, " V"]:
        return _losses_and_accuracies(model, data, weights, num_tasks)[1]

    return candidates, jax.lax.map(accuracies_of, candidates)


@programs.jit
def _ascend(
    model: Model, data: Examples, candidates: Float[Array, "S K"], values: Float[Array, " S"], mix: Float[Array, " V"]
) -> Float[Array, ""]:
    start = jnp.log(candidates[jnp.argmax(values)] + 1e-3)  # finite where a weight is 0
    optimizer = optax.adam(ASCENT_RATE)

    def step(carried: tuple[Array, Any], _: None) -> tuple[tuple[Array, Any], Array]:
        logits, state = carried

        def loss(logits: Array) -> tuple[Array, Array]:
            losses, hits = _losses_and_accuracies(model, data, jax.nn.softmax(logits), len(mix))
            return mix @ losses, mix @ hits

        gradient, value = jax.grad(loss, has_aux=True)(logits)
        change, state = optimizer.update(gradient, state)
        return (optax.apply_updates(logits, change), state), value  # pyright: ignore[reportReturnType]

    _, values_on_the_way = jax.lax.scan(step, (start, optimizer.init(start)), length=ASCENT_STEPS)
    return jnp.maximum(jnp.max(values), jnp.max(values_on_the_way))


def _costs(
    deployment: Deployment,
    data: Examples,
    methods: Sequence[str],
    approaches: Sequence[str],
    slot_size: int,
    repeats: int,
    seed: int,
) -> dict[str, Variable]:
    """Return medians over repetitions by approach. A policy, or `BEST`, costs as much as one merged expert."""
    batch = costs.drawn_batch(data, slot_size, seed)
    timer = costs.Timer(methods, deployment, batch.inputs, batch.tasks)
    with costs.on_one_core():
        timed = timer.measure(repeats, seed, time.process_time)
    sources = [name if name in timed else MERGED for name in approaches]
    medians: dict[str, Variable] = {
        field: ("approach", [float(np.median(getattr(timed[name], field))) for name in sources])
        for field in costs.MethodCosts._fields
    }
    peaks = [timer.merges[name].peak_bytes if name in timer.merges else 0 for name in sources]
    return medians | {"merging_peak_bytes": ("approach", peaks)}


def of_model(model: Model, data: Examples, num_tasks: int, max_slot_size: int = MAX_SLOT_SIZE) -> Reward:
    """Return a reward: the accuracy on each task's requests of a trained MoE, merged to one expert per layer.

    `value` only uses the first input of each task, because nothing here reads its result. The regret is NaN. Each call
    returns another reward, for which `system` makes a new system.

    Args:
        data: in V equal parts, of which the v-th belongs to task v.
        max_slot_size: largest `Params.slot_size`.
    """
    num_experts = merge.num_experts_of(model)
    on_device = jax.tree.map(jnp.asarray, data)
    first_places = len(data.labels) // num_tasks * np.arange(num_tasks)
    first_of_tasks = jax.tree.map(lambda leaf: leaf[first_places], on_device)

    def logits_of(weights: Float[Array, " K"], inputs: Float[Array, "n s p"]) -> Float[Array, "n C"]:
        served = merge.weighted(model, weights[:num_experts].astype(model.b_head.dtype))
        return transformer.forward(served, inputs, merge.single).astype(weights.dtype)

    def value(world: Tasks, weights: Float[Array, " K"]) -> Float[Array, " V"]:
        del world
        inputs, labels, tasks = first_of_tasks
        return accuracies(logits_of(weights, inputs), labels, tasks, num_tasks)[0]

    def serve(
        key: Key[Array, ""], world: Tasks, weights: Float[Array, " K"], mix: Float[Array, " V"], params: Params
    ) -> Feedback:
        del world
        slot = draw_slot(key, on_device, mix, max_slot_size)
        is_request = jnp.arange(max_slot_size, dtype=jnp.int32) < params.slot_size
        tasks = jnp.where(is_request, slot.tasks, -1)  # -1 counts for no task
        logits = logits_of(weights, jnp.asarray(slot.inputs))
        return Feedback(*accuracies(logits, jnp.asarray(slot.labels), tasks, num_tasks))

    return Reward(draw=rewards.draw_tasks, mix=rewards.mix_of, value=value, serve=serve, best=None)


def slot_accuracies(
    dims: Dims, policy_of: Mapping[str, tuple[str, str]], slot_size: int, num_last: int, setting: Recipe
) -> Measure:
    """Return a function that measures accuracies of the trained model.

    Cells are policies, and methods that learn nothing online. Replicates are streams of task mixes and requests, the
    same in all cells. One model, trained or read from the cache, serves them. Records are `SlotAccuracy`, for all slots
    of policies and for the last `num_last` of methods.

    Args:
        policy_of: cell -> policy and monitor. Other cells are named after methods.
    """

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        reward = _reward(setting, slot_size)
        policy_cells = []
        for cell in cells:
            if cell.name in policy_of:
                policy, monitor = policy_of[cell.name]
                policy_cells.append(dataclasses.replace(cell, system=system(dims, reward, policy, monitor)))
        if not policy_cells:  # any policy gives the mixes for methods
            policy_cells.append(dataclasses.replace(cells[0], system=system(dims, reward, policies.AVERAGE)))
        runs = dict(run_cells(policy_cells, count, first=first, seed=seed))
        records = next(iter(runs.values())).records
        mixes = np.moveaxis(np.asarray(records.mix), -1, 0)[:, -num_last:]  # (B, num_last, V)
        for cell in cells:
            if cell.name not in policy_of:
                runs[cell.name] = _serve_cell(cell, mixes, setting, slot_size, first=first, count=count, seed=seed)
        return {cell.name: runs[cell.name] for cell in cells}

    return measure


def _serve_cell(
    cell: Cell, mixes: Float[np.ndarray, "B last V"], setting: Recipe, slot_size: int, first: int, count: int, seed: int
) -> Run:
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root_key(seed), jnp.arange(first, first + count))
    data = examples(setting, VALIDATION)
    loaded = METHODS[cell.name].prepare(_deployment(setting))
    shares_right = [
        serve_slots(cell.name, loaded, data, mixes=jnp.asarray(mix[None]), slot_size=slot_size, key=key)[0]
        for key, mix in zip(keys, mixes, strict=True)
    ]
    records = SlotAccuracy(np.stack(shares_right, axis=-1), np.moveaxis(mixes, 0, -1))  # pyright: ignore[reportArgumentType]
    rounds = cell.rounds[-mixes.shape[1] :]
    return Run(cell.params, rounds, replicates=np.arange(first, first + count), state=None, records=records)


_deployment = functools.cache(deployed)


@functools.cache
def _reward(setting: Recipe, slot_size: int) -> Reward:
    return of_model(_deployment(setting).model, examples(setting, VALIDATION), setting.num_tasks, slot_size)
