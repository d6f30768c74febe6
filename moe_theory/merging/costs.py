"""What serving a slot costs: seconds and bytes of every method.

Methods are timed in turn within every repetition, in a new random order, so that a slow spell of the machine meets all
of them; ratios are of the same repetition. A repetition serves one batch. Merging is timed on its own: it is paid once
a slot, whatever the number of batches.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from moe_theory.core.errors import InvalidRunError
from moe_theory.merging.serving import merge
from moe_theory.merging.serving.methods import MERGED, Deployment, Method, begin_slot, loaded_bytes, named

NUM_REPEATS = 30
WARM_UP = 2  # calls of every method before anything is timed

Clock = Callable[[], float]  # seconds


class Program(NamedTuple):
    """A compiled function with the arguments that it is timed on."""

    run: Any
    arguments: tuple[Any, ...]

    def __call__(self) -> None:
        jax.block_until_ready(self.run(*self.arguments))

    @property
    def peak_bytes(self) -> int:
        """Arguments, results and all that is in between, by XLA's own account."""
        memory = self.run.memory_analysis()
        sizes = (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes)
        return sum(int(size) for size in sizes)


class Timer:
    """Compiled programs of some methods on one batch, ready to be timed.

    Args:
        tags: each request's task, of which only the methods that say so know; where a method takes batches of a single
            task, it serves all as if they were of the first one's.
        weights: of the experts, for the method that merges with given ones; equal ones unless given.
    Raises: InvalidRunError unless `merged` is among the methods.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        deployment: Deployment,
        inputs: Any,
        tags: Any,
        weights: Float[Array, " K"] | None = None,
    ) -> None:
        self.names = [method.name for method in methods]
        if MERGED not in self.names:
            raise InvalidRunError(f"methods must have {MERGED!r} among them, which all ratios are to. Add it.")
        self.batch_size = len(inputs)
        self.merges: dict[int, Program] = {}  # by the numbers of the methods that merge slot by slot
        self.serves: list[Program] = []
        weights = merge.equal_weights(deployment.model) if weights is None else weights
        made: dict[int, Any] = {}  # by the function: methods that share one share a program
        for number, method in enumerate(methods):
            loaded = method.prepare(deployment)
            if method.merge is not None:
                self.merges[number] = _compiled(made, method.merge, (loaded, weights))
            arguments = (begin_slot(method, loaded, weights), jnp.asarray(inputs), jnp.asarray(tags))
            self.serves.append(_compiled(made, method.serve, arguments))

    def measure(self, repeats: int = NUM_REPEATS, seed: int = 0, clock: Clock = time.perf_counter) -> xr.Dataset:
        """As `latency`."""
        count = len(self.names)
        seconds = interleaved([*self.serves, *self.merges.values()], repeats, seed, clock)
        serving, merging = seconds[:, :count], np.zeros((repeats, count))
        for place, number in enumerate(self.merges):
            merging[:, number] = seconds[:, count + place]
        reference, total = self.names.index(MERGED), serving + merging
        over_repeats, over_methods = ("repeat", "approach"), "approach"
        merge_peaks = [self.merges[number].peak_bytes if number in self.merges else 0 for number in range(count)]
        return xr.Dataset(
            {
                "serving": (over_repeats, serving),
                "merging": (over_repeats, merging),
                "ratio": (over_repeats, total / total[:, [reference]]),
                "serving_ratio": (over_repeats, serving / serving[:, [reference]]),
                "loaded_bytes": (over_methods, [loaded_bytes(program.arguments[0]) for program in self.serves]),
                "peak_bytes": (over_methods, [program.peak_bytes for program in self.serves]),
                "merging_peak_bytes": (over_methods, merge_peaks),
            },
            {"approach": self.names},
            {"batch_size": self.batch_size, "cores": num_cores(), "device": jax.devices()[0].device_kind},
        )


def latency(
    methods: Sequence[str | Method],
    deployment: Deployment,
    inputs: Any,
    tags: Any,
    repeats: int = NUM_REPEATS,
    seed: int = 0,
    weights: Float[Array, " K"] | None = None,
    clock: Clock = time.perf_counter,
) -> xr.Dataset:
    """Seconds and bytes of one batch by every method; arguments as those of `Timer`.

    Args:
        clock: `time.process_time` leaves out what other processes take; on one core (`on_one_core`) it is otherwise the
            same, while on a busy machine a long batch is always interrupted, and the wall clock's ratios are not those
            of the work.
    Returns: over (repeat, approach) `serving`, `merging` (0 for methods that do not merge slot by slot), and `ratio`,
        of their sum to that of one merged expert in the same repetition, and `serving_ratio` without the merging; over
        approach `loaded_bytes` while a slot is served, `peak_bytes` of the program that serves a batch, and
        `merging_peak_bytes` of the one that merges.
    Raises: InvalidRunError for no repetitions; UnknownNameError for methods there are not.
    """
    chosen = [named(method) if isinstance(method, str) else method for method in methods]
    return Timer(chosen, deployment, inputs, tags, weights).measure(repeats, seed, clock)


def _compiled(made: dict[int, Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
    if id(function) not in made:
        made[id(function)] = jax.jit(function).lower(*arguments).compile()
    return Program(made[id(function)], arguments)


def interleaved(
    runs: Sequence[Callable[[], None]], repeats: int, seed: int, clock: Clock = time.perf_counter
) -> Float[np.ndarray, "repeats runs"]:
    """Seconds of one call of each run in every repetition, whose order is drawn anew.

    Raises: InvalidRunError unless there is a repetition.
    """
    if repeats < 1:
        raise InvalidRunError(f"repeats={repeats} must be at least 1. Raise repeats.")
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
    """All of this process's threads on one core meanwhile, where the system can do that (Linux); else as they are.

    What methods cost relative to each other then does not depend on which of them XLA spreads over threads.
    """
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


def num_cores() -> int:
    """How many cores this thread may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
