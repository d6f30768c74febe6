"""What the oracle collects: parts by name, those of the fast run first, with sizes that fit its time."""

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.oracle import commands, datasets, systems
from benchmarks.oracle.figures import Drawing, figures
from benchmarks.oracle.records import Record
from benchmarks.oracle.verdicts import Request, verdicts

Part = Callable[[Path], Iterable[Record]]  # takes an empty folder

FEW_CLAIMS = [Request(["generalization.lemma-6.growth"], 64), Request(["continual.lemma-4"], 64)]
FEW_FIGURES = [Drawing("merging.simplex", {})]
ALL_FIGURES = [Drawing("generalization.capacity", {})]

FAST: dict[str, Part] = {
    "readers": datasets.readers,
    "streams": lambda scratch: commands.streams(),
    "bounds-few": lambda scratch: commands.bounds(scratch, commands.FEW_BOUNDS),
    "simulate": lambda scratch: systems.batches(),
    "presets": lambda scratch: systems.presets(),
    "vary": lambda scratch: systems.variations(),
    "sweeps": systems.sweeps,
    "figures-few": lambda scratch: figures(FEW_FIGURES),
    "csv-few": lambda scratch: commands.figure_files(scratch, "generalization", ["capacity", "sparsity"], []),
    "verify-few": lambda scratch: verdicts(FEW_CLAIMS),
}
REST: dict[str, Part] = {
    "bounds": lambda scratch: commands.bounds(scratch, list(commands.BOUNDS)),
    "explore": commands.maps,
    "challenge": lambda scratch: commands.searches(scratch, ["generalization.lemma-9"]),
    "deep": lambda scratch: commands.networks(scratch, {"edge-mnist-small": ["--replicates", "2", "--rounds", "20"]}),
    "figures": lambda scratch: figures(ALL_FIGURES),
    "merge": commands.merge,
}
WHOLE = FAST | REST
