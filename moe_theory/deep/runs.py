"""Runs of a preset, one for each cell and seed, with checkpoints.

Each run is a row in the store with its records and, until it is complete, its state. Rounds run in parts of fixed
length, so on one device a resumed run equals an uninterrupted one bit for bit.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
import itertools
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree, Shaped

from moe_theory.core import engine, programs
from moe_theory.core.constraints import Count, require, typed
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.machine import available_cores
from moe_theory.core.programs import compiled_once
from moe_theory.core.random import replicate_keys, root_key, step_key
from moe_theory.core.system import System, observe_info
from moe_theory.deep import continual, edge
from moe_theory.deep.datasets import DataSet
from moe_theory.deep.networks import NETWORKS, Network
from moe_theory.deep.params import Params, check_params
from moe_theory.deep.presets import CONTINUAL, EDGE, Preset
from moe_theory.deep.tasks import Pool, check_classes, on_device, pool_of
from moe_theory.runs import Run
from moe_theory.runs.files import digest, plain
from moe_theory.runs.key import code_digest
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.provenance import backend, fingerprint, is_x64, versions
from moe_theory.runs.runner import Runner, Task
from moe_theory.runs.store import Store, pack, unpack
from moe_theory.runs.workers import device_pool
from moe_theory.verification.claim import ReadingLike, Runs
from moe_theory.verification.request import MIN_REPLICATES

if TYPE_CHECKING:
    import xarray as xr

EVERY = 10  # default number of rounds between checkpoints
WITHOUT_EFFECT = {  # names of parameters that a paper's system ignores
    CONTINUAL: Params._fields[Params._fields.index("policy") :],
    EDGE: ("balance_weight", "termination_threshold", "terminate", "accumulate_flags", "locality_power"),
}
PADDED_ROUNDS = 60  # lengths of arrays of arrivals are multiples of it, so that plans share programs
EXPERT = "expert_index"  # dimension of records with an entry per expert
CLASS = "class"  # dimension of records with an entry per class that is a task
OF_CLASSES = "class_"  # prefix of the names of such records
_RECORD = "record."  # prefix of the names of a record's arrays
_STATE = "state."  # prefix of the names of a state's arrays


@dataclasses.dataclass(frozen=True)
class Plan:
    """A request to run a preset, made by `deep.plan`. Raises: InvalidValueError if it cannot run."""

    preset: Preset
    data: DataSet
    reading: ReadingLike
    replicates: int
    seed: int = 0
    every: int = EVERY  # rounds between checkpoints
    folder: Path | None = None  # folder of the store, or None to store nothing
    settings: Mapping[str, float | str] = dataclasses.field(
        default_factory=dict
    )  # values or texts, which override the preset

    def __post_init__(self) -> None:
        require(Count, replicates=self.replicates, every=self.every)
        root_key(self.seed)
        self.params()
        check_classes(self.data, self.preset.classes)

    @property
    def setting(self) -> str:
        """The reading and its settings, such as "balanced, gate_scale=5"."""
        return ", ".join([self.reading.name, *(f"{name}={value}" for name, value in self.settings.items())])

    def params(self) -> dict[str, Params]:
        """Return the parameters of each cell, by its name. Raises: InvalidValueError."""
        defaults = self.reading.params()
        self.reading.params(**self.settings)  # refuses unknown names
        for name in self.settings:
            reason = ""  # why the parameter cannot be set
            if name in set_by(self.preset):
                reason = f"{self.preset.name} sets it in all cells"
            elif name in WITHOUT_EFFECT[self.preset.paper]:
                reason = f"the system of {self.preset.paper}, which {self.preset.name} runs, ignores it"
            if reason:
                raise InvalidValueError(f"{name} cannot be set: {reason}. Set another parameter.", argument=name)
        settings = {name: typed(name, value, defaults) for name, value in self.settings.items()}
        cells = {name: self.reading.params(**{**cell, **settings}) for name, cell in self.preset.cells().items()}
        for params in cells.values():
            check_params(self.preset.dims, params, len(self.preset.classes))
        return cells

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of replicates after which claims are analysed: all, half, and so on down to `MIN_REPLICATES`."""
        counts = [self.replicates]
        while counts[0] // 2 >= MIN_REPLICATES:
            counts.insert(0, counts[0] // 2)
        return tuple(counts)

    @functools.cached_property
    def padded(self) -> Preset:
        """The preset with arrays for a multiple of `PADDED_ROUNDS` rounds."""
        num_paddings = -(-self.preset.num_rounds // PADDED_ROUNDS)  # rounded up
        dims = dataclasses.replace(self.preset.dims, max_rounds=num_paddings * PADDED_ROUNDS)
        return dataclasses.replace(self.preset, dims=dims)

    @functools.cached_property
    def store(self) -> Store | None:
        """The store of the runs, if there is a folder. Raises: OutputError if the folder is an address."""
        if self.folder is None:
            return None
        return Store(self.folder)


def set_by(preset: Preset) -> set[str]:
    """Return "num_experts", "num_rounds" and the names of parameters that differ between the cells."""
    first, *other_cells = preset.cells().values()
    names = {"num_experts", "num_rounds"}
    for cell in other_cells:
        names |= {name for name, value in cell.items() if value != first.get(name, value)}
    return names


def run_plan(plan: Plan, progress: Progress = quiet, num_threads: int = 2, replicates: range | None = None) -> Runs:
    cells = plan.params()
    seeds = range(plan.replicates) if replicates is None else replicates
    shared = _Shared(plan, progress)
    pairs = itertools.product(seeds, cells)
    tasks = (
        Task(functools.partial(shared.run, cell, seed, cells[cell]), work=0, place=(cell, seed)) for seed, cell in pairs
    )
    records: dict[tuple[str, int], PyTree] = {}
    progress.add_work(len(cells) * len(seeds) * plan.preset.num_rounds)
    progress.running("rounds")
    runner = Runner(device_pool(num_threads))
    try:
        runner.add(plan, tasks, 0, plan.preset.name)
        while runner.is_busy:
            for result in runner.wait():
                records[result.task.place] = result.future.result()
    except BaseException as failure:
        shared.is_stopped.set()
        if not isinstance(failure, KeyboardInterrupt):  # `stop` waits for running parts, which may take minutes
            runner.stop()
        raise
    rounds = np.arange(1, plan.preset.num_rounds + 1)
    runs = {}
    for cell, params in cells.items():
        by_seed = [records[cell, seed] for seed in seeds]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1), *by_seed)  # replicates are the last axis
        runs[cell] = Run(params, rounds, np.array(seeds), state=None, records=stacked)
    return runs


def joined(runs: Runs, more: Runs) -> Runs:
    if not runs:
        return more
    joined_runs = {}
    for cell, run in runs.items():
        replicates = np.concatenate([run.replicates, more[cell].replicates])
        records = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), run.records, more[cell].records)
        joined_runs[cell] = run._replace(replicates=replicates, records=records)
    return joined_runs


def dataset(plan: Plan, runs: Runs, command: str = "") -> "xr.Dataset":
    import xarray as xr  # takes longer to import than everything else

    first = next(iter(runs.values()))
    variables = {}
    for name in first.records._fields:
        values = np.stack([getattr(run.records, name) for run in runs.values()])
        entry_axis = CLASS if name.startswith(OF_CLASSES) else EXPERT
        entry_axes = [entry_axis] * (values.ndim - 3)  # none for a number per round
        variables[name] = xr.Variable(("cell", "round", *entry_axes, "replicate"), values)
    coordinates = {
        "cell": list(runs),
        "round": first.rounds,
        "replicate": first.replicates,
        EXPERT: np.arange(plan.preset.dims.max_experts),
        CLASS: [plan.data.class_names[label] for label in plan.preset.classes],
    }
    attributes = {
        "preset": plan.preset.name,
        "source": f"{plan.preset.where} of {plan.preset.paper}",
        "data": plan.data.title,
        "data_digest": digest_of(plan.data),
        "reading": plan.setting,
        "seed": plan.seed,
        "parameters": json.dumps({cell: params._asdict() for cell, params in plan.params().items()}),
        "versions": json.dumps(versions()),
        "command": command,
    }
    return xr.Dataset(variables, coordinates, attributes)


class RunCheckpoint(NamedTuple):
    records: dict[str, Shaped[np.ndarray, "done ..."]]
    state: list[np.ndarray]  # leaves of the state without its pool. A complete run has none

    @property
    def rounds_done(self) -> int:
        return len(next(iter(self.records.values())))


def load(plan: Plan, key: str) -> RunCheckpoint | None:
    data = None if plan.store is None else plan.store.get(key)
    if data is None:
        return None
    arrays = unpack(data)
    records = {name.removeprefix(_RECORD): array for name, array in arrays.items() if name.startswith(_RECORD)}
    num_leaves = len(arrays) - len(records)
    return RunCheckpoint(records, state=[arrays[f"{_STATE}{place}"] for place in range(num_leaves)])


class _Shared:  # what the runs of a plan share
    def __init__(self, plan: Plan, progress: Progress) -> None:
        self.plan = plan
        self.progress = progress
        self.lock = threading.Lock()  # guards the progress
        self.is_stopped = threading.Event()
        self.pool: Pool = on_device(pool_of(plan.data, plan.preset.classes))
        self.system: System = plan.padded.system(plan.data)
        self.common_key = _common_key(plan)

    def run(self, cell: str, replicate: int, params: Params) -> PyTree:
        num_rounds = self.plan.preset.num_rounds
        store = self.plan.store
        key_data = {**self.common_key, "cell": cell, "replicate": replicate, "params": params._asdict()}
        store_key = digest(plain(key_data))
        checkpoint = load(self.plan, store_key)
        rounds_done = 0
        pieces = []
        if checkpoint is not None:
            rounds_done = checkpoint.rounds_done
            pieces = [checkpoint.records]
        self.report(cell, replicate, rounds_done, new_rounds=rounds_done)
        key = replicate_keys(root_key(self.plan.seed), jnp.array([replicate]))[0]
        state = None if rounds_done == num_rounds else self.begin(key, params)
        if state is not None and checkpoint is not None:
            structure = jax.tree.structure(state._replace(pool=None))
            leaves = [jnp.asarray(leaf) for leaf in checkpoint.state]
            state = jax.tree.unflatten(structure, leaves)._replace(pool=self.pool)
        while rounds_done < num_rounds:
            if self.is_stopped.is_set():
                raise concurrent.futures.CancelledError
            new_rounds = min(self.plan.every, num_rounds - rounds_done)
            state, piece = self.advance(key, state, params, new_rounds)
            _require_finite(piece, rounds_done, cell, replicate, params)
            rounds_done += new_rounds
            pieces.append({name: np.asarray(leaf) for name, leaf in piece._asdict().items()})
            if store is not None:
                arrays = {_RECORD + name: array for name, array in _join(pieces).items()}
                if rounds_done < num_rounds:
                    leaves = jax.tree.leaves(state._replace(pool=None))
                    arrays |= {f"{_STATE}{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
                store.put({store_key: pack(arrays)}, extent=rounds_done)  # unless another process has saved more
            self.report(cell, replicate, rounds_done, new_rounds)
        return paper_of(self.plan.preset).Info(**_join(pieces))

    def report(self, cell: str, replicate: int, rounds_done: int, new_rounds: int) -> None:
        with self.lock:
            self.progress.at(f"{cell}, seed {replicate}, round {rounds_done} of {self.plan.preset.num_rounds}")
            self.progress.advance(new_rounds)

    def begin(self, key: Key[Array, ""], params: Params) -> Any:
        begin = _begin_program(paper_of(self.plan.preset), self.plan.padded.dims)
        with compiled_once((begin, is_x64())):
            return begin(step_key(key, jnp.int32(0)), params, self.pool)

    def advance(self, key: Key[Array, ""], state: Any, params: Params, rounds: int) -> tuple[Any, Any]:
        system = self.system
        with compiled_once((system, rounds, is_x64())):
            state, records = engine.run(
                system, key, state, params, rounds, record_every=1, observe=observe_info, reduce=None, is_batch=False
            )
        return state._replace(pool=self.pool), jax.device_get(records)


def _require_finite(piece: Any, rounds_before: int, cell: str, replicate: int, params: Params) -> None:
    is_finite = np.isfinite(piece.locality)
    if not np.all(is_finite):
        first_round = rounds_before + int(np.argmin(is_finite)) + 1
        raise InvalidValueError(
            f"{cell}, seed {replicate}: experts diverge in round {first_round}, at "
            f"expert_rate={float(params.expert_rate):g}. Set smaller rates, such as --set "
            f"expert_rate={float(params.expert_rate) / 2:g} --set final_rate={float(params.final_rate) / 2:g}."
        )


def _common_key(plan: Plan) -> dict[str, object]:
    """Return the part of the key of a saved run that all runs of the plan share."""
    return {
        "preset": plan.preset.name,
        "dims": dataclasses.asdict(plan.preset.dims),
        "cores": available_cores() if backend() == "cpu" else None,
        "classes": list(plan.preset.classes),
        "data": digest_of(plan.data),
        "seed": plan.seed,
        "every": plan.every,
        "x64": is_x64(),
        "fingerprint": fingerprint(_code_digest(paper_of(plan.preset), NETWORKS[plan.preset.dims.network])),
    }


@functools.cache
def _code_digest(paper: Any, network: Network) -> str:
    keys_and_pool = (root_key, replicate_keys, step_key, pool_of, on_device)
    return code_digest(paper.system, paper.begin, paper.Info, network, keys_and_pool, engine.run, observe_info)


def paper_of(preset: Preset) -> Any:
    return {CONTINUAL: continual, EDGE: edge}[preset.paper]


@functools.lru_cache(maxsize=1)
def digest_of(data: DataSet) -> str:
    digest = hashlib.sha256()
    for array in (*data.train, *data.test):
        digest.update(repr((array.shape, array.dtype)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@functools.cache
def _begin_program(paper: Any, dims: Any) -> Any:
    return programs.jit(lambda key, params, pool: paper.begin(key, dims, params, pool))


def _join(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
