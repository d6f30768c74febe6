"""Timed programs: the engine and other ways to run the very same rounds, and their sizes."""

import dataclasses
import importlib
import importlib.util
import itertools
import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from moe_theory.core.engine import STATE_COPIES, bytes_of, width_for
from moe_theory.core.machine import machine_memory
from moe_theory.core.rounds import ROUNDS_AHEAD
from moe_theory.core.system import Params, System, check_system
from moe_theory.runs.cells import Cell, chunk_of, compute_chunk
from moe_theory.sweep.systems import sweepable

Run = Callable[[], np.ndarray]  # runs all rounds, random draws included, and waits: G_T of every replicate

PASSES = 5
SYSTEMS = ("continual", "edge")
SIZES = ("num_tasks", "num_features", "num_samples")
BATCHES = (64, 256)  # replicates, in the comparison with peers
GRID = {"num_experts": (5, 20, 80), "num_features": (10, 50, 200), "batch": (64, 256, 1024)}
SCALED = {"M": "num_experts", "N": "num_tasks", "d": "num_features", "s": "num_samples", "T": "num_rounds"}
DOUBLINGS = 5  # sizes on an axis of the scaling, each twice the one before
ENGINE = "moe_theory"
# Systems that are not timed in their first reading, with M = 10 or without further sizes.
READINGS = {"edge": "orthogonal-signal"}
EXPERTS = {"edge": 50}
FURTHER_SIZES = {"edge": {"max_delay": 10}}  # d_u of Fig. 3

_NANOSECONDS = 0.35  # of an operation on one core, about
_SECONDS = 0.15  # of a call, about
# Axes on which doubling starts from other sizes. s must stay below d. N orthogonal signals need d >= N, and a program
# that grows with N^2. The arrays of a batch should stay in the cache.
_ROOM = {
    "N": {"num_tasks": 2},
    "d": {"num_features": 16},
    "s": {"num_samples": 2, "num_features": 48},
    "T": {"num_rounds": 128},
}
_MOST_ROUNDS = 4096
_FEWEST_REPLICATES = 64  # a narrower batch costs as much as one of this width


@dataclasses.dataclass(frozen=True)
class Setting:
    """A system's sizes, the replicates that run together, and the rounds."""

    system: str
    num_experts: int  # M; also max_experts
    num_tasks: int  # N
    num_features: int  # d (p)
    num_samples: int  # s
    batch: int  # replicates
    num_rounds: int  # T
    precision: str = "float32"  # or "float64"
    seed: int = 0


class Contender(NamedTuple):
    """A way to run the rounds of a setting: `prepare(setting)` of a module of `benchmarks.peers`."""

    module: str
    systems: tuple[str, ...]  # what it can run
    requires: str | None = None  # a module that must be importable
    requires_program: str | None = None  # a program that must be on the path
    one_by_one: bool = False  # runs one replicate after another, so a replicate-round costs the same in every batch


PEERS = {
    "NumPy loop": Contender("numpy_loop", ("continual",), one_by_one=True),
    "batched NumPy": Contender("numpy_batched", ("continual",)),
    "batched Torch": Contender("torch_batched", ("continual",), requires="torch"),
    "compiled Torch": Contender("torch_compiled", ("continual",), requires="torch"),
    "Numba": Contender("numba_tiles", ("continual",), requires="numba"),  # tiles, and draws that cost less
    "JAX, batched by hand": Contender("jax_batched", ("continual",)),  # one fori_loop, batch last
    "textbook vmap(scan)": Contender("textbook", ("continual", "edge")),  # batch first, gathers and Cholesky
    "C++ limit": Contender("limit", ("continual",), requires_program="c++"),  # by hand, and draws that cost less
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One measurement."""

    part: str  # "peers", "precision", "grid", or "scaling M" and so on
    contender: str
    setting: Setting
    is_automatic: bool = False  # whether the batch is what sweeps would choose
    beside: int = 0  # batch of the peers in whose table it stands, 0 for its own batch

    def skipped(self, num_threads: int) -> str:
        """Return the reason why it cannot run here, empty if it can."""
        if self.contender in PEERS:
            peer = PEERS[self.contender]
            if peer.requires and importlib.util.find_spec(peer.requires) is None:
                return f"{peer.requires} is not installed"
            if peer.requires_program and shutil.which(peer.requires_program) is None:
                return f"there is no program {peer.requires_program} on the path"
        if num_threads > 1 and self.part not in ("peers", "precision"):
            return "sizes are compared on one core"
        required = num_threads * self.setting.batch * STATE_COPIES * bytes_of_state(self.setting)
        available = machine_memory()
        if required > available:
            return f"needs {required / 1e9:.1f} GB of this machine's {available / 1e9:.1f} GB"
        return ""

    def replicates(self, num_threads: int) -> int:
        """Replicates that run at once, on all threads together."""
        is_single = self.contender in PEERS and PEERS[self.contender].one_by_one
        return 1 if is_single else self.setting.batch * num_threads

    @property
    def module(self) -> Any:
        name = "textbook_edge" if self.setting.system == "edge" else PEERS[self.contender].module
        return importlib.import_module(f"benchmarks.peers.{name}")

    def run(self, num_threads: int) -> Run:
        """Prepare the run: of the engine a chunk a thread, of a peer all replicates at once on its own threads."""
        if self.contender == ENGINE:
            return prepare_engine(self.setting, num_threads)
        return self.module.prepare(dataclasses.replace(self.setting, batch=self.replicates(num_threads)))


def prepare_engine(setting: Setting, num_threads: int = 1) -> Run:
    """The engine on `num_threads` chunks of `setting.batch` replicates, each on a thread of its own."""
    kind = sweepable(setting.system)
    system, params = system_of(setting)
    observe = kind.observe(tuple(dict.fromkeys((*kind.default_observables, "generalization_error"))))
    cell = Cell(ENGINE, system, params, setting.num_rounds, setting.num_rounds, observe)
    chunks = [chunk_of(cell, index, num_threads * setting.batch, setting.batch) for index in range(num_threads)]

    def compute(chunk: Any) -> np.ndarray:
        with jax.enable_x64(setting.precision == "float64"):
            _, records = compute_chunk(chunk, setting.seed)
        return records["generalization_error"][-1]

    if num_threads == 1:
        return lambda: compute(chunks[0])
    pool = ThreadPoolExecutor(num_threads)
    is_compiled = False

    def run() -> np.ndarray:
        nonlocal is_compiled
        alone = []
        if not is_compiled:  # the first chunk runs alone, because threads would compile the same program twice
            alone = [compute(chunks[0])]
        is_compiled = True
        return np.concatenate([*alone, *pool.map(compute, chunks[len(alone) :])])

    return run


def system_of(setting: Setting) -> tuple[System, Params]:
    """The system of these sizes, and the parameters it is timed under."""
    kind = sweepable(setting.system)
    sizes = {name: getattr(setting, name) for name in SIZES} | FURTHER_SIZES.get(setting.system, {})
    reading = kind.readings[READINGS.get(setting.system, kind.default_reading)]
    dims = kind.dims(max_experts=setting.num_experts, **sizes)
    return kind.system(dims, {}), reading.params(num_experts=setting.num_experts)


def bytes_of_state(setting: Setting) -> int:
    """Return the bytes of one replicate's state."""
    with jax.enable_x64(setting.precision == "float64"):
        return bytes_of(check_system(*system_of(setting)))


def operations(setting: Setting) -> float:
    """About how many operations a replicate's round takes.

    Routing and the gate step multiply M gates by d features: M d each. The update orthogonalises s columns of length d
    (d s^2) and moves one expert (d s). The metrics compare one model with N truths (N d), or with a one-hot choice of
    the M experts (M d). Drawing d s + M random numbers costs some ten operations each. So the cost of a round grows
    with M, N and d at most linearly and with s at most quadratically, in each case once its term outweighs the others,
    and does not depend on T.
    """
    d = setting.num_features
    s = setting.num_samples
    scored = 3 * setting.num_experts + 2 * setting.num_tasks  # rows of length d
    return d * scored + d * s**2 + 10 * (d * s + setting.num_experts)


def with_rounds(setting: Setting) -> Setting:
    """Return the setting with so many rounds that a call of the engine takes about `_SECONDS`."""
    seconds_a_round = 1e-9 * _NANOSECONDS * operations(setting) * max(setting.batch, _FEWEST_REPLICATES)
    blocks = round(_SECONDS / (seconds_a_round * ROUNDS_AHEAD))
    return dataclasses.replace(setting, num_rounds=min(max(blocks, 1) * ROUNDS_AHEAD, _MOST_ROUNDS))


def paper_setting(system: str, batch: int, precision: str = "float32") -> Setting:
    """The sizes of a paper's own experiment."""
    sizes = {name: sweepable(system).default_dims[name] for name in SIZES}
    return with_rounds(
        Setting(system, EXPERTS.get(system, 10), **sizes, batch=batch, num_rounds=0, precision=precision)
    )


def cases() -> Iterator[Case]:
    """All that is measured: peers, precisions, the grid of sizes, and each size alone."""
    for system in SYSTEMS:
        for batch in BATCHES:
            setting = paper_setting(system, batch)
            names = [ENGINE, *(name for name, peer in PEERS.items() if system in peer.systems)]
            yield from (Case("peers", name, setting) for name in names)
            automatic_case = automatic("peers", setting)
            if automatic_case.setting.batch != batch:
                yield dataclasses.replace(automatic_case, beside=batch)
        for precision in ("float32", "float64"):
            yield Case("precision", ENGINE, paper_setting(system, 64, precision))
        yield from _grid(system)
        for axis in SCALED:
            yield from _scaling(system, axis)


def automatic(part: str, setting: Setting) -> Case:
    """The engine at the batch that sweeps would choose."""
    width = width_for(check_system(*system_of(setting)))
    return Case(part, ENGINE, with_rounds(dataclasses.replace(setting, batch=width)), is_automatic=True)


def _grid(system: str) -> Iterator[Case]:
    sizes = {name: sweepable(system).default_dims[name] for name in SIZES}
    for experts, features in itertools.product(GRID["num_experts"], GRID["num_features"]):
        sizes["num_features"] = features
        # The papers have s = 0.6 d at d = 10. A small d has room for fewer samples.
        sizes["num_samples"] = min(sweepable(system).default_dims["num_samples"], 3 * features // 5)
        base = Setting(system, experts, **sizes, batch=1, num_rounds=0)
        for batch in GRID["batch"]:
            yield Case("grid", ENGINE, with_rounds(dataclasses.replace(base, batch=batch)))
        yield automatic("grid", base)


def _scaling(system: str, axis: str) -> Iterator[Case]:
    base = Setting(system, num_experts=8, num_tasks=8, num_features=32, num_samples=4, batch=32, num_rounds=0)
    base = with_rounds(base)
    base = dataclasses.replace(base, **_ROOM.get(axis, {}))
    name = SCALED[axis]
    for doubling in range(DOUBLINGS):
        setting = dataclasses.replace(base, **{name: getattr(base, name) * 2**doubling})
        yield Case(f"scaling {axis}", ENGINE, setting if axis == "T" else with_rounds(setting))


def interleaved(runs: Sequence[Callable[[], object]], passes: int = PASSES, seconds: float = 0.2) -> np.ndarray:
    """Return the seconds of one call of each run in each pass (passes, runs).

    Runs take turns, so that a slow spell of the machine meets all, and every other pass goes backwards. In a pass a run
    is called as often as fills `seconds`.
    """
    calls = []
    for run in runs:
        run()  # compiles, and is not counted
        calls.append(max(1, math.ceil(seconds / timed(run))))
    durations = np.zeros((passes, len(runs)))
    for number in range(passes):
        places = range(len(runs))
        for place in reversed(places) if number % 2 else places:
            start = time.perf_counter()
            for _ in range(calls[place]):
                runs[place]()
            durations[number, place] = (time.perf_counter() - start) / calls[place]
    return durations


def timed(run: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
