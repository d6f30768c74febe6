"""Algorithm 1 of the continual paper in C++ by hand (`limit.cpp`): about as fast as a processor allows.

It says how far from that the engine is. Its draws are cheaper than the engine's: xoshiro and not threefry. A program is
compiled for each set of sizes.
"""

import atexit
import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, RunPart, Trajectory, in_parts

COMPILER = "c++"
# Square roots become vectors only if they set no `errno`; -ffast-math would undo additions that round to whole numbers.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
TILE = 16  # replicates, or a multiple of what a tile holds where vectors are narrower or numbers longer
# The fields of `Constants` in `limit.cpp`, in their order.
USED = (
    *("learning_rate", "balance_weight", "perturbation_scale", "termination_threshold", "signal_scale"),
    *("min_strength", "max_strength", "noise_scale", "terminate", "exploration_rounds"),
)


def prepare(setting: Setting) -> Run:
    """All replicates of a setting, each with a pool of its own, in equal parts on the cores of the process."""

    def prepare_part(constants: Constants, truths: np.ndarray) -> RunPart:
        program = compiled(setting.num_experts, *truths.shape[1:], setting.num_samples, truths.dtype)

        def run_part(first: int, last: int, errors: np.ndarray) -> None:
            numbers = whole(first, last, setting.num_rounds, setting.seed)
            program.run(used(constants), truths.ctypes, *numbers, errors.ctypes)

        return run_part

    return in_parts(setting, TILE, prepare_part)


def play(
    constants: Constants,
    truths: Float[np.ndarray, "B N d"],
    tasks: Int[np.ndarray, "T B"],
    features: Float[np.ndarray, "T B d s"],
    perturbations: Float[np.ndarray, "T B M"],
) -> Trajectory:
    """All replicates' rounds on given arrivals, in the precision of `truths`."""
    dtype = truths.dtype
    program = compiled(constants.num_experts, *truths.shape[1:], features.shape[-1], dtype)
    pool, inputs, noise = (np.ascontiguousarray(array, dtype) for array in (truths, features, perturbations))
    tasks = np.ascontiguousarray(tasks, np.int64)
    results = Trajectory(np.empty(tasks.shape, np.int64), np.empty(tasks.shape, dtype), np.empty(tasks.shape, dtype))
    arrays = [array.ctypes for array in (tasks, inputs, noise, *results)]
    program.play(used(constants), pool.ctypes, *whole(len(truths), len(tasks)), *arrays)  # fills the results
    return results


@functools.cache
def compiled(num_experts: int, num_tasks: int, num_features: int, num_samples: int, dtype: np.dtype) -> ctypes.CDLL:
    """The program for these sizes and this precision."""
    sizes = {"NUM_EXPERTS": num_experts, "NUM_TASKS": num_tasks, "NUM_FEATURES": num_features}
    macros = sizes | {"NUM_SAMPLES": num_samples, "REAL": {"float32": "float", "float64": "double"}[dtype.name]}
    # A folder that stays: another file in the place of a deleted one would count as loaded already.
    target = Path(folder(), f"{'-'.join(map(str, macros.values()))}.so")
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    subprocess.run([COMPILER, *FLAGS, *defined, Path(__file__).with_name("limit.cpp"), "-o", target], check=True)
    return ctypes.CDLL(str(target))


@functools.cache
def folder() -> str:
    """Where this process keeps its programs."""
    scratch = tempfile.TemporaryDirectory()
    atexit.register(scratch.cleanup)
    return scratch.name


def used(constants: Constants) -> Any:
    """Return the `Constants` of `limit.cpp`."""
    return (ctypes.c_double * len(USED))(*(getattr(constants, name) for name in USED))


def whole(*numbers: int) -> list[ctypes.c_int64]:
    """Whole numbers as the program takes them."""
    return list(map(ctypes.c_int64, numbers))
