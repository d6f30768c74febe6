"""Many cells, many replicates: fixed chunks of work, run on every core, with progress."""

from moe_theory.sweep.cells import replicate_rounds as replicate_rounds
from moe_theory.sweep.cells import run_cells as run_cells
from moe_theory.sweep.chunks import Cell as Cell
from moe_theory.sweep.chunks import Run as Run
from moe_theory.sweep.progress import Progress as Progress
from moe_theory.sweep.progress import quiet as quiet
from moe_theory.sweep.progress import terminal_progress as terminal_progress
