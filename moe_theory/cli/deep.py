"""`moe-theory deep`."""

import dataclasses
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moe_theory.cli.options import PATH, examples, frame_options, json_option, out_option, seed_option
from moe_theory.cli.output import (
    command_line,
    open_console,
    print_json,
    print_lines,
    stop_at_once,
    stoppable,
    wants_json,
)
from moe_theory.core.errors import InvalidRunError

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.deep.fitting import Sizes
    from moe_theory.deep.runs import Plan, Step
    from moe_theory.deep.summary import Summary
    from moe_theory.runs import Progress
    from moe_theory.verify.claim import Runs
    from moe_theory.verify.interim import SequentialTest
    from moe_theory.verify.verdict import Report

THREADS = 2  # seeds that run at once on a CPU


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
@click.option("--experts", metavar="M,...", help="Numbers of experts to compare.", show_default="the preset's")
@click.option(
    "--classes", metavar="K,...", help="Numbers of the data set's classes that are tasks.", show_default="the preset's"
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
    minutes: float | None,
    kappa: float | None,
    literal: bool,
    network: str | None,
    epochs: int | None,
    samples: int | None,
    batch: int | None,
    rounds: int | None,
    experts: str | None,
    classes: str | None,
    module: Path | None,
    test_images: int | None,
    replicates: int | None,
    reading: str,
    settings: tuple[str, ...],
    seed: int,
    every: int,
    out: Path | None,
    keep_weights: bool,
    fresh: bool,
    only_list: bool,
) -> None:
    """Run a paper's deep-network experiment.

    PRESET names it by the paper and the data set of its figure; without one, the presets are listed. Those that end
    in -small run on embedded digits in minutes on two cores, or on DIR's images at their sizes; the others read their
    data set from DIR, and nothing is downloaded. DIR may hold images of your own, as `moe-theory data DIR` says. Each
    run is kept in OUT as it goes: rerunning resumes from the
    last checkpoints, and ends with the same numbers. Prints each cell's errors, how they differ and the verdicts on
    the figure's claims; writes results.nc, summary.json, verdicts.json and deep.svg.
    """
    from moe_theory.deep import datasets, fitting, own, presets, runs
    from moe_theory.deep import reading as reading_named
    from moe_theory.deep.datasets.decoder import frame
    from moe_theory.deep.datasets.report import lines as data_lines
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
        _list_presets()
        return
    if minutes is not None and replicates is not None:
        raise InvalidRunError("--minutes chooses the number of seeds. Drop --minutes or --seeds.")
    if data is not None and not data.is_dir():
        raise InvalidRunError(f"--data {data} is no folder. Name the one that holds a data set's files.")
    with stoppable():
        found = None if data is None else datasets.found_in(data)
        if data is not None and not found:
            failure = datasets.missing(data)
            if name is None or failure.present:  # else what the preset looks for is told
                raise failure
        chosen = presets.on_data(name, found)
        sizes = fitting.Sizes(
            own.network_named(network),
            epochs,
            samples,
            batch,
            rounds,
            _numbers("experts", experts),
            _numbers("classes", classes),
            test_images,
        )
        folder = out or Path("runs/deep") / chosen.name
        chosen = fitting.resized(chosen, sizes)
        asked, overridden = reading_named(reading), parsed(settings)
        read = datasets.load(chosen.data, data, frame(size, resize))  # last, as it may take long
        if data is not None:
            print_lines(open_console(), *data_lines(read))
        plan = runs.Plan(
            preset=chosen,
            reading=asked,
            replicates=chosen.replicates if replicates is None else replicates,
            seed=seed,
            every=every,
            folder=folder / "runs",
            settings=overridden,
            is_sequential=minutes is not None,
            keeps_weights=keep_weights,
            data=fitting.thinned(read, chosen.test_images if test_images is None else test_images),
        )
        if fresh:
            plan.forget()
            (folder / fitting.CHOSEN).unlink(missing_ok=True)
        fitting.check(plan, minutes, kappa, literal)
        if literal:
            plan, told, _ = fitting.literal(plan)
            print_lines(open_console(), *told)
        _run(_fitted(plan, sizes, minutes, kappa), folder)


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """Whole numbers between commas. Raises: InvalidRunError for anything else."""
    try:
        return None if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidRunError(f"--{option} {text!r} must be whole numbers between commas, such as 1,4,7.") from None


def _fitted(plan: "Plan", given: "Sizes", minutes: float | None, kappa: float | None) -> "Plan":
    """The plan as a clock and a gate drive have it, with what was chosen printed; kept, so that reruns resume."""
    from moe_theory.deep import fitting
    from moe_theory.deep.experiments import claims_for
    from moe_theory.report import deep as pages
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.verify.request import FAMILY_ERROR

    if minutes is None and kappa is None:
        return plan
    console, num_claims = open_console(), len(claims_for(plan.preset, plan.data.title))
    assert plan.folder is not None
    kept = plan.folder.parent / fitting.CHOSEN
    choice = fitting.kept_choice(kept, plan, given, minutes, kappa)
    if choice is None:
        keep_programs(fallback=prepare_folder(plan.folder.parent, pages.NAMES) / "programs")
        print_lines(
            console, "pilots: timing rounds, and looking at the gates" if minutes else "pilot: looking at the gates"
        )
        choice = fitting.fit(plan, given, minutes, kappa, num_claims, FAMILY_ERROR)
        fitting.keep(kept, choice, plan, given, minutes, kappa)
    print_lines(console, *choice.told)
    return choice.plan


def _list_presets() -> None:
    from moe_theory.report import deep as pages

    if wants_json():
        print_json(pages.presets_json())
        return
    console = open_console()
    console.print(pages.presets_table())
    console.print(pages.BEGIN, highlight=False, soft_wrap=True)


def _run(plan: "Plan", out: Path) -> None:
    from moe_theory.core.machine import available_cores
    from moe_theory.deep import runs
    from moe_theory.deep.runs import Stored
    from moe_theory.deep.summary import summarize
    from moe_theory.report import deep as pages
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.runs.provenance import backend

    kept = runs.count_stored(plan)
    if kept[Stored.OTHER]:
        raise InvalidRunError(
            f"{out} holds {pages.counted(kept[Stored.OTHER], 'run', 'runs')} of other settings, data, seeds, "
            "checkpoint rounds, versions or numbers of cores, which this one would replace. Name another --out, or "
            "give --fresh to discard them."
        )
    folder = prepare_folder(out, pages.NAMES)
    keep_programs(fallback=folder / "programs")
    console = open_console()
    log, tests, made = _Log(plan), tests_of(plan), {}
    print_lines(console, pages.heading(plan))
    complete, partial = kept[Stored.COMPLETE], kept[Stored.PARTIAL]
    if complete + partial:
        print_lines(console, f"resuming: of {kept.total()} runs {complete} are complete and {partial} begun")
    threads = min(THREADS, available_cores()) if backend() == "cpu" else 1  # another device is busy with one seed
    try:
        with terminal_progress(console) as progress:
            log.begin(progress)
            for first, last in zip((0, *plan.looks), plan.looks, strict=False):
                made = runs.joined(made, runs.run_plan(plan, log.record, threads, log.wait, range(first, last)))
                if has_decided(tests, made):
                    break
    except KeyboardInterrupt:
        stop_at_once(f"interrupted; {log.kept(folder)}")
    plan = dataclasses.replace(plan, replicates=len(next(iter(made.values())).replicates))
    summary, report = summarize(plan, made), judged(plan, tests)
    paths = _write(plan, made, summary, report, folder)
    if wants_json():
        click.echo(paths[1].read_text(), nl=False)
        return
    _show(plan, summary, report, console)
    print_lines(console, *log.lines(), *(f"wrote {path}" for path in paths))


def tests_of(plan: "Plan") -> list["SequentialTest"]:
    """The tests of the preset's claims, which share one error; none of a single seed, which decides nothing."""
    from moe_theory.deep.experiments import claims_for
    from moe_theory.verify.interim import SequentialTest
    from moe_theory.verify.request import FAMILY_ERROR, blank_verdict

    claims = claims_for(plan.preset, plan.data.title) if plan.replicates > 1 else []
    return [
        SequentialTest(
            claim,
            blank_verdict(claim, plan.setting, plan.seed, FAMILY_ERROR / len(claims)),
            plan.replicates,
            is_single_look=len(plan.looks) == 1,
        )
        for claim in claims
    ]


def has_decided(tests: list["SequentialTest"], made: "Runs") -> bool:
    """Whether a look at these runs leaves no claim open; without claims nothing decides."""
    undecided = [test for test in tests if not test.has_ended]
    for test in undecided:
        test.extend(made, {})
        if not test.has_ended:
            test.look(test.count)
    return bool(tests) and all(test.has_ended for test in tests)


def judged(plan: "Plan", tests: list["SequentialTest"]) -> "Report":
    from moe_theory.runs.provenance import is_x64, now, versions
    from moe_theory.verify.request import FAMILY_ERROR
    from moe_theory.verify.verdict import Report

    return Report(
        verdicts=[dataclasses.replace(test.latest, command=command_line()) for test in tests],
        command=command_line(),
        seed=plan.seed,
        error=FAMILY_ERROR,
        versions=versions(),
        is_x64=is_x64(),
        readings={f"{test.claim.paper}.{plan.setting}": plan.reading.summary for test in tests},
        finished=now(),
    )


def _write(plan: "Plan", made: "Runs", summary: "Summary", report: "Report", folder: Path) -> list[Path]:
    from moe_theory.deep.runs import dataset
    from moe_theory.report import deep as pages
    from moe_theory.report.pages import to_json
    from moe_theory.runs.files import sealed, whole_set
    from moe_theory.sweep.dataset import to_netcdf

    paths = [folder / name for name in pages.NAMES]
    with whole_set(folder, pages.NAMES) as temporaries:
        results, numbers, verdicts, picture = temporaries.values()
        to_netcdf(dataset(plan, made, command_line()), results)
        numbers.write_text(sealed(pages.to_json(plan, summary, report.verdicts, paths)))
        verdicts.write_text(to_json(report))
        picture.write_bytes(pages.picture(plan, made, summary))
    return paths


def _show(plan: "Plan", summary: "Summary", report: "Report", console: "Console") -> None:
    from moe_theory.deep.experiments import claims_for
    from moe_theory.report import deep as pages
    from moe_theory.report import verdicts
    from moe_theory.report.verdicts import live_table

    for table in pages.tables(summary, console.width):
        console.print(table)
    few = pages.verdict_warnings(summary, plan.is_sequential) if claims_for(plan.preset, plan.data.title) else []
    for line in (*pages.closing_lines(summary), *few):
        style = "yellow" if line.startswith("WARNING") else None
        console.print(line, highlight=False, soft_wrap=True, style=style)
    if report.verdicts:
        console.print(live_table(report.verdicts, console.width))
        print_lines(console, *verdicts.closing_lines(report))


class _Log:
    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._num_runs = len(plan.preset.cells()) * plan.replicates
        self._lock = threading.Lock()
        self._found: Counter[str] = Counter()  # by `Stored`
        self._is_running = False

    def begin(self, progress: "Progress") -> None:
        self._progress, every = progress, self._plan.every
        progress.add_work(self._num_runs * self._plan.preset.num_rounds)
        # Which ends with the first checkpoint: a network may take minutes for the rounds up to it.
        first = min(every, self._plan.preset.num_rounds)
        progress.compiling(f"rounds, and running {first} {'round' if first == 1 else 'rounds'} of the first run")

    def record(self, step: "Step") -> None:
        with self._lock:
            num_rounds = self._plan.preset.num_rounds
            self._progress.at(f"{step.cell}, seed {step.replicate}, round {step.done} of {num_rounds}")
            self._progress.advance(step.rounds)
            if step.stored is not None:
                self._found[step.stored] += 1
            elif not self._is_running:  # a part is done, so that there is a program
                self._is_running = True
                self._progress.running("rounds")

    def wait(self, told: str) -> None:
        self._is_running = False
        self._progress.running(f"nothing: {told}")

    def kept(self, folder: Path) -> str:
        from moe_theory.deep.runs import Stored

        if not self._is_running and not self._found[Stored.PARTIAL] + self._found[Stored.COMPLETE]:
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
