"""Running cells of replicates, and keeping what they give: what sweeps, claims and figures share.

Names are loaded on first use: reading and writing files needs no JAX.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moe_theory.runs.cells import Cell as Cell
    from moe_theory.runs.cells import Run as Run
    from moe_theory.runs.cells import replicate_rounds as replicate_rounds
    from moe_theory.runs.cells import run_cells as run_cells
    from moe_theory.runs.progress import Progress as Progress
    from moe_theory.runs.progress import automatic as automatic
    from moe_theory.runs.progress import quiet as quiet
    from moe_theory.runs.progress import shown as shown
    from moe_theory.runs.progress import terminal_progress as terminal_progress

_OF_CELLS = ("Cell", "Run", "replicate_rounds", "run_cells")
_OF_PROGRESS = ("Progress", "automatic", "quiet", "shown", "terminal_progress")


def __getattr__(name: str) -> Any:
    if name in _OF_CELLS:
        from moe_theory.runs import cells

        return getattr(cells, name)
    if name in _OF_PROGRESS:
        from moe_theory.runs import progress

        return getattr(progress, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
