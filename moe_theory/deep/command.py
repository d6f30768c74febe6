"""`moe-theory deep`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moe_theory.core.errors import InvalidValueError
from moe_theory.plot.commands import Interruption, Option, Terminal
from moe_theory.plot.document import Document

if TYPE_CHECKING:
    from moe_theory.deep.runs import Plan

READING = "balanced"
OF_PRESET = "the preset's"

DataFolder = Annotated[Path | None, Option("Folder of a data set or of your images.", metavar="DIR")]
OnlyList = Annotated[bool, Option("Only list the presets.", ("--list",))]
NetworkName = Annotated[
    str | None,
    Option("Network of the experts: mlp, five-layer-small, resnet18-small, five-layer or resnet18.", metavar="NAME"),
]
Epochs = Annotated[int | None, Option("Epochs of an expert on a task.", default_words=OF_PRESET)]
Samples = Annotated[int | None, Option("Training images per task.", default_words=OF_PRESET)]
Rounds = Annotated[int | None, Option("T, the number of arriving tasks.", default_words=OF_PRESET)]
ExpertNumbers = Annotated[
    tuple[int, ...] | None, Option("Numbers of experts to compare.", metavar="M,...", default_words=OF_PRESET)
]
ClassNumbers = Annotated[
    tuple[int, ...] | None,
    Option("The classes that become tasks, by number.", metavar="K,...", default_words=OF_PRESET),
]
TestImages = Annotated[int | None, Option("Number of test images.", default_words="all, or a part for ResNet-18")]
Replicates = Annotated[
    int | None,
    Option(
        "Seeds of each cell. With 60 or more, claims are also tested halfway, and runs end early if all are decided.",
        default_words="12, or 32 for a small preset",
    ),
]
ReadingName = Annotated[
    str | None,
    Option(
        "Choices that the papers leave open: balanced, multi-class, all-positive, class-incremental, squared-loss, "
        "uncentred, per-parameter or uniform-delay.",
        default=READING,
    ),
]
Settings = Annotated[
    tuple[str, ...], Option("Set a parameter, such as gate_scale=5. Can be repeated.", ("--set",), metavar="NAME=VALUE")
]
Seed = Annotated[int | None, Option("Seed of all random numbers.", default=0)]
OutFolder = Annotated[Path | None, Option("Folder for checkpoints and results.", default_words="runs/deep/PRESET")]
Results = Annotated[
    Document,
    Option(
        "the content of summary.json: schema, preset, where, cells, verdicts and files. With --list a list of the "
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

    PRESET combines the paper and the data set of the experiment's figure. Without PRESET, the presets are listed.
    Presets that end in -small run on embedded digits, in minutes on two cores, or with the same sizes on images in DIR.
    Others read their data set from DIR. Nothing is downloaded. DIR has a data set's published files, or 8-bit images of
    one size in train/CLASS and test/CLASS. Runs are saved in OUT. Rerunning resumes from the last checkpoints and ends
    with the same numbers. The command prints each cell's errors, their differences, and the verdicts on the figure's
    claims. It writes results.nc, summary.json, verdicts.json and deep.svg.

    Examples:
        moe-theory deep continual-mnist-small --replicates 4
        moe-theory deep continual-mnist-small --data photographs --classes 0,1
    """
    from moe_theory.deep import judging, report
    from moe_theory.verification.settings import parse_settings

    if only_list or (preset is None and data is None):
        return report.presets()
    if preset is None:
        raise InvalidValueError("a run needs a preset. Pass a name that --list shows.", argument="preset")
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
        settings=parse_settings(settings),
        replicates=replicates,
        seed=seed or 0,
        folder=out or Path("runs/deep") / preset,
    )
    return _run(plan, [] if data is None else plan.data.lines, terminal)


def _run(plan: "Plan", lines: list[str], terminal: Terminal) -> Document:
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
            f"checkpoints of every run are saved in {folder} after every {plan.every} rounds, and the same command "
            "resumes from them"
        ) from None
    if plan.store is not None and plan.store.damaged:
        terminal.say(f"{len(plan.store.damaged)} saved runs were damaged and had to be computed again")
    return report.document(judgement, folder)
