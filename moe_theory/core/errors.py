"""Errors that name the value, the bound, the reason and what to do."""

import difflib
import functools
import reprlib
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from moe_theory.core.fields import named_by

MOST_LISTED = 12  # known names in an error
Named = TypeVar("Named", bound=tuple[Any, ...])  # a NamedTuple


class MoeTheoryError(ValueError):
    """A mistake in the input. The message says what to do.

    Attributes:
        argument: the name of the wrong argument, or the kind of the wrong name, or an empty text.
    """

    def __init__(self, message: str, argument: str = "") -> None:
        super().__init__(message)
        self.argument = argument


class InvalidValueError(MoeTheoryError):
    """A value outside its bounds, or values that do not fit together."""


class UnknownNameError(MoeTheoryError):
    """A name that is not registered. Its kind is in `argument`."""


class MissingError(MoeTheoryError):
    """Saved results or a file that do not exist."""


class DamagedError(MoeTheoryError):
    """Saved results that cannot be read or joined with others."""


class OutputError(MoeTheoryError):
    """A place where results cannot be written."""


class WorkersError(MoeTheoryError):
    """Workers that cannot be reached, or that fail again and again."""


class DeclarationError(MoeTheoryError):
    """A wrong declaration of a paper, system, statement, claim or specification."""


class DataError(MoeTheoryError):
    """A data set's file that cannot be read or does not match its format."""

    def __init__(self, path: Path, reason: str, way_out: str = "Download it again from its publisher.") -> None:
        super().__init__(f"{path} is damaged: {reason}. {way_out}", "path")
        self.reason = reason


def unknown_name(kind: str, name: str, known_names: Iterable[str], params_type: type | None = None) -> UnknownNameError:
    """Return the error for a `name` that is not among the `known_names`, with similar ones suggested.

    `params_type` is a paper's `Params` or `Dims`. If `name` is a symbol of the paper, the error names the field for it.
    """
    known_names = sorted(set(known_names))
    unknown = f"unknown {kind} {shortened(name)}."
    field = "" if params_type is None else named_by(name, params_type)
    if field:
        restriction = "" if field in known_names else f", but that is no {kind} here"
        return UnknownNameError(f"{unknown} The paper's {name} is called {field}{restriction}.", kind)
    prefix = name[: name.find(".") + 1]  # such as "continual.". A common prefix does not make names similar
    if not any(candidate.startswith(prefix) for candidate in known_names):
        prefix = ""
    ends = [candidate.removeprefix(prefix) for candidate in known_names if candidate.startswith(prefix)]
    end = name.removeprefix(prefix)[:100]  # a comparison of long texts would take long
    near_ends = difflib.get_close_matches(end, ends, n=3, cutoff=0.51)  # more than half of the letters agree
    near = [prefix + near_end for near_end in near_ends]
    if name and not near:
        near = [candidate for candidate in known_names if candidate.startswith(name)][:3]
    question = enclosed("Did you mean ", next(map(repr, near), ""), "? ")
    more = f" and {len(known_names) - MOST_LISTED:,} more" if len(known_names) > MOST_LISTED else ""
    names = f"Known: {', '.join(known_names[:MOST_LISTED]) or 'none'}{more}."
    if near and more:
        names = f"Similar: {', '.join(near)}."
    return UnknownNameError(f"{unknown} {question}{names}", kind)


def require_parameters(names: Iterable[str], params: Any) -> None:
    """Raise InvalidValueError for a name that is not a field of a paper's `Params`, a NamedTuple."""
    for name in names:
        if name not in params._fields:
            raise InvalidValueError(str(unknown_name("parameter", name, params._fields, params)), argument=name)


def with_known_names(params: type[Named]) -> type[Named]:
    """Return a paper's `Params`, a NamedTuple, that refuses unknown names and suggests similar ones."""
    create: Any = params.__new__

    @functools.wraps(create)
    def create_checked(kind: type[Named], *values: Any, **named_values: Any) -> Named:
        require_parameters(named_values, params)
        return create(kind, *values, **named_values)

    params.__new__ = create_checked  # pyright: ignore
    return params


def shortened(value: Any) -> str:
    """Return a user's input for a message, escaped, in one line, and cut in the middle if long."""
    return " ".join(_BRIEF.repr(value).split())


def shown(value: Any) -> str:
    """Return the shortest text of a number that reads back as the same number."""
    text = str(value)
    if text in ("True", "False"):  # of Python or NumPy
        return text.lower()
    short = f"{value:.6g}"
    if float(short) == value:
        return short
    return repr(value)


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return shown(value)


def plural(number: int, noun: str) -> str:
    if number == 1:
        return noun
    return f"{noun}s"


def enclosed(before: str, text: object, after: str = "") -> str:
    if not text:
        return ""
    return f"{before}{text}{after}"


_LIBRARIES = {Path(__file__).parents[1], Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))}
OWN_CODE = (Exception, SystemExit)  # what a user's own code may raise, except Ctrl-C


def described(failure: BaseException) -> str:
    try:
        message = str(failure)
    except OWN_CODE:
        message = "its message cannot be read"
    return f"{type(failure).__name__}: {message}"


def frames(failure: BaseException) -> str:
    """Return where the user's code failed, such as " (my_claims.py, line 12: return ...)"."""
    stack = traceback.extract_tb(failure.__traceback__)
    files = [frame for frame in stack if frame.filename[0] != "<"]  # others have names such as "<string>"
    users = [frame for frame in files if _LIBRARIES.isdisjoint(Path(frame.filename).parents)]
    if not stack:
        return ""
    innermost = (users or stack)[-1]
    return f" ({Path(innermost.filename).name}, line {innermost.lineno}: {innermost.line})"


class _Brief(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:  # Python refuses to print integers of several thousand digits
        if abs(x) < 10**40:
            return repr(x)
        return "an integer of more than 40 digits"


_BRIEF = _Brief()
_BRIEF.maxstring = _BRIEF.maxother = 60
_BRIEF.maxlevel = 2
