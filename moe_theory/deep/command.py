"""`moe-theory deep`."""

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, examples, json_option, out_option, seed_option, whole_numbers
from moe_theory.cli.output import command_line, open_console, print_lines, show_document, stop_at_once, stoppable
from moe_theory.core.errors import InvalidRunError

if TYPE_CHECKING:
    from moe_theory.deep import Plan
    from moe_theory.deep.runs import RunProgress
    from moe_theory.report.document import Document

OF_LISTS = ("data", "only_list", "json")  # options that do without a preset


@click.command(
    epilog=examples(
        "moe-theory deep continual-mnist-small --replicates 4",
        "moe-theory deep --data photographs --list",
        "moe-theory deep continual-mnist-small --kappa 3 --network mlp",
    )
)
@click.argument("preset", required=False)
@click.option(
    "--data",
    type=PATH,
    metavar="DIR",
    help="Folder of a data set's files or of images of your own; without PRESET the first one on these data.",
)
@click.option("--list", "only_list", is_flag=True, help="Only list the presets, or with --data what DIR holds.")
@click.option(
    "--kappa",
    type=float,
    help="Gate drive to reach, by the gate's scale, as a pilot of ten rounds finds it.",
    show_default="no pilot",
)
@click.option(
    "--literal",
    is_flag=True,
    help="Set eta, alpha, lambda and Gamma from the measured sigma_0 as the theorems do, and leave the gate's input as "
    "it is.",
)
@click.option(
    "--network", metavar="NAME", help="Of the experts: mlp, five-layer-small, resnet18-small, or PACKAGE.MODULE:NAME."
)
@click.option("--epochs", type=int, help="Of an expert on a task.", show_default="the preset's")
@click.option("--samples", type=int, help="Training images of a task.", show_default="the preset's")
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
    "--test-images", type=int, help="Of the data set, to evaluate on.", show_default="all; a part for ResNet-18"
)
@click.option(
    "--replicates",
    type=int,
    help="Seeds that each cell is run with. Of 60 or more the claims are looked at after halves of them too, and no "
    "more are run once all claims are decided.",
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
@out_option("Folder for checkpoints and results.", told="runs/deep/PRESET")
@json_option(
    "what summary.json holds, with schema, preset, where, cells, verdicts and files; with --list a list of the "
    "presets, or of DIR schema, title, recognised, shape, type, classes, files, left_out, converted, notes, md5, "
    "digest and others."
)
def deep(
    preset: str | None,
    data: Path | None,
    only_list: bool,
    settings: tuple[str, ...],
    out: Path | None,
    **asked: Any,
) -> None:
    """Run a paper's deep-network experiment.

    PRESET names it by the paper and the data set of its figure; without one, the presets are listed. Those that end
    in -small run on embedded digits in minutes on two cores, or on DIR's images at their sizes; the others read their
    data set from DIR, and nothing is downloaded. DIR has a data set's published files, 8-bit images of one size in
    folders of classes, or an .npz file; --list says which, and what is left out. Each run is kept in OUT as it goes:
    rerunning resumes from the last checkpoints, and ends with the same numbers. Prints each cell's errors, how they
    differ and the verdicts on the figure's claims; writes results.nc, summary.json, verdicts.json and deep.svg.
    """
    from moe_theory import deep as door
    from moe_theory.deep import datasets, judging, report
    from moe_theory.deep.datasets.report import lines
    from moe_theory.deep.runs import Stored
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.verify.request import parsed

    if preset == "":
        raise InvalidRunError("preset='' names no preset. Leave it out for a list of them.")
    if data is not None and not data.is_dir():
        raise datasets.missing(data)
    if only_list and preset is not None:
        raise InvalidRunError(f"--list lists, and does not run {preset}. Leave one of both out.")
    is_list = only_list or (preset is None and data is None)
    if is_list:
        _refuse_run_options()
    if only_list and data is not None:
        show_document(_held_by(data))
        return
    if is_list:
        show_document(report.presets())
        return
    with stoppable():
        chosen = judging.preset_for(preset, data)
        folder = out or Path("runs/deep") / chosen.name
        console = open_console()
        tell = functools.partial(print_lines, console)
        keep_programs(fallback=folder / "programs")
        plan = door.plan(
            chosen,
            data,
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


def _refuse_run_options() -> None:
    """Raise InvalidRunError for an option that only a run reads."""
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_given and option.name not in OF_LISTS:
            raise InvalidRunError(f"{option.opts[0]} is for a run of a preset. Name PRESET, which --list shows.")


def _held_by(folder: Path) -> "Document":
    """What a folder holds, and what `--data` reads of it."""
    from moe_theory.deep import datasets
    from moe_theory.deep.datasets import report

    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    return report.document(datasets.load(names[0], folder), names[1:])


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
            lines.append(f"{ended} of {self._num_runs} runs {verb} computed again: their weights were not saved")
        if damaged:
            lines.append(f"{damaged} {'run was' if damaged == 1 else 'runs were'} damaged: computed again")
        return lines
