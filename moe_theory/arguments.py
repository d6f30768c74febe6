"""Arguments of a command read into its options, by tyro; a mistake is one line that says what to change."""

import contextlib
import difflib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from moe_theory.core.errors import InvalidArgumentsError, shortened

CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
WIDEST = 100  # columns of a paragraph of help
_PLACE = "(description)"  # where tyro's help has it
_EXAMPLE = re.compile(r"\bExample: (moe-theory .+)")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"-\.?\d")
_WORDS = {
    "INT": "a whole number",
    "INT...": "whole numbers",
    "FLOAT": "a number",
    "FLOAT...": "numbers",
}


def read(kind: type, prog: str, arguments: Sequence[str]) -> Any:
    """The options that the arguments give a command; prints its help and exits with code 0 where they ask for that.

    Args:
        kind: the dataclass of its options.
        prog: the command as it is called: "moe-theory verify".
    Raises: InvalidArgumentsError for an option there is not, a value that is none or a missing one.
    """
    if "--help" in arguments or "-h" in arguments:
        print(help_of(kind, prog))  # noqa: T201
        raise SystemExit(0)
    said = _Said("utf-8", is_terminal=False)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            return tyro.cli(kind, prog=prog, args=list(arguments), config=CONFIG)
    except SystemExit:
        raise InvalidArgumentsError(_complaint(kind, prog, list(arguments), _plain(said.getvalue()))) from None


def help_of(kind: type, prog: str) -> str:
    """A command's whole help: paragraphs no wider than the terminal, options in boxes by tyro."""
    output = sys.__stdout__
    said = _Said(output.encoding if output else "utf-8", is_terminal=output is not None and output.isatty())
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(said):
        tyro.cli(kind, prog=prog, description=_PLACE, args=["--help"], config=CONFIG)
    return said.getvalue().rstrip("\n").replace(_PLACE, _description(kind))


def _description(kind: type) -> str:
    """What the docstring says, with the examples in lines of their own after the first sentence."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    first, *others = _EXAMPLE.sub("", inspect.cleandoc(kind.__doc__ or "")).split("\n\n")
    examples = "\n".join(["Example:", *(f"  {example}" for example in examples_of(kind))])
    filled = [
        part.rstrip() if part.startswith("  ") else textwrap.fill(part, width, break_on_hyphens=False)
        for part in (first, *others)
        if part.strip()
    ]
    return "\n\n".join([filled[0], examples, *filled[1:]])


def title_of(kind: type) -> str:
    """What a command does, in the sentence that its help begins with."""
    first = (kind.__doc__ or "").partition("\n")[0]
    return first.partition(" Example: ")[0].strip()


def examples_of(kind: type) -> list[str]:
    """The commands that a command's help gives as examples."""
    return _EXAMPLE.findall(kind.__doc__ or "")


def flags_of(kind: type) -> list[str]:
    """The names of a command's options, with dashes, every alias too."""
    named = re.compile(r"-{1,2}[a-z][\w-]*(?: [^\s,]+)?")
    flags: list[str] = []
    for line in _ESCAPE.sub("", help_of(kind, "moe-theory")).splitlines():
        if options := re.match(rf"[│ ] ({named.pattern}(?:, {named.pattern})*)", line):
            flags += [each.split()[0] for each in named.findall(options[1])]
    return flags


def _complaint(kind: type, prog: str, arguments: list[str], said: str) -> str:
    """One line on what is wrong and what to change, given what tyro has to say of it."""
    if problem := _unknown_option(kind, prog, arguments):
        return problem
    where = f"`{prog} --help` says what it takes"
    for pattern, words in _COMPLAINTS:
        if found := re.search(pattern, said):
            return f"{words(found, prog, arguments)}; {where}."
    return f"{said.partition(' ─')[0].rstrip('.')}. Change it; {where}."


def _bad_value(found: re.Match[str], prog: str, arguments: list[str]) -> str:
    flag, metavar = found.groups()
    value = shortened(_given(flag, arguments))
    return f"{flag} {value} must be {_WORDS.get(metavar, metavar)}. Change {flag}"


def _lone_option(found: re.Match[str], prog: str, arguments: list[str]) -> str:
    return f"{found[1]} needs a value after it. Add one, or leave out {found[1]}"


def _missing(found: re.Match[str], prog: str, arguments: list[str]) -> str:
    return f"{_name(prog)} needs {found[1]}: {found[2].rstrip('.')}. Add it"


def _surplus(found: re.Match[str], prog: str, arguments: list[str]) -> str:
    return f"{_name(prog)} has no place for {shortened(found[1])}. Leave it out, or quote it"


# What tyro says, and what is said instead.
_COMPLAINTS: tuple[tuple[str, Callable[[re.Match[str], str, list[str]], str]], ...] = (
    (r"^Error parsing (--[\w-]+).*Argument helptext: .*?--[\w-]+ (\S+)", _bad_value),
    (r"^Missing value for argument .*?(-[\w-]+)", _lone_option),
    (r"^Missing from .*?: (\S+) (.*?) \(required\)", _missing),
    (r"^Unrecognized options: (.+?)(?: ─|$)", _surplus),
)


def _unknown_option(kind: type, prog: str, arguments: list[str]) -> str | None:
    known = flags_of(kind)
    for word in arguments[: arguments.index("--") if "--" in arguments else None]:
        option = word.partition("=")[0]
        if option.startswith("-") and not _NUMBER.match(option) and option.replace("_", "-") not in known:
            near = difflib.get_close_matches(option, known, n=1, cutoff=0.0)[0]
            return f"{_name(prog)} has no option {shortened(option)}. Did you mean {near}? `{prog} --help` lists all."
    return None


def _name(prog: str) -> str:
    return prog.removeprefix("moe-theory ")


def _given(flag: str, arguments: list[str]) -> str:
    """What follows the last mention of an option."""
    for place in reversed(range(len(arguments))):
        name, is_joined, value = arguments[place].partition("=")
        if name.replace("_", "-") == flag:
            rest = arguments[place + 1 :]
            ends = [end for end, word in enumerate(rest) if word.startswith("-") and not _NUMBER.match(word)]
            return value if is_joined else " ".join(rest[: ends[0] if ends else None])
    return ""


def _plain(box: str) -> str:
    """The words of what tyro draws in a box, without its title."""
    lines = [line.strip("│ ") for line in _ESCAPE.sub("", box).splitlines() if not line.lstrip().startswith(("╭", "╰"))]
    return " ".join(" ".join(lines).split())


class _Said(io.StringIO):
    """What is printed, drawn as for the place where it will be shown."""

    def __init__(self, encoding: str, is_terminal: bool) -> None:
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether lines of boxes can be drawn."""
        return self._encoding

    def isatty(self) -> bool:
        """Whether there are colours."""
        return self._is_terminal
