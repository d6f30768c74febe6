"""Commands of papers: functions whose signatures become commands.

A positional-only parameter is an argument of the command, others are options.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console


class Option(NamedTuple):
    """Help on a parameter of a command, as in `servers: Annotated[int, Option("Number of servers.")] = 3`.

    On a return type it is help on `--json`.
    """

    help: str
    names: tuple[str, ...] = ()  # such as ("--servers",); by default the parameter's, with hyphens
    metavar: str | None = None  # the value in help, such as FILE
    default: float | str | None = None  # the value that help shows where the parameter's default is None
    default_words: str = ""  # the default in words, where it is no value

    def names_of(self, parameter: str) -> tuple[str, ...]:
        return self.names or (f"--{parameter.replace('_', '-')}",)


class Terminal(NamedTuple):
    """Place where a command reports while it works, and no option.

    In Python use `Terminal(Console(), print, "")`, with Rich's Console.
    """

    console: "Console"
    say: Callable[..., None]  # prints plain lines, each an argument
    command: str  # the line that repeats the command


class Interruption(KeyboardInterrupt):
    """An interrupt, with a line on what is saved."""


def option_of(hint: Any) -> Option:
    options = (part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Option))
    return next(options, Option(""))
