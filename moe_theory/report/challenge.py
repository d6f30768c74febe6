"""What a search of a statement's free region has found, in words."""

from typing import Any

from moe_theory.core.errors import shown
from moe_theory.core.papers import paper_names
from moe_theory.plot.symbols import plain
from moe_theory.verification.catalog import catalog_of
from moe_theory.verification.challenged import Challenge, Looked, placed, said
from moe_theory.verification.span import Span
from moe_theory.verification.status import Judged, StatementStatus
from moe_theory.verification.verdict import FreeQuantity, Statement

CELLS = 8  # of a bar
_FLIPPED = {"break": "breaks", "rescue": "is rescued"}
_UNFLIPPED = {"break": "unbroken", "rescue": "not rescued"}


def headline(found: Challenge, has_number: bool = True) -> str:
    """Whether it flips, and where."""
    if not found.flips:
        number = f" at {_counted(found.settings, 'setting')}" if has_number else ""
        is_beyond = found.sought == "break" and found.nearest.violation > 0
        beyond = f", though beyond its margin, undecided, at {placed(found.nearest.setting)}" if is_beyond else ""
        short = "" if found.is_thorough else ", too few for the ends of all axes"
        return f"{_UNFLIPPED[found.sought]}{number}{short}{beyond}"
    return " and ".join(f"{_FLIPPED[found.sought]} at {placed(flip.setting)}" for flip in found.flips)


def clause(found: Challenge) -> str:
    """What the search found that restores the statement."""
    if found.clause is None:
        return "No clause of two inequalities was found under which it holds."
    inside = found.clause
    return f"It holds for {inside.words}: unbroken at {inside.settings} settings, nearest {_near(inside.nearest)}."


def covered(found: Challenge) -> str:
    """What the search covered, and what came nearest."""
    is_told = found.nearest.setting and not found.flips
    near = f"; nearest {_near(found.nearest)}" if is_told else ""
    counts = f"{_counted(found.settings, 'setting')} and {_counted(found.shapes, 'shape')} of programs"
    return (
        f"{counts} ({found.inadmissible} more are not admissible) in {found.seconds:g} s; the recorded point is "
        f"{_distance(found.recorded)}{near}."
    )


def axis_rows(found: Challenge) -> list[tuple[str, str, str, str]]:
    """A row for each free quantity: its region, where it is recorded, and where the statement flips along it."""
    return [(each.name, each.region, each.recorded, _axis(found, each.name)) for each in found.free]


def _axis(found: Challenge, name: str) -> str:
    told = [_border(flip.setting[name], flip.borders.get(name)) for flip in found.flips if name in flip.setting]
    return "; ".join(told) or ("either end alone changes nothing" if name in found.idle else "")


def _border(value: Any, border: list[Any] | None) -> str:
    return f"flips at {said(value)}" + (f", border between {said(border[0])} and {said(border[1])}" if border else "")


def bars(found: Challenge) -> list[str]:
    """A bar an axis: where it is recorded, ●, and from where to where it flips, ×."""
    return [_bar(found, each) for each in found.free]


def _bar(found: Challenge, axis: FreeQuantity) -> str:
    flips = [flip for flip in found.flips if axis.name in flip.setting]
    note = " (alone changes nothing)" if axis.name in found.idle and not flips else ""
    if not axis.ends:
        flipped = {flip.setting[axis.name] for flip in flips}
        own = (label + " ●" * (label == axis.recorded) + " ×" * (label in flipped) for label in axis.labels)
        return f"{axis.name} {' | '.join(own)}{note}"
    span = Span(*axis.ends)
    cells = ["─"] * CELLS

    def cell(value: float) -> int:
        return min(max(int(span.place(value) * CELLS), 0), CELLS - 1)

    for flip in flips:
        value = flip.setting[axis.name]
        first, last = sorted((cell(flip.borders.get(axis.name, [value, value])[1]), cell(value)))
        cells[first : last + 1] = "×" * (last + 1 - first)
    for value in axis.recorded_values:
        if axis.ends[0] <= value <= axis.ends[1]:
            cells[cell(value)] = "●"
    low, high = map(shown, axis.ends)
    return f"{axis.name} {low} {''.join(cells)} {high}{note}"


def summed(found: Challenge, has_amendment: bool = False) -> str:
    """The search in a sentence or two; a statement that declares its own clause is not given the search's as well."""
    near = "" if found.flips or not found.nearest.setting else f", nearest at {placed(found.nearest.setting)}"
    counts = f"{_counted(found.settings, 'setting')}, {_counted(found.shapes, 'shape')}"
    head = f"{counts}, reading {found.reading}: {headline(found, False)}{near}."
    return f"{head} {clause(found)}" if found.flips and not has_amendment else head


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def over_region(known: Judged) -> str:
    """What a status owes to its region, to follow it: nothing where no region is declared."""
    if known.search is None:
        if not known.statement.free:
            return ""
        is_false = known.finding is not None and known.finding.status is StatementStatus.FALSE
        return "; no rescue searched" if is_false and known.statement.disproof else "; at the paper's settings only"
    before = "false as recorded, " if known.search.sought == "rescue" and known.search.flips else ""
    return f"; {before}{headline(known.search)}"


def left_free(of: Statement) -> str:
    """What a statement leaves free that was not searched: where it is recorded, and from where to where it is free."""
    return ", ".join(f"{each.name} {each.recorded} ({each.region})" for each in of.free)


def orders_of(of: Statement) -> str:
    """The orders that the paper asks for, of a statement that leaves some of them free."""
    orders = catalog_of(of.paper).orders if of.paper in paper_names() else {}
    names = {f"{name}_order" for name in orders}
    if not any(each.name in names for each in of.free):
        return ""
    return plain(", ".join(f"{name} {symbol}(sigma_0^{power:g})" for name, (symbol, power) in orders.items()))


def _near(looked: Looked) -> str:
    return f"{placed(looked.setting)}, {_distance(looked)}"


def _distance(looked: Looked) -> str:
    margins = f"{abs(looked.violation):.2g}"
    side = "beyond" if looked.violation > 0 else "within"
    return f"{margins} margin{'s' * (margins != '1')} {side} what is allowed"
