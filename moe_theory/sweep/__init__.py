"""Sweeps over many cells and replicates, in fixed chunks of work on all cores."""

from moe_theory.runs.cells import Cell as Cell
from moe_theory.runs.cells import Run as Run
from moe_theory.runs.cells import replicate_rounds as replicate_rounds
from moe_theory.runs.cells import run_cells as run_cells
from moe_theory.runs.progress import Progress as Progress
from moe_theory.runs.progress import automatic as automatic
from moe_theory.runs.progress import quiet as quiet
from moe_theory.runs.progress import terminal_progress as terminal_progress
