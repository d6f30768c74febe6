"""Figs. 3 to 7 and Tables 1 and 2 of the continual-learning paper, on the small twins of its experiments."""

from collections.abc import Sequence

import xarray as xr

from moe_theory.deep.figures import curves
from moe_theory.deep.figures.twins import description, run_twin
from moe_theory.deep.presets import expert_cell, preset
from moe_theory.deep.tables import printed
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, provenance

ERRORS = ("forgetting", "generalization_error")


def figure(
    name: str,
    of: str,
    metrics: Sequence[str],
    title: str,
    summary: str,
    replicates: int,
    experts: Sequence[int] | None = None,
    claims: tuple[str, ...] = (),
) -> FigureSpec:
    """The figure of a small twin.

    Args:
        of: the name of the twin.
        experts: the numbers M that are shown; all that the experiment compares unless given.
        claims: globs over the ids of those that it bears on.
    """
    twin = preset(of)
    sizes = twin.experts if experts is None else tuple(experts)
    names = {expert_cell(size, part == "with") for size in sizes for part in curves.TERMINATIONS}
    settings = {cell: own for cell, own in twin.cells().items() if cell in names}
    table = printed(twin)

    def compute(
        reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
    ) -> xr.Dataset:
        runs = run_twin(twin, settings, reading, replicates, seed, progress, num_rounds, name)
        data = curves.summary(twin, runs, metrics, sizes)
        length = int(data["round"][-1])
        return data.assign_attrs(provenance("deep", name, reading, replicates, seed, length, num_rounds is not None))

    def caption(data: xr.Dataset) -> str:
        about = "" if table is None else _about_table(table.where, curves.letter_of_table(data), twin.dims.num_classes)
        return f"{_drawn(metrics)} {about}{description(twin)}\n{closing(data)}"

    height = 2.1 * len(metrics) + 0.6
    return FigureSpec(name, title, summary, replicates, (7.2, height), compute, curves.draw, caption, claims)


def _drawn(metrics: Sequence[str]) -> str:
    words = " and ".join(curves.SYMBOLS[metric].split(" $")[0] for metric in metrics)
    about = "errors are squared errors of test images; one expert needs no router"
    return f"{words.capitalize()} of the tasks so far; {about}."


def _about_table(where: str, letter: str, num_classes: int) -> str:
    return (
        f"({letter}) The accuracies A_t averaged over rounds (dot, with the band) beside {where} "
        f"(diamond), of other data; a guess is right with probability 1/2 where experts tell one class from the "
        f"rest, and 1/{num_classes} = {1 / num_classes:.3f} where they tell all apart. "
    )


FIGURES_3_TO_7 = (
    figure(
        "figure-3",
        "continual-cifar10-small",
        ("generalization_error", "accuracy"),
        "Generalization error and test accuracy of deep experts",
        "Fig. 3 on the digits: G_t and A_t of 1, 4 and 12 experts, with and without termination.",
        replicates=8,
        claims=("deep.figure-3.*",),
    ),
    figure(
        "figure-4",
        "continual-cifar10-small",
        ("forgetting",),
        "Forgetting of deep experts",
        "Fig. 4 on the digits: F_t of 1 and 4 experts, with and without termination.",
        replicates=8,
        experts=(1, 4),
        claims=("deep.figure-4.*",),
    ),
    figure(
        "figure-5",
        "continual-mnist-small",
        ERRORS,
        "Forgetting and generalization error of convolutional experts",
        "Fig. 5 on the digits: F_t and G_t of 1, 4 and 7 experts, with and without termination.",
        replicates=16,
        claims=("deep.figure-5.*",),
    ),
    figure(
        "figure-6",
        "continual-cifar100-small",
        ERRORS,
        "Six classes: errors and average incremental accuracy, as for CIFAR-100",
        "Fig. 6 and Table 1 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        claims=("deep.figure-6.*", "deep.table-1.*"),
    ),
    figure(
        "figure-7",
        "continual-tiny-imagenet-small",
        ERRORS,
        "Six classes: errors and average incremental accuracy, as for Tiny ImageNet",
        "Fig. 7 and Table 2 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        claims=("deep.figure-7.*", "deep.table-2.*"),
    ),
)
