"""`moe-theory deep`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moe_theory.core.errors import InvalidValueError
from moe_theory.plot.commands import Interruption, Option, Terminal
from moe_theory.plot.document import Document

if TYPE_CHECKING:
    from moe_theory.deep.runs import Plan

READING = "balanced"
OWN = "the preset's"

DataFolder = Annotated[Path | None, Option("Folder of a data set or of your images.", metavar="DIR")]
OnlyList = Annotated[bool, Option("Only list the presets.", ("--list",))]
NetworkName = Annotated[
    str | None,
    Option("Of the experts: mlp, five-layer-small, resnet18-small, five-layer or resnet18.", metavar="NAME"),
]
Epochs = Annotated[int | None, Option("Of an expert on a task.", default_words=OWN)]
Samples = Annotated[int | None, Option("Training images of a task.", default_words=OWN)]
Rounds = Annotated[int | None, Option("T, tasks that arrive.", default_words=OWN)]
ExpertNumbers = Annotated[
    tuple[int, ...] | None, Option("Numbers of experts to compare.", metavar="M,...", default_words=OWN)
]
ClassNumbers = Annotated[
    tuple[int, ...] | None, Option("Numbers of the classes that are tasks.", metavar="K,...", default_words=OWN)
]
TestImages = Annotated[int | None, Option("To evaluate on.", default_words="all; a part for ResNet-18")]
Replicates = Annotated[
    int | None,
    Option(
        "Seeds of each cell. Of 60 or more, halves are analysed too, and no more run once all claims are decided.",
        default_words="12, and 32 of a small preset",
    ),
]
ReadingName = Annotated[
    str | None,
    Option(
        "Where the papers are silent: balanced, multi-class, all-positive, class-incremental, squared-loss, "
        "uncentred, per-parameter or uniform-delay.",
        default=READING,
    ),
]
Settings = Annotated[
    tuple[str, ...],
    Option("Override a parameter, such as gate_scale=5; repeat it for more.", ("--set",), metavar="NAME=VALUE"),
]
Seed = Annotated[int | None, Option("Seed of all random numbers.", default=0)]
OutFolder = Annotated[Path | None, Option("Folder for checkpoints and results.", default_words="runs/deep/PRESET")]
Results = Annotated[
    Document,
    Option(
        "the content of summary.json: schema, preset, where, cells, verdicts and files; with --list a list of the "
        "presets."
    ),
]


def deep(
    preset: str | None = None,
    /,
    *,
    data: DataFolder = None,
    only_list: OnlyList = False,
    network: NetworkName = None,
    epochs: Epochs = None,
    samples: Samples = None,
    rounds: Rounds = None,
    experts: ExpertNumbers = None,
    classes: ClassNumbers = None,
    test_images: TestImages = None,
    replicates: Replicates = None,
    reading: ReadingName = None,
    settings: Settings = (),
    seed: Seed = None,
    out: OutFolder = None,
    terminal: Terminal,
) -> Results:
    """Run a paper's deep-network experiment.

    PRESET names it by the paper and the data set of its figure; without one, the presets are listed. Those that end
    in -small run on embedded digits in minutes on two cores, or on DIR's images at their sizes; the others read their
    data set from DIR, and nothing is downloaded. DIR has a data set's published files, or 8-bit images of one size in
    train/CLASS and test/CLASS. Each run is kept in OUT as it goes:
    rerunning resumes from the last checkpoints, and ends with the same numbers. Prints each cell's errors, how they
    differ and the verdicts on the figure's claims; writes results.nc, summary.json, verdicts.json and deep.svg.

    Examples:
        moe-theory deep continual-mnist-small --replicates 4
        moe-theory deep continual-mnist-small --data photographs --classes 0,1
    """
    from moe_theory.deep import judging, report
    from moe_theory.verification.settings import parsed

    if only_list or (preset is None and data is None):
        return report.presets()
    if preset is None:
        raise InvalidValueError("a run needs a preset. Name PRESET, which --list shows.", argument="preset")
    plan = judging.plan(
        preset,
        data,
        network=network,
        epochs=epochs,
        samples=samples,
        rounds=rounds,
        experts=experts,
        classes=classes,
        test_images=test_images,
        reading=reading or READING,
        settings=parsed(settings),
        replicates=replicates,
        seed=seed or 0,
        folder=out or Path("runs/deep") / preset,
    )
    return _run(plan, [] if data is None else plan.data.lines, terminal)


def _run(plan: "Plan", lines: list[str], terminal: Terminal) -> Document:
    """Run a plan on the terminal, and return what its folder holds then. Raises: Interruption."""
    from moe_theory.deep import judging, report
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder

    assert plan.folder is not None
    folder = prepare_folder(plan.folder.parent, judging.FILES)
    keep_programs()
    terminal.say(*lines, report.heading(plan))
    try:
        with terminal_progress(terminal.console) as progress:
            judgement = judging.judge(plan, progress=progress, command=terminal.command)
    except KeyboardInterrupt:
        raise Interruption(
            f"rounds up to each run's last checkpoint, every {plan.every}, are kept in {folder}: the same command "
            "resumes from them"
        ) from None
    if plan.store is not None and plan.store.damaged:
        terminal.say(f"{len(plan.store.damaged)} saved runs were damaged, and are computed again")
    return report.document(judgement, folder)
