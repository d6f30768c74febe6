"""`moe-theory deep`."""

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moe_theory.cli.options import PATH, examples, frame_options, json_option, out_option, seed_option, whole_numbers
from moe_theory.cli.output import command_line, open_console, print_lines, show_document, stop_at_once, stoppable
from moe_theory.core.errors import InvalidRunError

if TYPE_CHECKING:
    from moe_theory.deep import Plan
    from moe_theory.deep.runs import RunProgress


@click.command(
    epilog=examples(
        "moe-theory deep continual-mnist-small --replicates 4",
        "moe-theory deep --data ~/data/fashion-mnist --minutes 20",
        "moe-theory deep continual-mnist-small --kappa 3 --network mlp",
    )
)
@click.argument("positional", required=False, metavar="[PRESET]")
@click.option("--preset", metavar="NAME", help="PRESET, as an option.")
@click.option(
    "--data",
    type=PATH,
    metavar="DIR",
    help="Folder of a data set's published files; without PRESET the first one on these data.",
)
@frame_options
@click.option(
    "--minutes",
    type=float,
    help="Choose sizes, seeds and the gate's scale with which all takes about so long, and say so beforehand.",
)
@click.option(
    "--kappa",
    type=float,
    help="Gate drive to reach, by the gate's scale, as a pilot of ten rounds finds it.",
    show_default="no pilot; with --minutes 3, and 30 of servers",
)
@click.option(
    "--literal",
    is_flag=True,
    help="Set eta, alpha, lambda and Gamma from the measured sigma_0 as the theorems do, and leave the gate's input as "
    "it is.",
)
@click.option(
    "--network",
    metavar="NAME",
    help="Of the experts: mlp, five-layer-small, resnet18-small, one of FILE's, or PACKAGE.MODULE:NAME.",
)
@click.option("--epochs", type=int, help="Of an expert on a task.", show_default="the preset's")
@click.option("--samples", type=int, help="Training images of a task.", show_default="the preset's")
@click.option("--batch", type=int, help="Images of a gradient step.", show_default="the preset's")
@click.option("--rounds", type=int, help="T, tasks that arrive.", show_default="the preset's")
@click.option(
    "--experts",
    callback=whole_numbers,
    metavar="M,...",
    help="Numbers of experts to compare.",
    show_default="the preset's",
)
@click.option(
    "--classes",
    callback=whole_numbers,
    metavar="K,...",
    help="Numbers of the data set's classes that are tasks.",
    show_default="the preset's",
)
@click.option(
    "--module",
    type=PATH,
    metavar="FILE",
    help="A Python file that registers networks, data or presets of your own: moe_theory.deep.register(...).",
)
@click.option(
    "--test-images", type=int, help="Of the data set, to evaluate on.", show_default="all; a part for ResNet-18"
)
@click.option(
    "--replicates",
    "--seeds",
    type=int,
    help="Seeds that each cell is run with.",
    show_default="12, and 32 of a small preset",
)
@click.option(
    "--reading",
    default="balanced",
    help="Where the papers are silent: balanced, multi-class, all-positive, class-incremental, squared-loss, "
    "uncentred, per-parameter or uniform-delay.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Override a parameter of the preset, such as gate_scale=5; repeat it for more.",
)
@seed_option
@click.option(
    "--checkpoint-every", "every", default=10, help="Rounds between checkpoints; another number is another run."
)
@out_option("Folder for checkpoints and results.", told="runs/deep/PRESET")
@click.option(
    "--keep-weights",
    "keeps_weights",
    is_flag=True,
    help="Keep each run's final state in its file: weights and gates, for numpy.load; a larger --rounds goes on from "
    "it, where steps do not shrink with T.",
)
@click.option(
    "--fresh", is_flag=True, help="Discard all runs of the preset in OUT, those of other seeds and settings too."
)
@click.option("--list", "only_list", is_flag=True, help="Only list the presets.")
@json_option(
    "what summary.json holds, with schema, preset, where, cells, verdicts and files; without a preset "
    "a list of the presets."
)
def deep(
    positional: str | None,
    preset: str | None,
    data: Path | None,
    resize: str | None,
    size: str | None,
    module: Path | None,
    settings: tuple[str, ...],
    out: Path | None,
    only_list: bool,
    **asked: Any,
) -> None:
    """Run a paper's deep-network experiment.

    PRESET names it by the paper and the data set of its figure; without one, the presets are listed. Those that end
    in -small run on embedded digits in minutes on two cores, or on DIR's images at their sizes; the others read their
    data set from DIR, and nothing is downloaded. DIR may hold images of your own, as `moe-theory data DIR` says. Each
    run is kept in OUT as it goes: rerunning resumes from the
    last checkpoints, and ends with the same numbers. Prints each cell's errors, how they differ and the verdicts on
    the figure's claims; writes results.nc, summary.json, verdicts.json and deep.svg.
    """
    from moe_theory import deep as door
    from moe_theory.deep import judging, report
    from moe_theory.deep.datasets.decoder import frame
    from moe_theory.deep.datasets.report import lines
    from moe_theory.deep.runs import Stored
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.verify.registry import run_file
    from moe_theory.verify.request import parsed

    if positional is not None and preset not in (None, positional):
        raise InvalidRunError(f"preset={preset} and {positional} are two presets, but one is run at a time. Name one.")
    name = positional if preset is None else preset
    if name == "":
        raise InvalidRunError("preset='' names no preset. Leave it out for a list of them.")
    if module is not None:
        run_file(module)
    if only_list or (name is None and data is None):
        show_document(report.presets())
        return
    if data is not None and not data.is_dir():
        raise InvalidRunError(f"--data {data} is no folder. Name the one that holds a data set's files.")
    with stoppable():
        chosen = judging.preset_for(name, data)
        folder = out or Path("runs/deep") / chosen.name
        console = open_console()
        tell = functools.partial(print_lines, console)
        keep_programs(fallback=folder / "programs")
        plan = door.plan(
            chosen,
            data,
            frame=frame(size, resize),
            settings=parsed(settings),
            folder=folder,
            on_data=None if data is None else lambda read: tell(*lines(read)),
            tell=tell,
            **asked,
        )
        prepare_folder(folder, judging.FILES)
        log = _Log(plan)
        tell(report.heading(plan))
        complete, partial = plan.stored[Stored.COMPLETE], plan.stored[Stored.PARTIAL]
        if complete + partial:
            tell(f"resuming: of {plan.stored.total()} runs {complete} are complete and {partial} begun")
        try:
            with terminal_progress(console) as progress:
                found = judging.judge(plan, progress=progress, on_step=log.record, command=command_line())
        except KeyboardInterrupt:
            stop_at_once(f"interrupted; {log.kept(folder)}")
        show_document(report.document(found, report.write(found, folder), log.lines()))


class _Log:
    """Which of a plan's runs its folder had, and whether any has come to a checkpoint since."""

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._num_runs = len(plan.preset.cells()) * plan.replicates
        self._found: Counter[str] = Counter()  # by `Stored`
        self._has_stored = False

    def record(self, step: "RunProgress") -> None:
        if step.stored is not None:
            self._found[step.stored] += 1
        else:
            self._has_stored = True

    def kept(self, folder: Path) -> str:
        from moe_theory.deep.runs import Stored

        if not self._has_stored and not self._found[Stored.PARTIAL] + self._found[Stored.COMPLETE]:
            return f"no run had reached its first checkpoint, round {self._plan.every}: nothing is kept"
        return f"rounds up to each run's last checkpoint are kept in {folder}: the same command resumes from them"

    def lines(self) -> list[str]:
        from moe_theory.deep.runs import Stored

        whole, damaged = self._found[Stored.COMPLETE], self._found[Stored.DAMAGED]
        resumed, lines = self._found[Stored.PARTIAL] + whole, []
        if resumed:
            lines.append(f"resumed {resumed} of {self._num_runs} runs, {whole} of which were complete")
        if ended := self._found[Stored.ENDED]:
            verb = "had ended, and was" if ended == 1 else "had ended, and were"
            lines.append(f"{ended} of {self._num_runs} runs {verb} computed again: their files had no weights")
        if damaged:
            lines.append(f"{damaged} {'file was' if damaged == 1 else 'files were'} damaged: computed again")
        return lines
