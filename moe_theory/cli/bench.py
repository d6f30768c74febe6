"""`moe-theory bench`."""

import contextlib
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moe_theory.cli.options import PATH, examples, json_option, out_option
from moe_theory.cli.output import command_line, open_console, print_json, print_lines, stop, stoppable
from moe_theory.core.errors import InvalidRunError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from moe_theory.bench import history, session


@click.command(epilog=examples("moe-theory bench --quick"))
@click.option(
    "--system", "--systems", "systems", multiple=True, metavar="NAME", help="A system; repeat it.", show_default="all"
)
@click.option("--quick", is_flag=True, help="Only against other ways, at one setting a system.")
@click.option("--cores", default="both", help="What to measure on: one, all or both.")
@click.option("--precision", default="float32", help="Of the runs: float32 or float64.")
@click.option(
    "--batch", multiple=True, type=int, help="Replicates that run together; repeat it.", show_default="typical sizes"
)
@click.option("--no-compile", is_flag=True, help="Do not time compiling the eight cells of Fig. 2, cold and kept.")
@click.option("--accelerator", is_flag=True, help="Measure a batch of 100,000 on an accelerator instead.")
@out_option("File for the measurements.", told="runs/bench/TIME.json")
@click.option("--compare", type=PATH, metavar="EARLIER.json", help="Measurements of an earlier run to compare with.")
@click.option(
    "--report", type=PATH, metavar="FOLDER", help="Folder for a table in Markdown, figures and the measurements."
)
@click.option(
    "--from",
    "source",
    type=PATH,
    metavar="FILE.json",
    help="Measurements of an earlier run to show instead of measuring.",
)
@json_option("schema, time, complete, command, provenance and measurements; with --compare changes too.")
def bench(
    systems: tuple[str, ...],
    quick: bool,
    cores: str,
    precision: str,
    batch: tuple[int, ...],
    no_compile: bool,
    accelerator: bool,
    out: Path | None,
    compare: Path | None,
    report: Path | None,
    source: Path | None,
    as_json: bool,
) -> None:
    """Measure how fast this package is here.

    Times the engine against other ways to run the same rounds (NumPy, PyTorch where it is installed, textbook JAX),
    over a grid of sizes, its scaling and its compile time, on one pinned core and on all. All of it takes about half
    an hour, --quick a minute or two. What was measured until an interrupt is kept.
    """
    from moe_theory.bench import history, session
    from moe_theory.report import speed, speed_figures
    from moe_theory.report.output import prepare_folder

    then = None if compare is None else history.read(compare)
    if report is not None:
        prepare_folder(report, (speed_figures.TABLE, speed_figures.NUMBERS))
    console = open_console(to_stderr=as_json)
    if source is None:
        request = session.Request(systems, quick, cores, precision, batch, not no_compile, accelerator)
        record, is_interrupted = _measured(request, out, console)
    elif out is None:
        record, is_interrupted = history.read(source), False
    else:
        raise InvalidRunError(f"--out {out} is for what is measured, and --from measures nothing. Drop one.")
    changes = [] if then is None else history.compare(record, then)
    if as_json:
        document = history.to_json(record)
        if then is not None:
            document["changes"] = [{"id": each.id, **each.ratio._asdict(), "clear": each.is_clear} for each in changes]
        print_json(document)
    else:
        for sheet in speed.sheets(record):
            console.print(speed.to_rich(sheet))
        if then is not None:
            console.print(speed.to_rich(speed.changes_sheet(changes, then)))
        print_lines(console, speed.machine_line(record))
    if report is not None and not record.is_empty:
        print_lines(console, *speed_figures.write_report(record, report))
    if is_interrupted:
        stop("interrupted; what was measured until then is kept")


def _measured(request: "session.Request", out: Path | None, console: "Console") -> "tuple[history.Record, bool]":
    """The record of a new run, written whole or as far as it came, and whether it was interrupted."""
    from moe_theory.bench import history, session
    from moe_theory.report.output import prepare_folder

    now = datetime.datetime.now(datetime.UTC)
    path = out or Path("runs/bench") / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    prepare_folder(path.parent, (path.name,))
    record = history.Record(now.isoformat(timespec="seconds"), command_line())
    is_interrupted = False
    try:
        with stoppable(), _watching(console) as watch:
            session.carry_out(request, record, watch)
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        if not record.is_empty:
            history.write(record, path)
            print_lines(console, f"measurements: {path}")
    return record, is_interrupted


class _Bar:
    def __init__(self, bar: "Progress") -> None:
        self._bar, self._task = bar, bar.add_task("starting", total=None)

    def planned(self, units: int) -> None:
        self._bar.update(self._task, total=units)

    def under_way(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def done(self, units: int) -> None:
        self._bar.advance(self._task, units)


class _Lines:
    """Plain lines for logs and pipes."""

    def __init__(self, tell: Callable[[str], Any]) -> None:
        self._tell = tell
        self._planned = self._done = 0

    def planned(self, units: int) -> None:
        self._planned = units

    def under_way(self, what: str) -> None:
        self._tell(f"{self._done} of {self._planned}: {what}")

    def done(self, units: int) -> None:
        self._done += units


@contextlib.contextmanager
def _watching(console: "Console") -> "Iterator[session.Watch]":
    """What is measured, how much is done and how long it still takes: a live line, or plain ones for no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if not console.is_terminal:
        yield _Lines(lambda line: print_lines(console, line))
        return
    facts = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*facts, TimeRemainingColumn(), TextColumn("left"), console=console, transient=True) as bar:
        yield _Bar(bar)
