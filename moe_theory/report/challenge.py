"""Words for the results of a search of free parameters."""

from collections.abc import Sequence

from moe_theory.core.errors import plural
from moe_theory.verification.challenged import Challenge, placed
from moe_theory.verification.status import Judged
from moe_theory.verification.verdict import FreeQuantity

# Words for a search that breaks a statement, and for one that rescues it.
_FLIPPED = {"break": "fails", "rescue": "holds"}
_UNFLIPPED = {"break": "no counterexample", "rescue": "not found to hold"}
_NOTHING = {"break": "none where the test fails", "rescue": "none where it holds"}


def headline(search: Challenge) -> str:
    if search.flips:
        return " and ".join(f"{_FLIPPED[search.sought]} at {placed(flip.setting)}" for flip in search.flips)
    words = f"{_UNFLIPPED[search.sought]} at {_count(search.settings, 'setting')}"
    if not search.is_thorough:
        words += ", too few for the ends of all axes"
    if search.sought == "break" and search.nearest.violation > 0:
        words += f", but beyond its margin and undecided at {placed(search.nearest.setting)}"
    return words


def clause(search: Challenge) -> str:
    restoring = search.clause
    if restoring is None:
        return "No condition of two inequalities was found under which it holds."
    nearest = restoring.nearest
    distance = f"{abs(nearest.violation):.2g}"
    margins = f"{distance} margins"
    if distance == "1":
        margins = "1 margin"
    side = "outside" if nearest.violation > 0 else "inside"
    return (
        f"For {restoring.words} no counterexample was found in {restoring.settings} settings. The closest is "
        f"{placed(nearest.setting)}, {margins} {side} the allowed range."
    )


def search_coverage(search: Challenge) -> str:
    counts = f"{_count(search.settings, 'setting')} and {_count(search.shapes, 'array shape')}"
    return f"{counts} ({search.inadmissible} more are not admissible) in {search.seconds:g} s."


def _count(number: int, noun: str) -> str:
    return f"{number} {plural(number, noun)}"


def search_sentence(judgement: Judged) -> str:
    search = judgement.search
    if search is None:
        if judgement.statement.free:
            return "Tested at the paper's settings only."
        return ""
    searched = f"A search of {_count(search.settings, 'setting')}"
    places = " and ".join(placed(flip.setting) for flip in search.flips)
    if not places:
        return f"{searched} found {_NOTHING[search.sought]}."
    return f"{searched} found where it {_FLIPPED[search.sought]}: {places}."


def free_parameters(axes: Sequence[FreeQuantity]) -> str:
    return ", ".join(f"{axis.name} {axis.recorded} ({axis.region})" for axis in axes)
