"""Claims and readings by name: of the installed papers, and of those that users bring along."""

import fnmatch
import re
from collections.abc import Mapping, Sequence

from moe_theory.core.errors import unknown_name
from moe_theory.core.papers import Paper, all_papers, find_paper, paper_names, paper_package, paper_place
from moe_theory.core.readings import Reading
from moe_theory.verify.claim import Claim, ReadingLike, registered

SPECIAL_NAMES = ("all", "quick")

_OWN_PAPERS: dict[str, Paper] = {}  # that users bring along without installing them


def add_readings(paper: str, readings: Mapping[str, Reading]) -> None:
    """Give a paper that is not installed its readings, all of which are its defaults."""
    _OWN_PAPERS[paper] = Paper(paper, package="", title=paper, readings=readings)


def all_claims() -> dict[str, Claim]:
    """Every claim of every paper, and those that the user's own modules have declared, by id, paper after paper.

    Examples:
        >>> from moe_theory import verify
        >>> verify.all_claims()["continual.lemma-4"].where
        'Lemma 4'
    """
    for paper in all_papers().values():
        paper.import_claims()
    return declared_claims()


def claims() -> list[Claim]:
    """Every claim there is, in order of declaration.

    Examples:
        >>> import moe_theory as mt
        >>> {claim.paper for claim in mt.claims()} >= {"continual", "edge", "generalization", "merging", "deep"}
        True
    """
    return list(all_claims().values())


def declared_claims() -> dict[str, Claim]:
    """The claims of the papers that have been imported so far, and the user's own, by id, paper after paper."""
    places = {paper: paper_place(paper) for paper in {claim.paper for claim in registered().values()}}
    claims = sorted(registered().values(), key=lambda claim: (places[claim.paper], not is_of_a_paper(claim)))
    return {claim.id: claim for claim in claims}


def select_claims(patterns: Sequence[str] = ("*",)) -> list[Claim]:
    """The claims whose ids match any of `patterns`: an id, a glob, a paper's name for all of it, or PAPER:TIER.

    Only papers that a pattern can name are imported.

    Raises: UnknownNameError for a pattern that matches nothing, with the nearest id suggested.

    Examples:
        >>> from moe_theory import verify
        >>> [claim.id for claim in verify.select_claims(["generalization.lemma-6.g*"])]
        ['generalization.lemma-6.growth']
    """
    chosen: set[str] = set()
    for pattern in patterns:
        for paper in _papers_named(pattern):
            find_paper(paper).import_claims()
        matches = _matching(pattern, declared_claims()) or _matching(pattern, all_claims())
        if not matches:
            tiers = {tier_of(claim) for claim in claims()}
            raise unknown_name("claim", pattern, [*all_claims(), *paper_names(), *tiers])
        chosen.update(matches)
    return [claim for id, claim in declared_claims().items() if id in chosen]


def is_of_a_paper(claim: Claim) -> bool:
    """Whether an installed paper declares a claim, and not the user's own module."""
    return any(f"{claim.module}.".startswith(f"{paper_package(name)}.") for name in paper_names())


def tier_of(claim: Claim) -> str:
    """PAPER:TIER, the name of the claims of a paper whose runs cost about the same."""
    return f"{claim.paper}:{claim.experiment.tier}"


def readings_of(paper: str) -> Mapping[str, ReadingLike]:
    """A paper's readings by name; none for a paper that nobody has given any."""
    known = _known_paper(paper)
    return {} if known is None else known.readings


def readings_by_paper(papers: Sequence[str], names: Sequence[str] | None) -> dict[str, list[ReadingLike]]:
    """For each paper those of the named readings that it has; its defaults for None.

    Raises: UnknownNameError for a name that none of the papers has, with the nearest suggested.
    """
    known = {paper: {*readings_of(paper), *SPECIAL_NAMES} for paper in papers}
    for name in names or ():
        if not any(name in own for own in known.values()):
            raise unknown_name("reading", name, set().union(*known.values()))
    return {
        paper: select_readings(paper, None if names is None else [name for name in names if name in known[paper]])
        for paper in papers
    }


def select_readings(paper: str, names: Sequence[str] | None) -> list[ReadingLike]:
    """The readings called `names`; `all` for all of them, `quick` for a few, the paper's defaults for None.

    Raises: UnknownNameError, with the nearest name suggested, or for a paper that has no readings.
    """
    known = _known_paper(paper)
    if known is None:
        raise unknown_name("paper", paper, paper_names())
    chosen: dict[str, ReadingLike] = {}
    for name in ("default",) if names is None else names:
        if names is not None and name not in (*SPECIAL_NAMES, *known.readings):
            raise unknown_name("reading", name, [*known.readings, *SPECIAL_NAMES])
        members = (name,) if name in known.readings else known.reading_names(name)
        chosen.update({member: known.readings[member] for member in members})
    return list(chosen.values())


def _known_paper(name: str) -> Paper | None:
    return find_paper(name) if name in paper_names() else _OWN_PAPERS.get(name)


def _papers_named(pattern: str) -> list[str]:
    """The papers whose claims a pattern may match, by what stands before its first wildcard, period or colon."""
    head, end = re.match(r"([^*?[.:]*)(.?)", pattern, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return [name for name in paper_names() if (name.startswith(head) if end and end in "*?[" else name == head)]


def _matching(pattern: str, claims: Mapping[str, Claim]) -> list[str]:
    tier = [id for id, claim in claims.items() if tier_of(claim) == pattern]
    return tier or fnmatch.filter(claims, f"{pattern}.*" if pattern in paper_names() else pattern)
