"""What `moe-theory tour` does, given its options."""

import contextlib
import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from moe_theory.commands import command_line, leave_threads, open_console, print_json
from moe_theory.core.errors import OutputError
from moe_theory.report import tour
from moe_theory.report.output import prepare_folder, write_text
from moe_theory.tour import steps
from moe_theory.tour.walk import Shown, take

SCRIPT, PAGE = "tour.py", "tour.html"
NEXT = {
    "moe-theory claims": "every statement that can be judged",
    "moe-theory verify continual --reading quick": "judge all of this paper's",
    "moe-theory figures continual": "the paper's figures, theory over runs",
}


def run_tour(options: Any) -> None:
    """Show the tour step by step; write its script, its pictures and its page.

    Raises: InvalidRunError for steps that there are not; OutputError for a folder that cannot take them, or holds a
        script that was changed; what a step raises, with the step named.
    """
    place = json.dumps(options.out.as_posix(), ensure_ascii=False)
    text = steps.with_values(steps.script(), OUT=f"Path({place})")
    if options.script:
        print(text, end="")  # noqa: T201
        return
    plan = steps.parse(text)
    wanted = steps.chosen(options.steps, len(plan) - 1)
    folder = prepare_folder(options.out, (SCRIPT, PAGE))
    write_script(folder / SCRIPT, text)
    console = open_console(to_stderr=options.json)
    taken = _walk(plan, wanted, folder, console)
    if options.json:
        print_json([shown.to_json() for shown in taken if shown.step.number])
    else:
        _close(console, taken, folder)


def write_script(path: Path, text: str) -> None:
    """Write the tour's script, unless the one that is there is another.

    Raises: OutputError then: it may be a reader's own.
    """
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        raise OutputError(
            f"{path} was changed, or is another version's, and is not overwritten: run it by `python {path}`, or name "
            "another --out."
        )
    write_text(path, text)


def _walk(plan: Sequence[steps.Step], wanted: range, folder: Path, console: Console) -> list[Shown]:
    """Take the steps up to the last one wanted, with a page that grows; what is before the first is not shown."""
    import matplotlib

    from moe_theory.runs.compilation import keep_programs

    keep_programs(folder / "programs")
    taken: list[Shown] = []
    count, namespace, script = len(plan) - 1, {"__name__": "tour"}, folder / SCRIPT
    with matplotlib.rc_context():
        matplotlib.use("agg")  # pictures go into files
        for step in plan[: wanted[-1] + 1]:
            is_shown = step.number == 0 or step.number in wanted
            if is_shown:
                tour.announce(console, step, count)
            try:
                with _working(console, f"step {step.number} of {count} runs" if step.number else "getting ready"):
                    shown = take(step, namespace, script, folder)
            except KeyboardInterrupt:
                leave_threads(f"interrupted in step {step.number}; what the steps before it made is kept in {folder}")
            if is_shown:
                taken.append(shown)
                tour.show(console, shown)
                write_text(folder / PAGE, tour.to_html(taken, command_line(), script))
    return taken


@contextlib.contextmanager
def _working(console: Console, what: str) -> Iterator[None]:
    """A line that says what is at work, and for how long; nothing where there is no terminal to take it away again."""
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    fixed = Console(file=console.file)  # a step's own output is caught, which must not catch this line
    with Progress(*columns, console=fixed, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        progress.add_task(what, total=None)
        yield


def _close(console: Console, taken: Sequence[Shown], folder: Path) -> None:
    seconds = sum(shown.seconds for shown in taken)
    lines = [
        "",
        f"{len(taken) - 1} steps in {seconds:.0f} s",
        f"page: {folder / PAGE}",
        "",
        "next:",
        f"  python {shlex.quote(str(folder / SCRIPT))}: the same script, for you to change; also a notebook",
        *(f"  {command}: {purpose}" for command, purpose in NEXT.items()),
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
