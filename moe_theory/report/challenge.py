"""What a search of a statement's free region has found, for a terminal and as JSON."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from moe_theory.core.constraints import shown
from moe_theory.plot.symbols import plain
from moe_theory.report.document import Document, ruled
from moe_theory.report.wording import sentence
from moe_theory.verify.challenge import Challenge, Looked

_FLIPPED = {"break": "breaks", "rescue": "is rescued"}
_UNFLIPPED = {"break": "unbroken", "rescue": "not rescued"}


def document(found: Challenge) -> Document:
    """The search: flips with their verdicts, its axes, and what it covered."""
    return Document(found.to_json, lambda _: _parts(found))


def _parts(found: Challenge) -> Iterator[RenderableType]:
    yield f"{found.where} ({found.statement}), reading {found.reading}: {headline(found)}"
    for flip in found.flips:
        for verdict in flip.verdicts:
            yield f"  {verdict.status} at {_place(flip.setting)}: {plain(sentence(verdict))}"
            yield f"  repeat: {verdict.command}"
    yield ruled(("free", "region", "recorded", "searched"), ((*row.values(),) for row in rows(found)), whole=("free",))
    yield covered(found)
    yield f"Probability that any flip is false: at most {found.error:g}; that none is found proves nothing."
    yield f"again: {found.command}"


def headline(found: Challenge) -> str:
    """Whether it flips, and where."""
    if not found.flips:
        return f"{_UNFLIPPED[found.sought]} at {found.settings} settings"
    return " and ".join(f"{_FLIPPED[found.sought]} at {_place(flip.setting)}" for flip in found.flips)


def covered(found: Challenge) -> str:
    """What the search covered, and what came nearest."""
    is_told = found.nearest.setting and not found.flips
    near = f"; nearest {_place(found.nearest.setting)}, {_distance(found.nearest)}" if is_told else ""
    return (
        f"{found.settings} settings and {found.shapes} shapes of programs ({found.inadmissible} more settings are not "
        f"admissible) in {found.seconds:g} s; the recorded point is {_distance(found.recorded)}{near}."
    )


def rows(found: Challenge) -> list[dict[str, str]]:
    """A row for each axis: its region, what is recorded, and what became of it."""
    return [
        {"free": each.name, "region": each.region, "recorded": each.recorded, "searched": _axis(found, each.name)}
        for each in found.free
    ]


def _axis(found: Challenge, name: str) -> str:
    said = [_border(flip.setting[name], flip.borders.get(name)) for flip in found.flips if name in flip.setting]
    return "; ".join(said) or ("either end alone changes nothing" if name in found.idle else "")


def _border(value: Any, border: list[Any] | None) -> str:
    return f"flips at {_said(value)}" + (
        f", border between {_said(border[0])} and {_said(border[1])}" if border else ""
    )


def _place(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_said(value)}" for name, value in setting.items()) or "the recorded point"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def _distance(looked: Looked) -> str:
    return f"{abs(looked.violation):.2g} margins {'beyond' if looked.violation > 0 else 'within'} what is allowed"
