"""Printing and exit codes of all commands."""

import contextlib
import json
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.plot.document import Document

DONE = 0
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
UNREAD = 141
EXITS = {
    DONE: "the command ran, whatever the verdicts",
    FAILED: "the input ended at a question",
    BAD_INPUT: "the request is invalid, and standard error says what to change",
    INTERRUPTED: "the command was interrupted (Ctrl-C, SIGTERM), and one line says what is saved",
    UNREAD: "the program that reads the output has ended, as after `| head -1`",
}
JSON = "moe_theory.json"  # key in Click's `meta` for whether the command has --json
LONGEST_LINE = 2_000  # characters in an error message
MOST_DAMAGED = 5  # damaged files to name
_LOG_WIDTH = 160  # characters in a line of a log or a pipe, unless COLUMNS is set


def brief(text: str) -> str:
    """Return a message, cut in the middle if it has more than `LONGEST_LINE` characters."""
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[: LONGEST_LINE // 2]} ... {text[-LONGEST_LINE // 2 :]}"


def wants_json() -> bool:
    """Return whether the command has --json, so that standard output has nothing but the document."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(JSON, False)


def open_console() -> "Console":
    """Return a console without markup, on standard output, or with --json on standard error."""
    from rich.console import Console

    console = Console(stderr=wants_json(), markup=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = _LOG_WIDTH
    return console


def print_lines(console: "Console", *lines: object) -> None:
    """Print plain lines. The terminal wraps them, so paths stay whole."""
    for line in lines:
        console.print(str(line), highlight=False, soft_wrap=True)


def damaged_lines(damaged: Mapping[str, str]) -> list[str]:
    return [f"damaged, computed again: {name}: {damaged[name]}" for name in list(damaged)[:MOST_DAMAGED]]


def show_document(document: "Document") -> None:
    console = open_console()
    if wants_json():
        click.echo(json.dumps(document.to_json(), indent=2))
    else:
        _print_markdown(console, document.text(console.width))
        if document.verdicts is not None:
            from moe_theory.report.verdicts import verdicts_text  # few documents need it

            _print_markdown(console, verdicts_text(document.verdicts, console.width))


def _print_markdown(console: "Console", text: str) -> None:
    from rich.text import Text

    from moe_theory.plot.markdown import terminal

    with console.capture() as captured:
        for part in terminal(text):
            # Lines in a pipe and lines with a path or a command stay whole. A terminal wraps them.
            is_whole = isinstance(part, Text) and (part.no_wrap or not console.is_terminal)
            console.print(part, highlight=False, soft_wrap=is_whole)
    console.file.write(re.sub(r" +(?=\n)", "", captured.get()))  # without the spaces that fill lines


def command_line() -> str:
    return shlex.join(["moe-theory", *sys.argv[1:]])


def refuse(failure: Exception) -> NoReturn:
    click.echo(f"moe-theory: {brief(' '.join(str(failure).split()))}", err=True)
    raise SystemExit(BAD_INPUT)


def discard(*streams: IO[str] | None) -> None:
    """Discard unwritten output of streams that cannot be written. Otherwise Python complains at exit."""
    for stream in streams:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def stop(reason: str, code: int = INTERRUPTED) -> NoReturn:
    click.echo(f"moe-theory: {reason}", err=True)
    raise SystemExit(code) from None


def stop_at_once(reason: str) -> NoReturn:
    """Exit like `stop`, but without waiting for threads that are still working."""
    if threading.active_count() == 1:  # nothing to wait for
        stop(reason)
    click.echo(f"moe-theory: {reason}", err=True)
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM end a run like Ctrl-C, for batch systems. Yields a function that tells whether a signal came."""
    received: list[int] = []

    def interrupt(number: int, _: Any) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield lambda: False
        return
    handlers = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
