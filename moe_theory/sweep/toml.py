"""Parse TOML, and find the line of an entry: tomllib does not say it, so parts of the text are parsed by themselves."""

import bisect
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from moe_theory.core.errors import InvalidSpecError, shortened

# Characters parsed in vain before the search gives up: some seconds, where values take thousands of lines.
LARGEST_SEARCH = 4_000_000

# tomllib takes minutes to parse keys of very many parts.
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){50}""")
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def parse(text: str, name: str) -> dict[str, Any]:
    """The entries of a TOML document. Raises: InvalidSpecError that begins with "NAME, line N: " for any other text."""
    if long := _LONG_KEY.search(text):
        line = len(_lines(text[: long.start()]))
        raise InvalidSpecError(f"{name}, line {line}: a key has more than 50 parts. Shorten it.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else len(_lines(text.rstrip()))
        reason = " ".join(_PLACE.sub("", str(error)).split())
        told = reason if len(reason) <= 200 else f"{reason[:200]}..."
        raise InvalidSpecError(f"{name}, line {line}: this is no TOML: {told}.") from None
    except RecursionError:
        line = _first_failing(text, RecursionError)
        raise InvalidSpecError(f"{name}, line {line}: values are nested too deeply. Flatten them.") from None
    except ValueError:  # Python refuses integers of some thousand digits
        line = _first_failing(text, ValueError)
        raise InvalidSpecError(f"{name}, line {line}: a number has too many digits. Shorten it.") from None


def line_of(text: str, key: Sequence[str]) -> int:
    """The line, from 1, on which the entry `key` of a TOML document begins. For a missing entry, the line of the
    innermost table around it that is there, or 1.
    """
    document = tomllib.loads(text)
    while key and not _holds(document, key):
        key = key[:-1]
    if not key:
        return 1
    lines = _lines(text)
    without, holding = 0, len(lines)  # numbers of lines: `key` is not in the first `without`, but in `holding`
    budget = LARGEST_SEARCH
    while holding - without > 1:
        for count in _between(without, holding):
            # The first `count` lines end with a whole entry if those after the first `without` do: less to parse.
            rest = "\n".join(("[rest]", *lines[without:count]))
            if _is_whole(rest):
                break
            budget -= len(rest)
            if budget < 0:
                return without + 1
        else:  # the entry takes all these lines
            break
        found = _holds(tomllib.loads("\n".join(lines[:count])), key)
        without, holding = (without, count) if found else (count, holding)
    return without + 1


def dotted(key: Sequence[str]) -> str:
    """A key as TOML writes it, unusual parts quoted and shortened."""
    return ".".join(part if _BARE.fullmatch(part) else shortened(part) for part in key)


def _between(low: int, high: int) -> Iterator[int]:
    """All whole numbers between both, some twice: near the middle first, then at powers of two from the lowest."""
    middle = (low + high) // 2
    yield from sorted(range(max(low + 1, middle - 2), min(high, middle + 3)), key=lambda count: abs(count - middle))
    yield from (low + 2**power for power in reversed(range((high - low - 1).bit_length())))
    yield from range(low + 1, high)


def _lines(text: str) -> list[str]:
    """The lines as TOML counts them, which knows fewer line breaks than Python."""
    return text.replace("\r\n", "\n").split("\n")


def _is_whole(text: str) -> bool:
    """Whether a text can be parsed by itself, so that it does not end inside an entry."""
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _holds(document: Any, key: Sequence[str]) -> bool:
    for part in key:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True


def _first_failing(text: str, kind: type[Exception]) -> int:
    """The line at which parsing first fails with exactly this kind of error."""
    lines = _lines(text)

    def fails(count: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:count]))
            return False
        except (ValueError, RecursionError) as error:
            return type(error) is kind

    return bisect.bisect_left(range(1, len(lines)), True, key=fails) + 1
