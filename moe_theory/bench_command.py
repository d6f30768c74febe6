"""What `moe-theory bench` does, given its options."""

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from moe_theory.bench import history, session
from moe_theory.commands import command_line, open_console, print_json, stop, stoppable
from moe_theory.core.errors import InvalidRunError
from moe_theory.report import speed, speed_figures
from moe_theory.report.output import prepare_folder


def run_bench(options: Any) -> None:
    """Measure, or read what was measured; then show, compare and report it."""
    then = None if options.compare is None else history.read(options.compare)
    if options.report is not None:
        prepare_folder(options.report, (speed_figures.TABLE, speed_figures.NUMBERS))
    console = open_console(to_stderr=options.json)
    if options.source is not None:
        if options.out is not None:
            raise InvalidRunError(
                f"--out {options.out} is for what is measured, and --from measures nothing. Drop one."
            )
        record, is_interrupted = history.read(options.source), False
    else:
        record, is_interrupted = _measured(options, console)
    changes = [] if then is None else history.compare(record, then)
    if options.json:
        document = history.to_json(record)
        if then is not None:
            document["changes"] = [{"id": each.id, **each.ratio._asdict(), "clear": each.is_clear} for each in changes]
        print_json(document)
    else:
        for sheet in speed.sheets(record):
            console.print(speed.to_rich(sheet))
        if then is not None:
            console.print(speed.to_rich(speed.changes_sheet(changes, then)))
        console.print(speed.machine_line(record), highlight=False, soft_wrap=True, markup=False)
    for path in () if options.report is None or record.is_empty else speed_figures.write_report(record, options.report):
        console.print(str(path), highlight=False, soft_wrap=True, markup=False)
    if is_interrupted:
        stop("interrupted; what was measured until then is kept")


def _measured(options: Any, console: Console) -> tuple[history.Record, bool]:
    """The record of a new run, written whole or as far as it came, and whether it was interrupted."""
    request = session.Request(
        options.system,
        options.quick,
        options.cores,
        options.precision,
        options.batch,
        options.compile,
        options.accelerator,
    )
    now = datetime.datetime.now(datetime.UTC)
    path = options.out or Path("runs/bench") / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    prepare_folder(path.parent, (path.name,))
    record = history.Record(now.isoformat(timespec="seconds"), command_line())
    is_interrupted = False
    try:
        with stoppable(), watching(console) as watch:
            session.carry_out(request, record, watch)
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        if not record.is_empty:
            history.write(record, path)
            console.print(f"measurements: {path}", highlight=False, soft_wrap=True, markup=False)
    return record, is_interrupted


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("starting", total=None)

    def planned(self, units: int) -> None:
        self._bar.update(self._task, total=units)

    def under_way(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def done(self, units: int) -> None:
        self._bar.advance(self._task, units)


class _Lines:
    """Plain lines for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._planned = self._done = 0

    def planned(self, units: int) -> None:
        self._planned = units

    def under_way(self, what: str) -> None:
        self._console.print(f"{self._done} of {self._planned}: {what}", highlight=False, soft_wrap=True)

    def done(self, units: int) -> None:
        self._done += units


@contextlib.contextmanager
def watching(console: Console) -> Iterator[session.Watch]:
    """What is measured, how much is done and how long it still takes: a live line, or plain ones for no terminal."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    facts = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*facts, TimeRemainingColumn(), TextColumn("left"), console=console, transient=True) as bar:
        yield _Bar(bar)
