"""Runs of each system: batches with their final states, parameters varied in memory, and sweeps in a folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

import moe_theory as mt
from benchmarks.oracle.records import Record, number_or_array
from benchmarks.oracle.results import variables_of
from moe_theory import continual, deep, edge, generalization, merging

SEED = 7
REPLICATES = 64  # as wide as a block of the engine on a CPU
FEW = 4  # of networks


def batches() -> Iterator[Record]:
    """Run `simulate_batch` on the system of each paper, with its variants."""
    small = {"num_tasks": 4, "num_features": 8, "num_samples": 3}
    dims = continual.Dims(max_experts=5, max_active=2, **small)
    params = continual.Params(num_experts=4)
    yield _batch("continual", continual.system(dims), params, 30)
    yield _batch("continual-top-2", continual.system(dims), params._replace(num_active=2), 30)
    repaired = continual.system(dims, locality=continual.baseline.repaired)
    yield _batch("reinforced", repaired, params._replace(terminate=False), 30)

    servers = edge.Params(num_experts=4, max_transfer_delay=2)
    yield _batch("edge", edge.system(edge.Dims(max_experts=5, **small)), servers, 40)
    shared = edge.Dims(max_experts=5, max_capacity=3, **small)
    yield _batch("edge-capacity-3", edge.system(shared), servers._replace(num_experts=3, capacity=3), 40)
    waiting = edge.Dims(max_experts=5, max_capacity=2, max_waiting=4, when_busy="soonest", **small)
    nearest = edge.system(waiting, edge.policies.nearest)
    yield _batch("edge-nearest-waiting", nearest, servers._replace(num_experts=2, capacity=2), 40)

    sparse = generalization.Dims(max_experts=4, num_features=6, max_samples=32)
    top = generalization.Params(num_experts=4, num_active=2, num_samples=32)
    yield _batch("generalization", generalization.system(sparse), top, 20)

    slots = merging.Dims(max_experts=4, num_tasks=3, max_rounds=40, max_leaves=16, width=8)
    tree = merging.Params(num_experts=4, max_active=4)
    yield _batch("merging", merging.system(slots), tree, 40)


def presets() -> Iterator[Record]:
    """Run a few rounds of two presets of networks, and yield their final states and records."""
    for name, cell, num_rounds in (
        ("continual-mnist-small", "M = 4", 6),
        ("edge-mnist-small", "M = 5, adaptive", 10),
    ):
        preset = deep.preset(name)
        system = preset.system(deep.datasets.load("digits"))
        params = deep.Params(**preset.cells()[cell])
        yield _batch(f"deep/{name}", system, params, num_rounds, replicates=FEW)


def variations() -> Iterator[Record]:
    """Vary parameters with `mt.vary`."""
    dims = continual.Dims(max_experts=4, num_tasks=4, num_features=8, num_samples=3)
    experts = mt.vary(
        continual.system(dims), continual.Params(), 20, REPLICATES, record_every=5, seed=SEED, num_experts=[1, 2, 4]
    )
    yield Record("vary/continual", variables_of(experts))
    shared = edge.Dims(max_experts=4, max_capacity=2, num_tasks=4, num_features=8, num_samples=3)
    servers = edge.Params(num_experts=4, max_transfer_delay=2)
    capacities = mt.vary(edge.system(shared), servers, 20, REPLICATES, record_every=5, seed=SEED, capacity=[1, 2])
    yield Record("vary/edge", variables_of(capacities))


SWEEPS: dict[str, dict[str, Any]] = {  # arguments of `mt.Sweep`, by the system's name
    "continual": {
        "rounds": 20,
        "axes": {"num_experts": [1, 4], "learning_rate": {"logspace": [0.05, 0.5], "num": 2}},
        "dims": {"num_tasks": 4, "num_features": 8, "num_samples": 3},
    },
    "edge": {
        "rounds": 20,
        "axes": {"policy": ["adaptive", "nearest"], "num_experts": [3, 6]},
        "dims": {"num_tasks": 4, "num_features": 8, "num_samples": 3, "max_capacity": 2},
        "params": {"capacity": 2},
    },
    "generalization": {
        "rounds": 10,
        "zips": {"size": {"num_experts": [2, 4], "num_active": [1, 2]}},
        "dims": {"num_features": 6, "max_samples": 32},
        "params": {"num_samples": 32},
    },
    "merging": {
        "rounds": 20,
        "axes": {"policy": ["tanbr", "nucb"]},
        "dims": {"num_tasks": 3, "max_rounds": 20, "max_leaves": 16, "width": 8},
        "params": {"num_experts": 4, "max_active": 4},
    },
}


def sweeps(scratch: Path) -> Iterator[Record]:
    """Run a small sweep of each system, statistics and replicates, in an empty folder."""
    for name, arguments in SWEEPS.items():
        sweep = mt.Sweep(
            system=name, replicates=2 * REPLICATES, record_every=5, keep="replicates", seed=SEED, **arguments
        )
        results = sweep.run(scratch / name)
        yield Record(f"sweep/{name}", variables_of(results.to_xarray()))


def _batch(name: str, system: mt.System, params: Any, num_rounds: int, *, replicates: int = REPLICATES) -> Record:
    state, info = mt.simulate_batch(system, mt.root_key(SEED), replicates, params, num_rounds, record_every=2)
    return Record(f"simulate/{name}", leaves_of({"state": state, "info": info}))


def leaves_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a tree by the names on the way to each leaf."""
    fields = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = jax.random.key_data(leaf) if is_key else leaf
        fields[jax.tree_util.keystr(path, simple=True, separator="/")] = number_or_array(np.asarray(array))
    return fields
