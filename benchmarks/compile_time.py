"""Seconds to trace, lower and compile what Fig. 2 of `continual` runs: `python -m benchmarks.compile_time`.

In a process that has compiled nothing yet: what the first chunk of each cell takes beyond what it takes again. Imports
and the start of JAX are not counted.
"""

import jax

from benchmarks.contenders import timed
from moe_theory.continual import READINGS
from moe_theory.continual.experiments import FIGURE_2
from moe_theory.runs import Cell, run_cells


def main() -> None:
    """Print the seconds."""
    jax.block_until_ready(jax.numpy.zeros(1))  # starts the backend
    reading = next(iter(READINGS.values()))
    cells = [
        Cell(name, FIGURE_2.system, reading.params(**own), FIGURE_2.num_rounds, FIGURE_2.record_every, FIGURE_2.observe)
        for name, own in FIGURE_2.cells.items()
    ]
    first, *again = (timed(lambda: run_cells(cells, 1, num_threads=1)) for _ in range(3))
    print(max(first - min(again), 0.0))


if __name__ == "__main__":
    main()
