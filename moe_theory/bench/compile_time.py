"""How long compiling takes: the eight-cell program of Fig. 2 of the continual-learning paper."""

import jax

from moe_theory.bench import yardstick
from moe_theory.bench.history import Compilation
from moe_theory.bench.measure import timed
from moe_theory.continual.experiments import FIGURE_2
from moe_theory.continual.readings import READINGS
from moe_theory.runs.cells import run_cells

PROGRAM = "figure-2"
TIMES = 2  # runs of what is compiled by then, and of the yardstick


def measure_compilation(cache: str, cores: str, num_threads: int) -> Compilation:
    """Trace, lower and compile what Fig. 2 runs, in a process that has compiled nothing yet.

    That is what the first chunk of each cell takes beyond what it takes again. Imports and the start of JAX are not
    counted.
    """
    jax.block_until_ready(jax.numpy.zeros(1))  # starts the backend
    cells = FIGURE_2.cells_under(next(iter(READINGS.values())))
    seconds = [timed(lambda: run_cells(cells, 1, num_threads=1)) for _ in range(1 + TIMES)]
    rod = yardstick.prepare(num_threads)
    rod()
    rods = tuple(timed(rod) for _ in range(TIMES))
    return Compilation(PROGRAM, cache, cores, max(seconds[0] - min(seconds[1:]), 0.0), rods)
