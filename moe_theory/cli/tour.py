"""`moe-theory tour`."""

import contextlib
import json
import re
import shlex
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moe_theory.cli.options import examples, json_option, out_option
from moe_theory.cli.output import command_line, open_console, print_lines, show_document, stop_at_once, wants_json
from moe_theory.core.errors import InvalidRunError, OutputError

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.tour.steps import Result, TourStep

SCRIPT, PAGE = "tour.py", "tour.html"
NEXT = {
    "moe-theory claims": "every statement that can be judged",
    "moe-theory verify continual --reading quick": "judge all of this paper's",
    "moe-theory figures continual": "the paper's figures, theory over runs",
}


@click.command(epilog=examples("moe-theory tour --steps 1-4"))
@click.option(
    "--steps",
    "asked",
    metavar="A-B",
    help="Steps to show, such as 4 or 1-4; what they need of earlier ones is computed first.",
    show_default="all",
)
@out_option("Folder for the script, the pictures and the page.", "runs/tour")
@click.option(
    "--pause/--no-pause",
    "pauses",
    default=None,
    help="Wait for a key after each step, and at the end to open the page.",
    show_default="in a terminal",
)
@click.option("--script", "only_script", is_flag=True, help="Only print the script.")
@json_option("a list of the steps, each with step (its number), title, seconds, pictures, numbers and output.")
def tour(asked: str | None, out: Path, pauses: bool | None, only_script: bool) -> None:
    """A guided tour: from one trajectory to a verdict.

    Shows ten steps of words, code and its output, one after another, in a minute or two; code that draws is left out.
    Writes into OUT the script (tour.py, for you to change; also a notebook), the pictures, and one page of everything,
    tour.html.
    """
    from moe_theory.report.document import Document
    from moe_theory.runs.files import prepare_folder, write_whole
    from moe_theory.runs.reading import read_bytes
    from moe_theory.tour import steps

    place = json.dumps(out.as_posix(), ensure_ascii=False)
    text = steps.with_value(steps.script(), "OUT", f"Path({place})")
    if only_script:
        click.echo(text, nl=False)
        return
    plan = steps.parse(text)
    wanted = _chosen(asked, len(plan) - 1)
    folder = prepare_folder(out, (SCRIPT, PAGE))
    script = folder / SCRIPT
    if script.is_file() and read_bytes(script) != text.encode():
        raise OutputError(
            f"{script} was changed, or is another version's, and is not overwritten: run it by `python {script}`, or "
            "name another --out."
        )
    write_whole(script, text)
    console = open_console()
    is_watched = sys.stdin.isatty() and console.is_terminal and not wants_json()
    waits = is_watched if pauses is None else pauses
    taken = _walk(plan, wanted, script, console, waits)
    lines = (
        f"\n{len(taken) - 1} steps in {sum(result.seconds for result in taken):.0f} s",
        f"page: {folder / PAGE}",
        "\nnext:",
        f"  python {shlex.quote(str(script))}: the same script, for you to change; also a notebook",
        *(f"  {command}: {purpose}" for command, purpose in NEXT.items()),
    )
    show_document(Document(lambda: [result.to_json() for result in taken if result.step.number], lambda _: lines))
    if waits and not wants_json() and _is_wanted(console, "\nEnter opens the page, q ends"):
        webbrowser.open((folder / PAGE).resolve().as_uri())


def _chosen(text: str | None, count: int) -> range:
    if text is None:
        return range(1, count + 1)
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= count:
        raise InvalidRunError(f"steps={text!r} must be a step or a range of steps from 1 to {count}, such as 4 or 1-4.")
    return range(first, last + 1)


def _walk(plan: "Sequence[TourStep]", wanted: range, script: Path, console: "Console", pauses: bool) -> "list[Result]":
    import matplotlib

    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import write_whole
    from moe_theory.tour import steps

    folder = script.parent
    keep_programs(fallback=folder / "programs")
    taken: list[Result] = []
    namespace = {"__name__": "tour"}
    with matplotlib.rc_context():
        matplotlib.use("agg")  # pictures go into files
        for step in plan[: wanted[-1] + 1]:
            place = f"{step.number} of {len(plan) - 1}"
            is_shown = step.number == 0 or step.number in wanted
            if is_shown:
                _announce(console, step, f"{place}: {step.title}" if step.number else step.title)
            try:
                with _working(console, f"step {place} runs" if step.number else "getting ready"):
                    result = steps.run(step, namespace, script, folder)
            except KeyboardInterrupt:
                stop_at_once(f"interrupted in step {step.number}; what the steps before it made is kept in {folder}")
            if is_shown:
                taken.append(result)
                for line in result.output.splitlines():
                    console.print(line, style="bold", highlight=False, soft_wrap=True)
                print_lines(console, *(f"picture: {path}" for path in result.pictures))
                write_whole(folder / PAGE, steps.to_html(taken, command_line(), script))
            is_between = step.number in wanted[:-1]
            if pauses and is_between and not _is_wanted(console, f"\nEnter goes on to step {step.number + 1}, q ends"):
                break
    return taken


def _is_wanted(console: "Console", prompt: str) -> bool:
    """Whether the answer to a prompt is a line other than q; an end of the input is none."""
    console.print(prompt, style="dim", end=" ", highlight=False)
    try:
        return input().strip().lower() not in {"q", "quit", "n"}
    except (EOFError, KeyboardInterrupt):
        return False


def _announce(console: "Console", step: "TourStep", heading: str) -> None:
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.syntax import Syntax

    console.print("", Rule(heading, align="left", style="dim"), Markdown(step.words), "", sep="\n")
    for computing in filter(None, (cell.parts()[0] for cell in step.cells)):
        code = Syntax(computing, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        console.print(Padding(code, (0, 0, 1, 2)))


@contextlib.contextmanager
def _working(console: "Console", what: str) -> Iterator[None]:
    """A line that says what is at work, and for how long; nothing where there is no terminal to take it away again."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    fixed = Console(file=console.file)  # a step's own output is caught, which must not catch this line
    with Progress(*columns, console=fixed, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        progress.add_task(what, total=None)
        yield
