"""The package's own engine as a contender: chunks as the sweeps compute them, on as many threads."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from moe_theory.bench.setting import Contender, Run, Setting, timed_systems
from moe_theory.core.engine import width_for
from moe_theory.core.system import Params, System, check_system
from moe_theory.runs import cells, machine
from moe_theory.sweep.systems import Sweepable, sweepable

NAME = "moe_theory"
RESULT = "generalization_error"  # G_t: what every contender returns
# What a system is timed under, where that is not its first reading and without further sizes.
READINGS = {"edge": "orthogonal-signal"}
FURTHER_SIZES: dict[str, dict[str, int]] = {"edge": {"max_delay": 10}}  # d_u of Fig. 3


def prepare(setting: Setting, num_threads: int = 1) -> Run:
    """The engine on `num_threads` chunks of `setting.batch` replicates, each on a thread of its own.

    Returns: what runs them and gives G_T (num_threads * batch,).
    Raises: InvalidDimsError or InvalidParamsError for sizes that the system refuses.
    """
    kind = sweepable(setting.system)
    system, params = system_of(setting)
    observe = kind.observe(tuple(dict.fromkeys((*kind.default_observables, RESULT))))
    cell = chunks.Cell(NAME, system, params, setting.num_rounds, setting.num_rounds, observe)
    check_system(system, params)
    total = num_threads * setting.batch
    parts = [cells.chunk_of(cell, index, total, setting.batch) for index in range(num_threads)]

    def compute(part: chunks.Chunk) -> np.ndarray:
        with jax.enable_x64(setting.precision == "float64"):
            return cells.compute_chunk(part, setting.seed)[1][RESULT][-1]

    if num_threads == 1:
        return lambda: compute(parts[0])
    pool, compiled = ThreadPoolExecutor(num_threads), []

    def run() -> np.ndarray:
        # The first chunk of all alone: threads would compile the same program twice.
        first = [] if compiled else [compute(parts[0])]
        compiled.append(True)
        return np.concatenate([*first, *pool.map(compute, parts[len(first) :])])

    return run


def system_of(setting: Setting) -> tuple[System, Params]:
    """The system of these sizes, and the parameters it is timed under."""
    kind = sweepable(setting.system)
    return kind.system(_dims(kind, setting), {}), _params(kind, setting)


def automatic_width(setting: Setting) -> int:
    """How many replicates the sweeps would run together."""
    return width_for(check_system(*system_of(setting)))


def bytes_of_state(setting: Setting) -> int:
    """Bytes of one replicate's state."""
    with jax.enable_x64(setting.precision == "float64"):
        return machine.bytes_of(check_system(*system_of(setting)))


def bytes_needed(setting: Setting, num_threads: int = 1) -> int:
    """Bytes that `num_threads` chunks at once take."""
    return num_threads * setting.batch * machine.STATE_COPIES * bytes_of_state(setting)


def _dims(kind: Sweepable, setting: Setting) -> Any:
    return kind.dims(
        max_experts=setting.num_experts,
        num_tasks=setting.num_tasks,
        num_features=setting.num_features,
        num_samples=setting.num_samples,
        **FURTHER_SIZES.get(kind.name, {}),
    )


def _params(kind: Sweepable, setting: Setting) -> Params:
    reading = kind.readings[READINGS.get(kind.name, kind.default_reading)]
    return reading.params(num_experts=setting.num_experts)


ENGINE = Contender(NAME, "this package's engine, as sweeps run it", timed_systems(), prepare)
