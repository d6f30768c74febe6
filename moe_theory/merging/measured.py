"""Clocks as experiments: replicates are repetitions of a timing, so that verdicts on latency are statistical ones.

An `Experiment` with one of these as its `measure` needs no system. What is timed is compiled once a process. Everything
runs on one core, and seconds are the processor's: what other processes take meanwhile is not counted.
"""

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from moe_theory.core.random import root_key
from moe_theory.merging import costs, routing_costs
from moe_theory.merging.costs import Clock, Program
from moe_theory.merging.serving import merge, routing
from moe_theory.merging.serving.methods import MERGED, Deployment, named
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import TRAIN, Setting, examples, tasks_of
from moe_theory.runs import Run
from moe_theory.runs.cells import Cell
from moe_theory.verify.claim import Measure, Runs

_SPREAD = 0.05  # of experts that were not trained about one another


class Costs(NamedTuple):
    """What one method costs in each repetition; `ratio` is to one merged expert in the same repetition."""

    serving: Float[np.ndarray, "1 B"]  # seconds a batch
    merging: Float[np.ndarray, "1 B"]  # seconds a slot; 0 for what does not merge slot by slot
    ratio: Float[np.ndarray, "1 B"]  # of serving and merging, with one batch a slot
    serving_ratio: Float[np.ndarray, "1 B"]  # without merging: many batches a slot
    loaded_bytes: Float[np.ndarray, "1 B"]  # while a slot is served
    peak_bytes: Float[np.ndarray, "1 B"]  # of the program that serves a batch


class Routing(NamedTuple):
    """How long one choice of weights takes."""

    seconds: Float[np.ndarray, "1 B"]


def latencies(methods: Sequence[str], setting: Setting | None = None, clock: Clock = time.process_time) -> Measure:
    """What a batch costs by each of these methods, on an untrained model of the setting's sizes.

    A cell's batches are of its `slot_size` requests. Its records are `Costs` by the methods' names; `merged` is timed
    whether it is asked for or not. No program here takes another time for other parameters.

    Args:
        clock: seconds of this process unless given. On the one core that it is held to they are those on the wall, but
            for what other processes take of that core.
    """
    chosen = tuple(dict.fromkeys([MERGED, *methods]))
    of = Setting() if setting is None else setting

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        found = {}
        for cell in cells:
            timer = _timer(chosen, of, int(cell.params.slot_size))
            with costs.on_one_core():
                table = timer.measure(count, _order(seed, first), clock)
            records = {name: _costs_of(table.sel(approach=name)) for name in chosen}
            found[cell.name] = _run(cell, first, count, records)
        return found

    return measure


def routing_times(forms: Mapping[str, str], clock: Clock = time.process_time) -> Measure:
    """Seconds in which Tanbr chooses from 20 feasible leaves, among a cell's `num_experts`; records are `Routing`.

    Args:
        forms: how the norm by Z^-1 is computed, by cell: names of `uncertainty.UNCERTAINTIES`.
        clock: as of `latencies`.
    """

    def measure(cells: Sequence[Cell], first: int, count: int, seed: int) -> Runs:
        programs = [_routing_program(int(cell.params.num_experts), forms[cell.name]) for cell in cells]
        with costs.on_one_core():
            seconds = costs.interleaved(programs, count, _order(seed, first), clock)
        return {
            cell.name: _run(cell, first, count, Routing(seconds[None, :, place])) for place, cell in enumerate(cells)
        }

    return measure


def untrained(setting: Setting, seed: int = 0) -> Deployment:
    """A model of the setting's sizes whose experts differ at random, with random routers of every kind."""
    random = np.random.default_rng(seed)
    model = jax.jit(training.initial, static_argnums=(1, 2))(root_key(seed), setting, tasks_of(setting))
    copies = [
        jax.tree.map(lambda part: np.repeat(part, setting.num_experts, axis=0), e) for e in merge.experts_of(model)
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


@functools.lru_cache
def _timer(methods: tuple[str, ...], setting: Setting, batch_size: int) -> costs.Timer:
    deployment = untrained(setting)
    data = deployment.calibration
    batch = np.random.default_rng(0).integers(0, len(data.labels), batch_size)
    return costs.Timer([named(name) for name in methods], deployment, data.inputs[batch], data.tasks[batch])


@functools.lru_cache
def _routing_program(num_experts: int, form: str) -> Program:
    return routing_costs.routing_program(num_experts, form=form)


def _costs_of(table: Any) -> Costs:
    repeats = table.sizes["repeat"]
    return Costs(*(np.broadcast_to(np.asarray(table[name], np.float64), (1, repeats)) for name in Costs._fields))


def _order(seed: int, first: int) -> int:
    """A seed for the order of a timing that begins with this replicate."""
    return int(np.random.SeedSequence([seed, first]).generate_state(1)[0])


def _run(cell: Cell, first: int, count: int, records: Any) -> Run:
    return Run(cell.params, np.array([1]), np.arange(first, first + count), None, records)
