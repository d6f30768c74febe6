"""What a search of a statement's free region has found, in words."""

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


def headline(search: Challenge, has_number: bool = True) -> str:
    """Whether it flips, and where."""
    if search.flips:
        return " and ".join(f"{_FLIPPED[search.sought]} at {placed(flip.setting)}" for flip in search.flips)
    words = _UNFLIPPED[search.sought]
    if has_number:
        words += f" at {_count(search.settings, 'setting')}"
    if not search.is_thorough:
        words += ", too few for the ends of all axes"
    if search.sought == "break" and search.nearest.violation > 0:
        words += f", though beyond its margin, undecided, at {placed(search.nearest.setting)}"
    return words


def clause(search: Challenge) -> str:
    """What the search found that restores the statement."""
    restoring = search.clause
    if restoring is None:
        return "No clause of two inequalities was found under which it holds."
    nearest = _near(restoring.nearest)
    return f"It holds for {restoring.words}: unbroken at {restoring.settings} settings, nearest {nearest}."


def covered(search: Challenge) -> str:
    """What the search covered, and what came nearest."""
    has_nearest = search.nearest.setting and not search.flips
    nearest = f"; nearest {_near(search.nearest)}" if has_nearest else ""
    counts = f"{_count(search.settings, 'setting')} and {_count(search.shapes, 'shape')} of programs"
    return (
        f"{counts} ({search.inadmissible} more are not admissible) in {search.seconds:g} s; the recorded point is "
        f"{_distance(search.recorded)}{nearest}."
    )


def axis_rows(search: Challenge) -> list[tuple[str, str, str, str]]:
    """A row for each free quantity: its region, where it is recorded, and where the statement flips along it."""
    return [(axis.name, axis.region, axis.recorded, _flips_along(search, axis.name)) for axis in search.free]


def _flips_along(search: Challenge, name: str) -> str:
    phrases = []
    for flip in search.flips:
        if name in flip.setting:
            border = flip.borders.get(name)
            between = f", border between {said(border[0])} and {said(border[1])}" if border else ""
            phrases.append(f"flips at {said(flip.setting[name])}{between}")
    if not phrases and name in search.idle:
        return "either end alone changes nothing"
    return "; ".join(phrases)


def bars(search: Challenge) -> list[str]:
    """A bar an axis: where it is recorded, ●, and from where to where it flips, ×."""
    return [_bar(search, axis) for axis in search.free]


def _bar(search: Challenge, axis: FreeQuantity) -> str:
    flips = [flip for flip in search.flips if axis.name in flip.setting]
    note = " (alone changes nothing)" if axis.name in search.idle and not flips else ""
    if not axis.ends:
        flipped = {flip.setting[axis.name] for flip in flips}
        labels = (label + " ●" * (label == axis.recorded) + " ×" * (label in flipped) for label in axis.labels)
        return f"{axis.name} {' | '.join(labels)}{note}"
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


def summed(search: Challenge, has_amendment: bool = False) -> str:
    """The search in a sentence or two; a statement that declares its own clause is not given the search's as well."""
    has_nearest = search.nearest.setting and not search.flips
    nearest = f", nearest at {placed(search.nearest.setting)}" if has_nearest else ""
    counts = f"{_count(search.settings, 'setting')}, {_count(search.shapes, 'shape')}"
    head = f"{counts}, reading {search.reading}: {headline(search, False)}{nearest}."
    return f"{head} {clause(search)}" if search.flips and not has_amendment else head


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def over_region(judgement: Judged) -> str:
    """What a status owes to its region, to follow it: nothing where no region is declared."""
    search = judgement.search
    if search is None:
        if not judgement.statement.free:
            return ""
        is_false = judgement.finding is not None and judgement.finding.status is StatementStatus.FALSE
        has_disproof = is_false and judgement.statement.disproof
        return "; no rescue searched" if has_disproof else "; at the paper's settings only"
    before = "false as recorded, " if search.sought == "rescue" and search.flips else ""
    return f"; {before}{headline(search)}"


def left_free(statement: Statement) -> str:
    """What a statement leaves free that was not searched: where it is recorded, and from where to where it is free."""
    return ", ".join(f"{axis.name} {axis.recorded} ({axis.region})" for axis in statement.free)


def orders_of(statement: Statement) -> str:
    """The orders that the paper asks for, of a statement that leaves some of them free."""
    orders = catalog_of(statement.paper).orders if statement.paper in paper_names() else {}
    names = {f"{name}_order" for name in orders}
    if not any(axis.name in names for axis in statement.free):
        return ""
    return plain(", ".join(f"{name} {symbol}(sigma_0^{power:g})" for name, (symbol, power) in orders.items()))


def _near(point: Looked) -> str:
    return f"{placed(point.setting)}, {_distance(point)}"


def _distance(point: Looked) -> str:
    margins = f"{abs(point.violation):.2g}"
    side = "beyond" if point.violation > 0 else "within"
    return f"{margins} margin{'s' * (margins != '1')} {side} what is allowed"
