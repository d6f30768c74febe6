"""Requests for verdicts, which are resolved into studies that run without further input.

A study is one experiment under one reading. It has cells with parameters, a seed, the number of replicates at every
interim analysis, and a blank verdict for each claim.
"""

import dataclasses
import itertools
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from moe_theory.core.errors import DeclarationError, InvalidValueError
from moe_theory.core.random import root_key
from moe_theory.runs import Cell
from moe_theory.runs.provenance import is_x64
from moe_theory.verification import registry
from moe_theory.verification.claim import Claim, Experiment, ReadingLike
from moe_theory.verification.evidence import random_cells
from moe_theory.verification.interim import look_sizes
from moe_theory.verification.recorded import recorded_verdicts
from moe_theory.verification.settings import Group, adjusted, set_to
from moe_theory.verification.statement import statements_tested_by
from moe_theory.verification.variant import Parts, Variant, require_parts, variant_of, with_own_parts
from moe_theory.verification.verdict import AS_RECORDED, Role, Status, Stop, Verdict, verdict_of

FAMILY_ERROR = 0.01  # probability of any false verdict in a report
MOST_NAMED = 5  # most claims that a message lists
MIN_REPLICATES = 30  # with fewer, an asymptotic interval of a mean cannot be trusted


@dataclasses.dataclass(frozen=True)
class Study:
    experiment: Experiment
    reading: ReadingLike
    claims: tuple[Claim, ...]
    blanks: tuple[Verdict, ...]  # a verdict without numbers for each claim, at its share of the error
    cells: tuple[Cell, ...]
    random: frozenset[str]  # cells with random numbers, which an exact claim must not read
    seed: int
    looks: tuple[int, ...]  # numbers of replicates at the interim analyses
    least_replicates: int  # fewer do not support an identity, because further replicates cost no error

    @property
    def name(self) -> str:
        return f"{self.experiment.name} under {self.reading.name}"


@dataclasses.dataclass(frozen=True)
class Request:
    studies: tuple[Study, ...]
    claims: tuple[str, ...]  # ids in the order of the report
    readings: Mapping[str, str]  # summaries by "paper.reading"
    seed: int
    error: float  # family-wise
    budget: float | None = None  # seconds
    reserve: float = 0.0  # seconds of the budget for writing the report
    own: Variant | None = None  # the user's algorithm, if it replaces the papers'
    inapplicable: tuple[Verdict, ...] = ()  # verdicts on claims that do not apply

    @property
    def num_verdicts(self) -> int:
        return sum(len(study.claims) for study in self.studies)


def check_request(
    patterns: str | Sequence[str],
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float | None = None,
    budget: float | None = None,
    module: str | None = None,
    settings: Mapping[str, float | str] | None = None,
    system: str | Parts | None = None,
) -> Request:
    """Return a request's studies before anything runs. Arguments and errors are as in `verify`."""
    if replicates is not None and (not isinstance(replicates, (int, np.integer)) or replicates < MIN_REPLICATES):
        raise InvalidValueError(
            f"replicates={replicates} must be a whole number of at least {MIN_REPLICATES}, because an interval for a "
            "mean from fewer replicates cannot be trusted. Raise replicates.",
            argument="replicates",
        )
    if error is not None and not 0 < error < 1:
        raise InvalidValueError(
            f"error={error} must be in (0, 1), because it is the probability of any false verdict. Change error.",
            argument="error",
        )
    if budget is not None and not budget > 0:
        raise InvalidValueError(f"budget={budget} must be above 0 seconds. Raise budget.", argument="budget")
    root_key(seed)  # raises for an impossible seed
    settings = settings or {}
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    readings = [readings] if isinstance(readings, str) else readings
    claims = registry.select_claims(patterns)
    groups = _group_claims(claims, readings)
    if not groups:
        raise InvalidValueError("there is nothing to test. Name at least one claim and one reading, or leave both out.")
    groups = list(itertools.chain.from_iterable(set_to(group, settings) for group in groups))
    inapplicable: list[Verdict] = []
    variant = None
    if system is not None:
        variant = variant_of(system)
        require_parts(variant, [group.experiment for group in groups])
        groups, inapplicable = _apply_variant(groups, variant, seed, module)
    ids = [claim.id for claim in claims]
    request = resolve(groups, replicates, seed, error=error, budget=budget, module=module, order=ids)
    published = [verdict for verdict in inapplicable if verdict.replicates]  # each adds its own error
    total_error = request.error + sum(verdict.error for verdict in published)
    return dataclasses.replace(request, own=variant, inapplicable=tuple(inapplicable), error=total_error)


def _group_claims(claims: Sequence[Claim], readings: Sequence[str] | None) -> list[Group]:
    papers = dict.fromkeys(claim.paper for claim in claims)
    by_paper = registry.readings_by_paper(list(papers), readings) if papers else {}
    groups: dict[tuple[int, str], Group] = {}
    for claim in claims:
        for reading in by_paper[claim.paper]:
            key = (id(claim.experiment), reading.name)
            group = groups.setdefault(key, Group(claim.experiment, reading, ()))
            groups[key] = group._replace(claims=[*group.claims, claim])
    return list(groups.values())


def _apply_variant(
    groups: Sequence[Group], variant: Variant, seed: int, module: str | None
) -> tuple[list[Group], list[Verdict]]:
    """Replace the papers' algorithm by the user's, and return verdicts on claims that do not apply to it."""
    experiments: dict[int, Experiment] = {}  # by the original's id, so that all readings have the same object
    remaining: list[Group] = []
    verdicts: list[Verdict] = []
    for experiment, paper_reading, claims in groups:
        reading = dataclasses.replace(adjusted(paper_reading), own=variant)
        applicable = []
        for claim in claims:
            try:
                own_experiment = experiments.setdefault(id(experiment), with_own_parts(claim, variant))
                applicable.append(dataclasses.replace(claim, experiment=own_experiment))
            except DeclarationError as failure:
                blank = blank_verdict(claim, reading.name, seed, FAMILY_ERROR, module, options=reading.options)
                reason = f"fails here: another algorithm can take the printed one's place ({failure})"
                untested = dataclasses.replace(blank, status=Status.INAPPLICABLE, reason=reason, stopped=Stop.DECIDED)
                published = _recorded_competitor(claim, adjusted(paper_reading).name, reading.name)
                verdicts.append(published or untested)
        if applicable:
            remaining.append(Group(applicable[0].experiment, reading, applicable))
    return remaining, verdicts


def _recorded_competitor(claim: Claim, printed: str, reading: str) -> Verdict | None:
    """Return the published verdict under the printed reading, if the claim itself is about another algorithm."""
    statements = [
        statement for statement in statements_tested_by([claim.id]) if statement.roles[claim.id] is Role.COMPETITOR
    ]
    if not statements:
        return None
    for verdict in recorded_verdicts(statements):
        if verdict.claim == claim.id and printed in (verdict.reading, *verdict.also):
            origin = ", ".join(filter(None, (verdict.reason, AS_RECORDED)))
            return dataclasses.replace(verdict, reading=reading, also=[], reason=origin)
    return None


def require_one(pattern: str, claims: Sequence[Claim]) -> Claim:
    """Return the only claim that matches a pattern. Raises: InvalidValueError if there are several."""
    if len(claims) > 1:
        ids = ", ".join(claim.id for claim in claims[:MOST_NAMED])
        raise InvalidValueError(f"{pattern!r} names {len(claims)} claims, such as {ids}. Name only one.")
    return claims[0]


def resolve(
    groups: Sequence[Group],
    replicates: int | None = None,
    seed: int = 0,
    error: float | None = None,
    budget: float | None = None,
    module: str | None = None,
    order: Sequence[str] | None = None,
) -> Request:
    """Return the request to test these groups of claims.

    If an experiment has the same parameters under two readings, it is tested once and counts once.
    """
    cells = [experiment.cells_under(reading) for experiment, reading, _ in groups]
    questions = _new_questions(groups, cells)
    counts = Counter(claim.paper for claim, _ in itertools.chain.from_iterable(questions))
    if error is None:  # a verdict's share is the same in any request, unless all shares together exceed FAMILY_ERROR
        parts = {paper: 1 / registry.most_verdicts(paper) for paper in counts}
        total = max(1.0, sum(parts[paper] * count for paper, count in counts.items()))
        shares = {paper: FAMILY_ERROR * part / total for paper, part in parts.items()}
    else:
        shares = dict.fromkeys(counts, error / max(counts.total(), 1))
    studies = []
    for group, group_cells, group_questions in zip(groups, cells, questions, strict=True):
        if not group_questions:
            continue
        experiment, reading, _ = group
        own_limit = experiment.replicates
        limit = replicates or (None if budget else own_limit)  # a budget limits the time instead
        claims = tuple(claim for claim, _ in group_questions)
        options = adjusted(reading).options
        blanks = [
            blank_verdict(claim, reading.name, seed, shares[claim.paper], module, options=options, also=equal_readings)
            for claim, equal_readings in group_questions
        ]
        studies.append(
            Study(
                experiment=experiment,
                reading=reading,
                claims=claims,
                blanks=tuple(blanks),
                cells=tuple(group_cells),
                random=random_cells(experiment, group_cells, claims),
                seed=seed,
                looks=look_sizes(own_limit, limit),
                least_replicates=look_sizes(own_limit, min(limit or own_limit, own_limit))[-1],
            )
        )
    ids: dict[str, None] = {}
    summaries: dict[str, str] = {}
    for group in groups:
        ids |= dict.fromkeys(claim.id for claim in group.claims)
        summaries |= {f"{claim.paper}.{group.reading.name}": group.reading.summary for claim in group.claims}
    ordered = tuple(ids if order is None else order)
    total_error = error or FAMILY_ERROR
    return Request(tuple(studies), ordered, readings=summaries, seed=seed, error=total_error, budget=budget)


def _new_questions(groups: Sequence[Group], cells: Sequence[Sequence[Cell]]) -> list[list[tuple[Claim, list[str]]]]:
    """Return for each group the claims that are new at its parameters, and for each claim the later equal readings."""
    questions: list[list[tuple[Claim, list[str]]]] = []
    readings: dict[Any, list[str]] = {}
    for (experiment, reading, claims), group_cells in zip(groups, cells, strict=True):
        leaves, structure = jax.tree.flatten([cell.params for cell in group_cells])
        contents = []
        for leaf in leaves:
            array = np.asarray(leaf)
            contents.append((type(leaf), array.dtype, array.shape, array.tobytes()))
        params = (structure, *contents)  # can be hashed
        questions.append([])
        for claim in claims:
            key = (id(experiment), claim.id, params)
            if key in readings:
                readings[key].append(reading.name)
            else:
                readings[key] = []  # later readings are appended to the same list
                questions[-1].append((claim, readings[key]))
    return questions


def blank_verdict(
    claim: Claim,
    reading: str,
    seed: int,
    error: float,
    module: str | None = None,
    options: str | None = None,  # options of the command that select the reading, by default its name
    also: Sequence[str] = (),
) -> Verdict:
    """Return an empty verdict at this error. `also` has further readings with the same parameters."""
    options = options or f"--reading {reading}"
    precision = "JAX_ENABLE_X64=1 " if is_x64() else ""
    command = f"{precision}moe-theory verify {claim.id} {options} --seed {seed} --error {error!r}"
    if module:
        command += f" --module {shlex.quote(module)}"
    return verdict_of(
        claim,
        claim=claim.id,
        reading=reading,
        also=list(also),
        status=Status.INCONCLUSIVE,
        reason="",
        replicates=0,
        command=command,
        error=error,
        data=claim.experiment.data,
    )
