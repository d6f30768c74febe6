"""What a search of a statement's free region has found, in words."""

from collections.abc import Sequence

from moe_theory.verification.challenged import Challenge, Looked, placed
from moe_theory.verification.status import Judged, StatementStatus
from moe_theory.verification.verdict import FreeQuantity

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
    """What the search covered."""
    counts = f"{_count(search.settings, 'setting')} and {_count(search.shapes, 'shape')} of programs"
    return f"{counts} ({search.inadmissible} more are not admissible) in {search.seconds:g} s."


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


def left_free(axes: Sequence[FreeQuantity]) -> str:
    """What is left free: where it is recorded, and from where to where it is free."""
    return ", ".join(f"{axis.name} {axis.recorded} ({axis.region})" for axis in axes)


def _near(point: Looked) -> str:
    margins = f"{abs(point.violation):.2g}"
    side = "beyond" if point.violation > 0 else "within"
    return f"{placed(point.setting)}, {margins} margin{'s' * (margins != '1')} {side} what is allowed"
