"""What `moe-theory deep` does, given its options."""

import dataclasses
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from moe_theory.commands import command_line, leave_threads, open_console, print_json, stoppable
from moe_theory.core.errors import InvalidRunError
from moe_theory.deep import datasets, runs
from moe_theory.deep.checkpoints import Found
from moe_theory.deep.experiments import claims_for
from moe_theory.deep.presets import SMALL, Preset, preset
from moe_theory.deep.readings import reading
from moe_theory.deep.results import dataset
from moe_theory.deep.summary import Summary, summarised
from moe_theory.report import closing, deep, pages
from moe_theory.report.output import prepare_folder, write_text
from moe_theory.report.verdicts import live_table
from moe_theory.runs import Progress, quiet, terminal_progress
from moe_theory.runs.compilation import keep_programs
from moe_theory.runs.files import write_whole
from moe_theory.runs.machine import available_cores
from moe_theory.runs.provenance import backend, is_x64, now, versions
from moe_theory.sweep.dataset import to_netcdf
from moe_theory.verify.claim import Runs
from moe_theory.verify.session import FAMILY_ERROR, judge
from moe_theory.verify.settings import parsed
from moe_theory.verify.verdict import Report

THREADS = 2  # seeds that run at once on a CPU
RUNS = "runs"  # the folder of their files


def run_deep(options: Any) -> None:
    """List the presets, or run one, show what it came to and write it.

    Raises: MoeTheoryError for options that cannot be met, before anything runs.
    """
    name = named(options)
    if name is None or options.list:
        list_presets(options.json)
        return
    with stoppable():
        _run_preset(preset(name), options)


def named(options: Any) -> str | None:
    """The preset that the options name, if any. Raises: InvalidRunError where they name two."""
    if options.positional is not None and options.preset not in (None, options.positional):
        raise InvalidRunError(
            f"preset={options.preset} and {options.positional} are two presets, and one is run at a time. Name one."
        )
    asked = options.positional if options.preset is None else options.preset
    if asked == "":
        raise InvalidRunError("preset='' names no preset. Leave it out for a list of them.")
    return asked


def list_presets(as_json: bool) -> None:
    """The presets there are, on standard output."""
    if as_json:
        print_json(deep.presets_json())
        return
    console = open_console()
    console.print(deep.presets_table())
    console.print(deep.BEGIN, highlight=False, soft_wrap=True)


def _run_preset(chosen: Preset, options: Any) -> None:
    out = options.out or Path("runs/deep") / chosen.name
    plan = planned(chosen, options, out / RUNS)
    if options.fresh:
        plan.forget()
    kept = runs.survey(plan)
    if kept[Found.OTHER]:
        raise InvalidRunError(
            f"{out} holds {deep.counted(kept[Found.OTHER], 'run', 'runs')} of other settings, data, seeds, checkpoint "
            "rounds or versions, which this one would replace. Name another --out, or give --fresh to forget them."
        )
    folder = prepare_folder(out, deep.NAMES)
    keep_programs(folder / "programs")
    console = open_console(to_stderr=options.json)
    teller = _Teller(plan)
    console.print(deep.heading(plan), highlight=False, soft_wrap=True, markup=False)
    if kept[Found.WHOLE] + kept[Found.PART]:
        console.print(
            f"going on: of {kept.total()} runs {kept[Found.WHOLE]} are complete and {kept[Found.PART]} begun",
            highlight=False,
        )
    try:
        with terminal_progress(console) as progress:
            teller.begin(progress)
            made = runs.carry_out(plan, teller.tell, threads())
    except KeyboardInterrupt:
        leave_threads(f"interrupted; {teller.kept(folder)}")
    summary, report = summarised(plan, made), judged(plan, made)
    paths = write(plan, made, summary, report, folder)
    if options.json:
        print_json(deep.to_json(plan, summary, report.verdicts, paths))
        return
    show(summary, report, console)
    for line in (*teller.lines(), *(f"wrote {path}" for path in paths)):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def planned(chosen: Preset, options: Any, folder: Path) -> runs.Plan:
    """What the options ask for, with its data. Raises: MoeTheoryError for what there is not."""
    if options.data is not None and deep.is_embedded(chosen):
        raise InvalidRunError(
            f"{chosen.name} runs on the embedded digits, and reads nothing from --data. Leave out --data, or name the "
            f"preset {chosen.name.removesuffix(SMALL)}."
        )
    return runs.Plan(
        preset=chosen,
        reading=reading(options.reading),
        replicates=chosen.replicates if options.replicates is None else options.replicates,
        seed=options.seed,
        every=options.checkpoint_every,
        folder=folder,
        settings=parsed(options.settings),
        data=datasets.load(chosen.data, options.data),  # last, as it may take long
    )


def threads() -> int:
    """Seeds to run at once: a device other than a CPU is busy with one."""
    return min(THREADS, available_cores()) if backend() == "cpu" else 1


def show(summary: Summary, report: Report, console: Console) -> None:
    """Tables and lines in a terminal."""
    for table in deep.tables(summary, console.width):
        console.print(table)
    for line in (*deep.closing_lines(summary), *deep.doubts_of_verdicts(summary)):
        style = "yellow" if line.startswith("WARNING") else None
        console.print(line, highlight=False, soft_wrap=True, markup=False, style=style)
    if report.verdicts:
        console.print(live_table(report.verdicts, console.width))
        for line in closing.closing_lines(report):
            console.print(line, highlight=False, soft_wrap=True, markup=False)


def judged(plan: runs.Plan, made: Runs) -> Report:
    """The verdicts on the preset's claims, which share one error; none from a single seed, which decides nothing."""
    claims = claims_for(plan.preset, plan.data.title) if plan.replicates > 1 else []
    verdicts = [judge(claim, plan.setting, made, plan.seed, FAMILY_ERROR / len(claims)) for claim in claims]
    return Report(
        verdicts=[dataclasses.replace(verdict, command=command_line()) for verdict in verdicts],
        command=command_line(),
        seed=plan.seed,
        error=FAMILY_ERROR,
        versions=versions(),
        is_x64=is_x64(),
        readings={f"{claim.paper}.{plan.setting}": plan.reading.summary for claim in claims},
        finished=now(),
    )


def write(plan: runs.Plan, made: Runs, summary: Summary, report: Report, folder: Path) -> list[Path]:
    """Records, numbers, verdicts and a picture; their paths. Raises: OutputError if the folder cannot take them."""
    paths = [folder / name for name in deep.NAMES]
    to_netcdf(dataset(plan, made, command_line()), paths[0])
    write_text(paths[1], json.dumps(deep.to_json(plan, summary, report.verdicts, paths), indent=2) + "\n")
    pages.write_numbers(report, folder)
    write_whole(paths[3], deep.picture(plan, made, summary))
    return paths


class _Teller:
    """Tells of what runs do, which comes from several threads."""

    def __init__(self, plan: runs.Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._found: Counter[Found] = Counter()
        self._is_running = False
        self._progress: Progress = quiet

    def begin(self, progress: Progress) -> None:
        """From now on, tell it."""
        self._progress = progress
        progress.add_work(self._num_runs * self._plan.preset.num_rounds)
        # Which ends with the first checkpoint: a network may take minutes for the rounds up to it.
        progress.compiling(f"rounds, and running {deep.counted(self._plan.every, 'round', 'rounds')} of the first run")

    @property
    def _num_runs(self) -> int:
        return len(self._plan.preset.cells()) * self._plan.replicates

    def tell(self, step: runs.Step) -> None:
        """News of a run."""
        with self._lock:
            num_rounds = self._plan.preset.num_rounds
            self._progress.at(f"{step.cell}, seed {step.replicate}, round {step.done} of {num_rounds}")
            self._progress.advance(step.rounds)
            if step.found is not None:
                self._found[step.found] += 1
            elif not self._is_running:  # a part is done, so that there is a program
                self._is_running = True
                self._progress.running("rounds")

    def kept(self, folder: Path) -> str:
        """What an interrupted run leaves, in words."""
        if not self._is_running and not self._found[Found.PART] + self._found[Found.WHOLE]:
            return f"no run had reached its first checkpoint, round {self._plan.every}: nothing is kept"
        return f"rounds up to each run's last checkpoint are kept in {folder}: the same command goes on"

    def lines(self) -> list[str]:
        """What was taken from earlier runs, and what was not."""
        resumed, whole = self._found[Found.PART] + self._found[Found.WHOLE], self._found[Found.WHOLE]
        lines = []
        if resumed:
            lines.append(f"resumed {resumed} of {self._num_runs} runs, {whole} of them complete already")
        if damaged := self._found[Found.DAMAGED]:
            lines.append(f"{deep.counted(damaged, 'file was', 'files were')} damaged: computed anew")
        return lines
