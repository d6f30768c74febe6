"""Which papers there are, their readings and their claims."""

import fnmatch
import importlib
from collections.abc import Mapping, Sequence

from moe_theory.core.errors import unknown_name
from moe_theory.verify.claim import Claim, ReadingLike, registered

# Papers by name: a paper's folder holds `claims` and `readings`. Named, not imported: they build on this package.
PAPERS: dict[str, str] = {
    "continual": "moe_theory.continual",
    "edge": "moe_theory.edge",
    "generalization": "moe_theory.generalization",
    "merging": "moe_theory.merging",
    "deep": "moe_theory.deep",
}

# Of these, folders whose claims answer for statements of other papers: they have no list of their own.
SHARED = ("deep",)

# A paper's readings under which its claims are judged unless the caller names others.
DEFAULT_READINGS: dict[str, tuple[str, ...]] = {
    "continual": ("unit-signal", "independent-signal"),
    "edge": ("orthogonal-signal", "sibling", "scaled-signal", "independent-signal"),
    "generalization": ("mask-dimension", "router-dimension"),
    "merging": ("random-split", "effective-split"),
    "deep": ("balanced",),
}

# Fewer of them, for a first look: what `quick` stands for.
QUICK_READINGS: dict[str, tuple[str, ...]] = {
    "continual": ("unit-signal",),
    "edge": ("orthogonal-signal",),
    "generalization": ("mask-dimension",),
    "merging": ("random-split",),
    "deep": ("balanced",),
}

SPECIAL_NAMES = ("all", "quick")

_OWN_READINGS: dict[str, Mapping[str, ReadingLike]] = {}  # of papers that users bring along


def add_readings(paper: str, readings: Mapping[str, ReadingLike]) -> None:
    """Give a paper that is not shipped its readings, all of which are its defaults."""
    _OWN_READINGS[paper] = readings


def all_claims() -> dict[str, Claim]:
    """Every claim of every paper, and those that the user's own modules have declared, by id, paper after paper.

    Examples:
        >>> from moe_theory import verify
        >>> verify.all_claims()["continual.lemma-4"].where
        'Lemma 4'
    """
    for package in PAPERS.values():
        importlib.import_module(f"{package}.claims")
    order = {paper: place for place, paper in enumerate(PAPERS)}
    claims = sorted(registered().values(), key=lambda claim: order.get(claim.paper, len(order)))
    return {claim.id: claim for claim in claims}


def claims() -> list[Claim]:
    """Every claim there is, in order of declaration.

    Examples:
        >>> import moe_theory as mt
        >>> {claim.paper for claim in mt.claims()} >= {"continual", "edge", "generalization", "merging", "deep"}
        True
    """
    return list(all_claims().values())


def select_claims(patterns: Sequence[str] = ("*",)) -> list[Claim]:
    """The claims whose ids match any of `patterns`: an id, a glob, a paper's name for all of it, or PAPER:TIER.

    Raises: UnknownNameError for a pattern that matches nothing, with the nearest id suggested.

    Examples:
        >>> from moe_theory import verify
        >>> [claim.id for claim in verify.select_claims(["generalization.lemma-6.g*"])]
        ['generalization.lemma-6.growth']
    """
    by_id = all_claims()
    tiers = {tier_of(claim) for claim in by_id.values()}
    chosen: set[str] = set()
    for pattern in patterns:
        if pattern in tiers:
            matches = [id for id, claim in by_id.items() if tier_of(claim) == pattern]
        else:
            matches = fnmatch.filter(by_id, f"{pattern}.*" if pattern in PAPERS else pattern)
        if not matches:
            raise unknown_name("claim", pattern, [*by_id, *PAPERS, *tiers])
        chosen.update(matches)
    return [claim for id, claim in by_id.items() if id in chosen]


def tier_of(claim: Claim) -> str:
    """PAPER:TIER, the name of the claims of a paper whose runs cost about the same."""
    return f"{claim.paper}:{claim.experiment.tier}"


def readings_of(paper: str) -> Mapping[str, ReadingLike]:
    """A paper's readings by name; none for a paper that nobody has given any."""
    if paper not in PAPERS:
        return _OWN_READINGS.get(paper, {})
    return importlib.import_module(f"{PAPERS[paper]}.readings").READINGS


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
    readings = readings_of(paper)
    if not readings:
        raise unknown_name("paper", paper, PAPERS)
    groups = {"all": tuple(readings), "quick": QUICK_READINGS.get(paper, tuple(readings))}
    chosen: dict[str, ReadingLike] = {}
    for name in DEFAULT_READINGS.get(paper, tuple(readings)) if names is None else names:
        if name not in groups and name not in readings:
            raise unknown_name("reading", name, [*readings, *groups])
        chosen.update({member: readings[member] for member in groups.get(name, (name,))})
    return list(chosen.values())
