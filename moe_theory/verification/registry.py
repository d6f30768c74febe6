"""Claims and readings by name, from installed papers and users' papers."""

import fnmatch
import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError, unknown_name
from moe_theory.core.notebook import Listing
from moe_theory.core.papers import Paper, all_papers, find_paper, ordered_names, paper_names, paper_of
from moe_theory.core.userfile import run_file
from moe_theory.verification import catalog
from moe_theory.verification.claim import Claim, ReadingLike, registered
from moe_theory.verification.statement import declared

SPECIAL_NAMES = ("all", "quick")  # names that select several readings


def all_claims() -> dict[str, Claim]:
    for paper in all_papers().values():
        paper.import_claims()
    return declared_claims()


def claims(pattern: str = "*") -> Listing[Claim]:
    """Return the claims that match an id, a glob, the name of a statement or a paper, or PAPER:TIER.

    Raises: UnknownNameError if nothing matches.

    Examples:
        >>> import moe_theory as mt
        >>> (lemma,) = mt.claims("continual.lemma-4")
        >>> lemma.where
        'Lemma 4'
    """
    return Listing(select_claims([pattern]))


def declared_claims() -> dict[str, Claim]:
    """Return the imported claims by id, in the order of papers. A paper's own are before those of users' files."""
    places = {paper: place for place, paper in enumerate(ordered_names())}
    last = len(places)  # position of papers that are not installed

    def rank(claim: Claim) -> tuple[int, bool]:
        return places.get(claim.paper, last), not is_of_a_paper(claim)

    return {claim.id: claim for claim in sorted(registered().values(), key=rank)}


def select_claims(patterns: Sequence[str] = ("*",)) -> list[Claim]:
    """Return the claims that match any of `patterns`. Each is an id, a glob, a statement, a paper, or PAPER:TIER."""
    ids: set[str] = set()
    for pattern in patterns:
        # The text before the first wildcard, period or colon decides which papers' claims can match.
        head, delimiter = re.match(r"([^*?[.:]*)(.?)", pattern, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
        for name in paper_names():
            if name == head or (delimiter and delimiter in "*?[" and name.startswith(head)):
                find_paper(name).import_claims()
        # Other papers are imported only if none of the imported claims match.
        matches = _matching(pattern, declared_claims()) or _matching(pattern, all_claims())
        if not matches and pattern in paper_names():
            raise UnknownNameError(
                f"paper {pattern!r} has no claims. `statements` of its PAPER must name the module that declares "
                f"claims, and their ids must begin with '{pattern}.'."
            )
        if not matches:
            for statement in catalog.matching(pattern, declared()):  # the first is enough
                reason = " ".join((statement.untestable or statement.undecided or "no claim tests it.").split())
                raise InvalidValueError(
                    f"{statement.name} has no deciding test: {reason} Read `moe-theory why {statement.name}`, or name "
                    "another statement."
                )
            tiers = {tier_of(claim) for claim in claims()}
            statements = [statement.name for statement in declared()]
            raise unknown_name("claim", pattern, [*all_claims(), *statements, *paper_names(), *tiers])
        ids.update(matches)
    return [claim for id, claim in declared_claims().items() if id in ids]


def is_of_a_paper(claim: Claim) -> bool:
    return paper_of(claim.module) is not None


def tier_of(claim: Claim) -> str:
    """Return PAPER:TIER, which names the paper's claims of about the same cost."""
    return f"{claim.paper}:{claim.experiment.tier}"


def load_claims(path: Path) -> list[str]:
    """Run a Python file, and return its claims' ids in order.

    Claims are tested under the readings of their paper. The file can declare it as `PAPER`.
    """
    before = registered()
    run_file(path)
    new_claims = [claim for id, claim in registered().items() if id not in before and not is_of_a_paper(claim)]
    select_claims([claim.id for claim in new_claims])  # detects an id that a paper already has
    if not new_claims:
        raise DeclarationError(
            f"--module {path} declares no claim. Decorate a function with @moe_theory.statement(...).claim(...)."
        )
    for claim in new_claims:
        if not _paper_of(claim.paper).readings:
            raise DeclarationError(
                f"--module {path}: claim {claim.id} belongs to paper={claim.paper!r}, which has no readings. Name one "
                f"of the papers {', '.join(paper_names())}, or set PAPER = moe_theory.Paper({claim.paper!r}, ...)."
            )
    return [claim.id for claim in new_claims]


def readings_by_paper(papers: Sequence[str], names: Sequence[str] | None) -> dict[str, list[ReadingLike]]:
    """Return each paper's readings with these names, or its default ones for None. Raises: UnknownNameError."""
    if names is None:
        return {paper: select_readings(paper, None) for paper in papers}
    names_by_paper = {paper: {*_paper_of(paper).readings, *SPECIAL_NAMES} for paper in papers}
    all_names = set[str]().union(*names_by_paper.values())
    for name in names:
        if name not in all_names:
            raise unknown_name("reading", name, all_names)
    readings = {}
    for paper, paper_names_of_readings in names_by_paper.items():
        readings[paper] = select_readings(paper, [name for name in names if name in paper_names_of_readings])
    return readings


def select_readings(paper: str, names: Sequence[str] | None) -> list[ReadingLike]:
    """Return the readings called `names`, which may be `all`, `quick` for a few, or None for the defaults."""
    declaration = _paper_of(paper)
    if not declaration.readings:
        raise unknown_name("paper", paper, paper_names())
    if names is None:
        names = declaration.reading_names("default")
    reading_names: list[str] = []
    for name in names:
        if name in declaration.readings:
            reading_names.append(name)
        elif name in SPECIAL_NAMES:
            reading_names += declaration.reading_names(name)
        else:
            raise unknown_name("reading", name, [*declaration.readings, *SPECIAL_NAMES])
    return [declaration.readings[name] for name in dict.fromkeys(reading_names)]


def most_verdicts(paper: str) -> int:
    return _paper_of(paper).most_verdicts


def _paper_of(name: str) -> Paper:
    """Return the installed paper, or the paper in a user's file, or a paper without readings."""
    if name in paper_names():
        return find_paper(name)
    for claim in registered().values():
        if claim.paper == name:
            paper = getattr(sys.modules.get(claim.module), "PAPER", None)
            if isinstance(paper, Paper) and paper.name == name:
                return paper
    return Paper(name, package=name, title="", readings={})


def _matching(pattern: str, claims: Mapping[str, Claim]) -> list[str]:
    matches = [id for id, claim in claims.items() if tier_of(claim) == pattern]
    if not matches:
        glob = f"{pattern}.*" if pattern in paper_names() else pattern
        matches = fnmatch.filter(claims, glob)
    if matches:
        return matches
    statements = catalog.matching(pattern, declared())
    ids = itertools.chain.from_iterable(statement.roles for statement in statements)
    return list(dict.fromkeys(id for id in ids if id in claims))
