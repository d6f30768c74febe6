"""What the figures of small twins share: the runs, and the words that say what was run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moe_theory.core.errors import InvalidRunError
from moe_theory.deep.datasets import DATASETS, load
from moe_theory.deep.params import ADAM
from moe_theory.deep.presets import CONTINUAL, EDGE, PRESETS, SMALL, Preset
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike

if TYPE_CHECKING:
    from matplotlib.patches import Patch

BAND_ALPHA = 0.14


def band_handle() -> "Patch":
    """What a legend says of the bands."""
    from matplotlib.patches import Patch

    return Patch(color="0.45", alpha=2 * BAND_ALPHA, linewidth=0, label="10–90 % of replicates")


def run_twin(
    preset: Preset,
    settings: Mapping[str, Mapping[str, Any]],
    reading: ReadingLike,
    replicates: int,
    seed: int,
    progress: Progress = quiet,
    num_rounds: int | None = None,
    what: str | None = None,
) -> dict[str, Run]:
    """Every round of a preset on its embedded data, by the names of `settings` (name -> parameters).

    Args:
        num_rounds: the first so many rounds alone, with step sizes as in the whole run.
        what: what the progress calls it.
    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = preset.num_rounds if num_rounds is None else num_rounds
    if length > preset.num_rounds:
        raise InvalidRunError(f"num_rounds={length} must be at most {preset.num_rounds}, the rounds of {preset.name}.")
    system = preset.system(load(preset.data))
    cells = [Cell(name, system, reading.params(**own), length, 1, keeps_state=False) for name, own in settings.items()]
    return dict(run_cells(cells, replicates, seed=seed, width=1, progress=progress, what=what))


def description(preset: Preset) -> str:
    """What a twin runs, and what the paper does instead, in a few sentences."""
    original = PRESETS[preset.name.removesuffix(SMALL)]
    return (
        f"A small twin of {preset.where} of the {_PAPERS[preset.paper]} paper: {_sizes(preset)}. The paper: "
        f"{_sizes(original)}."
    )


_PAPERS = {CONTINUAL: "continual-learning", EDGE: "edge-computing"}


def _sizes(preset: Preset) -> str:
    dims = preset.dims
    method = "Adam" if dims.optimizer == ADAM else "SGD"
    classes = ", ".join(map(str, preset.classes))
    epochs = f"{dims.num_epochs} epochs of {method}"
    batches = f" in batches of {dims.batch_size}" if dims.batch_size < dims.num_samples else ""
    return (
        f"{DATASETS[preset.data].title} (classes {classes}), T = {dims.max_rounds} rounds, {dims.num_samples} training "
        f"and {dims.num_tests} test images a task, network {dims.network}, {epochs}{batches}"
    )
