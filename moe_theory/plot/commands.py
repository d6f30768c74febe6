"""Commands of papers, which are made from signatures of functions.

A positional-only parameter becomes an argument of the command. Other parameters become options.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console


class Option(NamedTuple):
    """Help for a command's parameter, as in `servers: Annotated[int, Option("Number of servers.")] = 3`.

    On a return type it is the help for `--json`.
    """

    help: str
    names: tuple[str, ...] = ()  # such as ("--servers",). By default the parameter's name with hyphens
    metavar: str | None = None  # name of the value in help, such as FILE
    default: float | str | None = None  # default that help shows if the parameter's own default is None
    default_words: str = ""  # the default in words, if it is not a value


class Terminal(NamedTuple):
    """A parameter through which a command reports while it works. It is not an option.

    In Python use `Terminal(Console(), print, "")`, with Rich's Console.
    """

    console: "Console"
    say: Callable[..., None]  # prints each argument as a plain line
    command: str  # the line that repeats the command


class Interruption(KeyboardInterrupt):
    """An interrupt with a line on what is saved."""


def option_of(hint: Any) -> Option:
    """Return the first `Option` in an `Annotated` hint, or one without help."""
    options = (part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Option))
    return next(options, Option(""))
