"""What the oracle collects: parts by name, those of the fast run first, with sizes that fit its time.

Left out because a clock measures them: the tier `merging:clocks` and the figure `merging.scaling`.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.oracle import commands, datasets, systems
from benchmarks.oracle.records import Record
from benchmarks.oracle.results import Drawing, Request, figures, verdicts

Part = Callable[[Path], Iterable[Record]]  # takes an empty folder

FEW = 32  # replicates: 30 is the least that `verify` takes
FEW_CLAIMS: dict[str, Request] = {  # a few claims of each paper on cheap runs
    "continual": Request(["continual.proposition-4.*", "continual.exact.*", "continual.figure-8.*"], FEW),
    "edge": Request(["edge.lemma-1.least-change", "edge.proposition-1.*", "edge.theorem-1.given-routes"], FEW),
    "generalization": Request(
        ["generalization.equation-20.*", "generalization.lemma-8.*", "generalization.repaired.fixed-router"], FEW
    ),
    "merging": Request(["merging.figure-6.steps-grow", "merging.remark.boxes"], FEW),
    "reinforced": Request(
        ["reinforced.absorption.moves", "reinforced.forgetting.decay", "reinforced.conservation.sums"], FEW
    ),
}
PAPERS: dict[str, Request] = {  # all claims of each paper that fit
    "generalization": Request(["generalization"], FEW),
    "reinforced": Request(["reinforced"], FEW),
    "edge": Request(["edge"], FEW),
    "continual": Request(["continual"], FEW),
    "merging": Request(["merging:exact"], FEW),
    "deep": Request(["deep.edge-figure-4.*", "deep.drive.*"], FEW),
}

FEW_FIGURES = [Drawing("merging.simplex", {"rounds": 200})]
FIGURES: dict[str, list[Drawing]] = {  # all others, by paper, as small as they are drawn without an error
    "continual": [
        Drawing("continual.figure-2", {"replicates": 8, "rounds": 200, "experts": [1, 5]}),
        Drawing("continual.figure-8", {"replicates": 8, "rounds": 200}),
        Drawing("continual.figure-9", {"replicates": 8, "rounds": 200}),
        Drawing("continual.regimes", {"replicates": 4, "rounds": 100, "experts": [2, 4]}),
    ],
    "edge": [
        Drawing("edge.figure-3", {"replicates": 4, "rounds": 200, "experts": [10, 30]}),
        Drawing("edge.phase", {"replicates": 2, "rounds": 100}),
        Drawing("edge.regimes", {"replicates": 4, "rounds": 100, "experts": [2, 4]}),
        Drawing("edge.availability", {"replicates": 4, "rounds": 200}),
    ],
    "generalization": [
        Drawing("generalization.crossing", {"replicates": 4}),
        Drawing("generalization.sparsity", {}),
    ],
    "merging": [
        Drawing("merging.regret", {"replicates": 2, "rounds": 60}),
        Drawing("merging.leaves", {"rounds": 1000}),
        Drawing("merging.ablations", {"replicates": 2, "rounds": 60}),
        Drawing(
            "merging.tradeoff",
            {"replicates": 2, "rounds": 60},
            clocked=("ratio", "serving_ratio", "serving", "merging"),
        ),
    ],
    "deep": [
        Drawing("deep.figure-3", {"replicates": 2, "rounds": 6}),
        Drawing("deep.figure-4", {"replicates": 2, "rounds": 6}),
        Drawing("deep.figure-5", {"replicates": 2, "rounds": 6}),
        Drawing("deep.figure-6", {"replicates": 2, "rounds": 12}),
        Drawing("deep.figure-7", {"replicates": 2, "rounds": 12}),
        Drawing("deep.edge-figure-4", {"replicates": 2, "rounds": 10}),
        Drawing("deep.drive", {"replicates": 2, "rounds": 6}),
    ],
    "overview": [Drawing("overview.overview", {"replicates": 8})],
}
PRESETS = {"edge-mnist-small": ["--replicates", "2", "--rounds", "20"]}


def _verify(request: Request) -> Part:
    return lambda scratch: verdicts([request])


def _figures(drawings: list[Drawing]) -> Part:
    return lambda scratch: figures(drawings)


FAST: dict[str, Part] = {
    "readers": datasets.readers,
    "streams": lambda scratch: commands.streams(),
    "bounds-few": functools.partial(commands.bounds, names=commands.FEW_BOUNDS),
    "simulate": lambda scratch: systems.batches(),
    "presets": lambda scratch: systems.presets(),
    "vary": lambda scratch: systems.variations(),
    "sweeps": systems.sweeps,
    "figures-few": lambda scratch: figures(FEW_FIGURES),
    "csv-few": functools.partial(commands.figure_files, paper="generalization", names=["sparsity"], options=[]),
    **{f"verify-few-{paper}": _verify(request) for paper, request in FEW_CLAIMS.items()},
}


REST: dict[str, Part] = {
    "bounds": functools.partial(commands.bounds, names=list(commands.BOUNDS)),
    "explore": commands.maps,
    "challenge": functools.partial(commands.searches, statements=["generalization.lemma-9"]),
    "deep": functools.partial(commands.networks, presets=PRESETS),
    **{f"figures-{paper}": _figures(drawings) for paper, drawings in FIGURES.items()},
    **{f"verify-{paper}": _verify(request) for paper, request in PAPERS.items()},
    "merge": commands.merge,
}
WHOLE = FAST | REST
