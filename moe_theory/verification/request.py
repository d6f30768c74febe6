"""Requests: what is to be judged, resolved once into studies that can be run without asking anything else.

A study is one experiment under one reading, with the claims that its runs decide: cells with their parameters, seed,
replicates at every interim analysis, and of each claim the verdict before anything is known.
"""

import contextlib
import dataclasses
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from moe_theory.core.constraints import shown, typed
from moe_theory.core.errors import DeclarationError, InvalidValueError, unknown_name
from moe_theory.core.random import root_key
from moe_theory.core.system import check_system
from moe_theory.runs import Cell
from moe_theory.runs.provenance import is_x64
from moe_theory.verification import registry
from moe_theory.verification.claim import Claim, Experiment, ReadingLike
from moe_theory.verification.evidence import random_cells
from moe_theory.verification.interim import look_sizes
from moe_theory.verification.recorded import recorded_verdicts
from moe_theory.verification.region import FreeAxis, Setting, assigned
from moe_theory.verification.statement import bearing
from moe_theory.verification.variant import Parts, Variant, of_own, require_parts, variant_of
from moe_theory.verification.verdict import OWN_SYSTEM, Role, Status, Stop, Verdict

FAMILY_ERROR = 0.01  # probability that a report holds any false verdict
MOST_NAMED = 5  # claims of a glob that names several
MIN_REPLICATES = 30  # below that an asymptotic interval of a mean is not to be trusted

Group = tuple[Experiment, ReadingLike, Sequence[Claim]]  # claims that share an experiment's runs under a reading


@dataclasses.dataclass(frozen=True)
class Study:
    """One experiment under one reading, and the claims that its runs decide: under other readings too, where these
    give it the same parameters."""

    experiment: Experiment
    reading: ReadingLike
    claims: tuple[Claim, ...]
    blanks: tuple[Verdict, ...]  # of the claims, before anything is known, each at its share of the error
    cells: tuple[Cell, ...]
    random: frozenset[str]  # cells in which random numbers enter, which a claim that is declared exact may not read
    seed: int
    looks: tuple[int, ...]  # replicates at the interim analyses, at most so many
    least_replicates: int  # an identity is not supported by fewer: no error is spent by waiting

    @property
    def name(self) -> str:
        """Name in progress and reports."""
        return f"{self.experiment.name} under {self.reading.name}"


@dataclasses.dataclass(frozen=True)
class Request:
    """Studies to judge, and the time that they may take."""

    studies: tuple[Study, ...]
    claims: tuple[str, ...]  # ids in the order of the report
    readings: Mapping[str, str]  # summaries by "paper.reading"
    seed: int
    error: float  # family-wise
    budget: float | None = None  # seconds
    reserve: float = 0.0  # seconds of the budget that are left for what comes after
    own: Variant | None = None  # the algorithm that is judged, where it is not the papers'
    known: tuple[Verdict, ...] = ()  # on claims that do not apply to it

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
    settings: Mapping[str, Any] | None = None,
    system: str | Parts | None = None,
) -> Request:
    """The studies that are asked for, before anything runs; arguments and errors as of `verify`."""
    if replicates is not None and (not isinstance(replicates, (int, np.integer)) or replicates < MIN_REPLICATES):
        raise InvalidValueError(
            f"replicates={replicates} must be a whole number of at least {MIN_REPLICATES}: with fewer, an interval "
            "of a mean is not to be trusted. Raise replicates.",
            argument="replicates",
        )
    if error is not None and not 0 < error < 1:
        raise InvalidValueError(
            f"error={error} must be in (0, 1): the probability of any false verdict. Change error.", argument="error"
        )
    if budget is not None and not budget > 0:
        raise InvalidValueError(f"budget={budget} must be above 0 seconds. Raise budget.", argument="budget")
    root_key(seed)
    claims = registry.select_claims([patterns] if isinstance(patterns, str) else list(patterns))
    groups = _grouped(claims, [readings] if isinstance(readings, str) else readings)
    if not groups:
        raise InvalidValueError(
            "there is nothing to judge: name at least one claim and one reading, or leave them out."
        )
    groups, fixed = _varied(groups, settings or {})
    groups = [part for group in groups for part in set_to(group, settings or {})]
    found = [_inapplicable(claim, reading, why, seed, module) for claim, reading, why in fixed]
    given, order = (replicates, seed, error, budget, module), [claim.id for claim in claims]
    if system is None:
        return dataclasses.replace(resolve(groups, *given, order), known=tuple(found))
    variant = variant_of(system)
    own, apart = on_own(groups, variant)
    found += [_without_runs(claim, reading, why, seed, module) for claim, reading, why in apart]
    request = resolve(own, *given, order)
    recorded = sum(each.error for each in found if each.replicates)
    return dataclasses.replace(request, own=variant, known=tuple(found), error=request.error + recorded)


Apart = list[tuple[Claim, "AdjustedReading", str]]  # claims that do not apply to what is asked, each with why


def _varied(groups: Sequence[Group], settings: Mapping[str, Any]) -> tuple[list[Group], Apart]:
    """The groups without the claims whose runs cannot be had at other values of what their statement leaves free, such
    as those of a competitor; and those claims. Raises: InvalidValueError for a value outside a region, or for a name
    that is neither of what is free nor of a parameter.
    """
    axes = {axis.name: axis for _, _, claims in groups for claim in claims for axis in claim.free}
    chosen = {axes[name]: axes[name].parsed(value) for name, value in settings.items() if name in axes}
    kept, apart = [], []
    for experiment, reading, claims in groups:
        params = reading.params()
        for name in settings:
            if name not in axes and name not in params._fields:
                known = [*params._fields, *axes]
                raise InvalidValueError(str(unknown_name("parameter", name, known, type(params))))
        names = {axis.name for axis in chosen}.difference(params._fields)
        lacking = {claim.id: sorted(names.difference(axis.name for axis in claim.free)) for claim in claims}
        at = dataclasses.replace(_adjusted(reading), free=chosen) if chosen else reading
        apart += [
            (claim, at, f"its runs can be had at other values of {' and '.join(lacking[claim.id])}")
            for claim in claims
            if lacking[claim.id]
        ]
        if applying := [claim for claim in claims if not lacking[claim.id]]:
            kept.append((experiment, reading, applying))
    return kept, apart


def on_own(groups: Sequence[Group], variant: Variant) -> tuple[list[Group], Apart]:
    """The groups with an algorithm of one's own for the papers', and the claims that do not apply to it, each with why.
    Raises: as `require_parts`.
    """
    require_parts(variant, [experiment for experiment, _, _ in groups])
    made: dict[int, Experiment] = {}  # one a paper's: readings share its runs
    own, apart = [], []
    for experiment, reading, claims in groups:
        mine = dataclasses.replace(_adjusted(reading), own=variant)
        applying = []
        for claim in claims:
            try:
                runs = made.setdefault(id(experiment), of_own(claim, variant))
                applying.append(dataclasses.replace(claim, experiment=runs))
            except DeclarationError as failure:
                apart.append((claim, mine, str(failure)))
        if applying:
            own.append((applying[0].experiment, mine, applying))
    return own, apart


def _without_runs(claim: Claim, reading: "AdjustedReading", why: str, seed: int, module: str | None) -> Verdict:
    """The verdict on a claim that does not apply to an algorithm of one's own. A competitor's is as recorded: what a
    statement credits, that lacks whatever the algorithm is.
    """
    statements = [each for each in bearing([claim.id]) if each.roles[claim.id] is Role.COMPETITOR]
    printed = dataclasses.replace(reading, own=None).name
    for each in recorded_verdicts(statements) if statements else ():
        if each.claim == claim.id and printed in (each.reading, *each.also):
            reason = f"{each.reason}, as recorded" if each.reason else "as recorded"
            return dataclasses.replace(each, reading=reading.name, also=[], reason=reason)
    return _inapplicable(claim, reading, f"another algorithm can take the printed one's place ({why})", seed, module)


def _inapplicable(claim: Claim, reading: "AdjustedReading", needed: str, seed: int, module: str | None) -> Verdict:
    """The verdict on a claim that needs what does not hold of what is asked."""
    blank = blank_verdict(claim, reading.name, seed, FAMILY_ERROR, module, reading.options)
    reason = f"fails here: {needed}"
    return dataclasses.replace(blank, status=Status.INAPPLICABLE, reason=reason, stopped=Stop.DECIDED)


def require_one(pattern: str, claims: Sequence[Claim]) -> Claim:
    """The claim that a pattern names. Raises: InvalidValueError where it names several."""
    if len(claims) > 1:
        ids = ", ".join(claim.id for claim in claims[:MOST_NAMED]) + (", ..." if len(claims) > MOST_NAMED else "")
        raise InvalidValueError(f"{pattern!r} names {len(claims)} claims, and this is of one. Name one of {ids}.")
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
    """The request to judge these groups of claims, whose ids the report has in this order.

    Where two readings give an experiment the same parameters its claims are judged once, and count once.
    """
    cells = [experiment.cells_under(reading) for experiment, reading, _ in groups]
    judged = _judged_once(groups, cells)
    shares = _shares([claim.paper for claims in judged for claim, _ in claims.values()], error)
    studies = []
    for (experiment, reading, _), own_cells, claims in zip(groups, cells, judged, strict=True):
        if not claims:
            continue
        own = experiment.replicates
        limit = replicates or (None if budget else own)
        studies.append(
            Study(
                experiment=experiment,
                reading=reading,
                claims=tuple(claim for claim, _ in claims.values()),
                blanks=tuple(
                    blank_verdict(claim, reading.name, seed, shares[claim.paper], module, options_of(reading), also)
                    for claim, also in claims.values()
                ),
                cells=tuple(own_cells),
                random=random_cells(experiment, own_cells, [claim for claim, _ in claims.values()]),
                seed=seed,
                looks=look_sizes(own, limit),
                least_replicates=look_sizes(own, min(limit or own, own))[-1],
            )
        )
    ids = dict.fromkeys(claim.id for _, _, claims in groups for claim in claims) if order is None else order
    readings = {f"{claim.paper}.{reading.name}": reading.summary for _, reading, of in groups for claim in of}
    return Request(tuple(studies), tuple(ids), readings, seed, error or FAMILY_ERROR, budget)


def _shares(papers: Sequence[str], error: float | None) -> dict[str, float]:
    """Error that one verdict may spend, by paper; `papers` has the paper of each verdict.

    An error that is given is split evenly. Otherwise a verdict has 1 / `Paper.most_verdicts` of the whole, alone or
    with others; where the parts exceed the whole together, all shrink alike.
    """
    counts = Counter(papers)
    if error is not None:
        return dict.fromkeys(counts, error / max(counts.total(), 1))
    parts = {paper: 1 / registry.most_verdicts(paper) for paper in counts}
    whole = max(1.0, sum(parts[paper] * count for paper, count in counts.items()))
    return {paper: FAMILY_ERROR * part / whole for paper, part in parts.items()}


def _judged_once(groups: Sequence[Group], cells: Sequence[Sequence[Cell]]) -> list[dict[str, tuple[Claim, list[str]]]]:
    """Claims that are judged on each group's runs, by id, with the further readings that give the same parameters."""
    found: list[dict[str, tuple[Claim, list[str]]]] = []
    decided: dict[Any, list[str]] = {}  # the further readings, by claim and parameters
    for (experiment, reading, claims), own_cells in zip(groups, cells, strict=True):
        params = tuple(map(_values, own_cells))
        found.append({})
        for claim in claims:
            key = (id(experiment), claim.id, params)
            if key in decided:
                decided[key].append(reading.name)
            else:
                found[-1][claim.id] = claim, decided.setdefault(key, [])
    return found


def _values(cell: Cell) -> Any:
    """A cell's parameters as a hashable value: equal for the same bytes of the same types."""
    leaves, structure = jax.tree.flatten(cell.params)
    arrays = [np.asarray(leaf) for leaf in leaves]
    return structure, *((type(leaf), a.dtype, a.shape, a.tobytes()) for leaf, a in zip(leaves, arrays, strict=True))


def blank_verdict(
    claim: Claim,
    reading: str,
    seed: int,
    error: float,
    module: str | None = None,
    options: str | None = None,
    also: Sequence[str] = (),
) -> Verdict:
    """A verdict before anything is known, at this error; `options` name the reading, unless its name does."""
    options = options or f"--reading {reading}"
    precision = "JAX_ENABLE_X64=1 " if is_x64() else ""
    command = f"{precision}moe-theory verify {claim.id} {options} --seed {seed} --error {error!r}"
    shared = ("paper", "where", "statement", "formula", "kind", "replaced_by", "side")
    return Verdict(
        **{name: getattr(claim, name) for name in shared},
        claim=claim.id,
        reading=reading,
        also=list(also),
        status=Status.INCONCLUSIVE,
        reason="",
        replicates=0,
        command=f"{command} --module {shlex.quote(module)}" if module else command,
        error=error,
        data=claim.experiment.data,
        is_computed=claim.is_computed,
    )


@dataclasses.dataclass(frozen=True)
class AdjustedReading:
    """A reading with some parameters set beside its choices, which a cell's own overrides go before, and parameters
    that statements leave free, which go before both. What an experiment is built with is only named, and so is an
    algorithm of one's own.
    """

    base: ReadingLike
    settings: Mapping[str, Any]
    free: Mapping[Any, Any] = dataclasses.field(default_factory=dict)
    built: Setting = dataclasses.field(default_factory=dict)
    own: Variant | None = None

    @property
    def name(self) -> str:
        """The reading's name and what is set: "unit-signal, signal_scale=5"."""
        return ", ".join([self.base.name, *self._assigned, *self._system])

    @property
    def summary(self) -> str:
        return "; ".join([self.base.summary, *self._assigned, *self._system])

    @property
    def options(self) -> str:
        system = [] if self.own is None else [f"--system {shlex.quote(self.own.place)}"]
        assigned = [f"--set {shlex.quote(each)}" for each in self._assigned]
        return " ".join([f"--reading {self.base.name}", *assigned, *system])

    @property
    def _system(self) -> list[str]:
        return [] if self.own is None else [f"{OWN_SYSTEM}{self.own.name}"]

    @property
    def _assigned(self) -> list[str]:
        own = (f"{name}={shown(value)}" for name, value in self.settings.items())
        return [*own, *assigned({**self.built, **self.free})]

    def params(self, **overrides: Any) -> Any:
        params = self.base.params(**{**self.settings, **overrides})
        for axis, value in self.free.items():
            params = axis.into(params, value)
        return params


def _adjusted(reading: ReadingLike) -> AdjustedReading:
    return reading if isinstance(reading, AdjustedReading) else AdjustedReading(reading, {})


def options_of(reading: ReadingLike) -> str:
    return reading.options if isinstance(reading, AdjustedReading) else f"--reading {reading.name}"


def asked_of(reading: ReadingLike) -> tuple[str, dict[str, Any]]:
    """The name of a paper's reading and the settings beside it, from which `set_to` makes this one."""
    if not isinstance(reading, AdjustedReading):
        return reading.name, {}
    name, settings = asked_of(reading.base)
    free = {axis.name: value for axis, value in {**reading.built, **reading.free}.items()}
    return name, {**settings, **reading.settings, **free}


def set_to(group: Group, settings: Mapping[str, Any]) -> list[Group]:
    """The group with `settings`, numbers or their texts: of what its claims' statements leave free, or of parameters;
    in parts where the statements differ in that. Raises: InvalidValueError for a parameter that does not exist or that
    the experiment decides itself, and for a value that its system, or the statement's region, refuses.
    """
    experiment, reading, claims = group
    parts: dict[tuple[FreeAxis, ...], list[Claim]] = {}
    for claim in claims:
        parts.setdefault(tuple(axis for axis in claim.free if axis.name in settings), []).append(claim)
    found = []
    for axes, of in parts.items():
        setting = {axis: axis.parsed(settings[axis.name]) for axis in axes}
        others = {name: value for name, value in settings.items() if name not in {axis.name for axis in axes}}
        for name in others:
            require_free(name, reading, experiment)
        made = with_settings(reading, others)
        if others:
            check_cells(experiment, made)
        found.append(at_setting((experiment, made, of), setting))
    return found


def at_setting(group: Group, setting: Setting) -> Group:
    """The group at a setting of what its claims' statements leave free. Raises: as the systems that it runs, for a
    setting that they refuse.
    """
    experiment, reading, claims = group
    if not setting:
        return group
    built = {axis: value for axis, value in setting.items() if axis.is_built(experiment)}
    free = {axis: value for axis, value in setting.items() if axis not in built}
    varied, made = experiment.at_setting(built), dataclasses.replace(_adjusted(reading), free=free, built=built)
    check_cells(varied, made)
    return varied, made, [dataclasses.replace(claim, experiment=varied) for claim in claims]


def check_cells(experiment: Experiment, reading: ReadingLike) -> None:
    """Let the systems of an experiment refuse the parameters of its cells, in the precision that these run in."""
    for cell in experiment.cells_under(reading):
        with contextlib.suppress(DeclarationError), cell.precision():
            check_system(cell.system, cell.params)


def with_settings(reading: ReadingLike, settings: Mapping[str, Any]) -> ReadingLike:
    """The reading with `settings`, numbers or their texts; itself where there are none.
    Raises: InvalidValueError for a parameter that does not exist, or for what is no value of it.
    """
    defaults = reading.params()
    for name in settings:
        if name not in defaults._fields:
            raise InvalidValueError(str(unknown_name("parameter", name, defaults._fields, type(defaults))))
    made = {name: typed(name, value, defaults) for name, value in settings.items()}
    return AdjustedReading(reading, made) if made else reading


def parsed(texts: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Texts such as "signal_scale=5", by parameter. Raises: InvalidValueError for any other."""
    settings = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InvalidValueError(f"{option} {text} sets nothing: write it as {option} {name or 'NAME'}=5.")
        if name in settings:
            raise InvalidValueError(f"{option} {text}: {name} is set already, to {settings[name]}. Set it once.")
        settings[name] = value
    return settings


def require_free(name: str, reading: ReadingLike, experiment: Experiment) -> None:
    """Raise InvalidValueError for a parameter that does not exist, or that the experiment's runs have decided."""
    fields = reading.params()._fields
    if name not in fields:
        raise InvalidValueError(str(unknown_name("parameter", name, fields, type(reading.params()))))
    own = {cell: overrides[name] for cell, overrides in experiment.cells.items() if name in overrides}
    if len(own) == len(experiment.cells):
        cells = ", ".join(f"{cell!r} sets {shown(value)}" for cell, value in own.items())
        raise InvalidValueError(
            f"{name} cannot be set: the experiment {experiment.name} decides it in every cell ({cells}), which goes "
            "before any other choice. Set another parameter, or declare it free in the statement."
        )


def _grouped(claims: Sequence[Claim], readings: Sequence[str] | None) -> list[Group]:
    """Claims by experiment and reading, in their order."""
    groups: dict[tuple[int, str], tuple[Experiment, ReadingLike, list[Claim]]] = {}
    papers = dict.fromkeys(claim.paper for claim in claims)
    by_paper = registry.readings_by_paper(list(papers), readings) if papers else {}
    for claim in claims:
        for reading in by_paper[claim.paper]:
            key = (id(claim.experiment), reading.name)
            groups.setdefault(key, (claim.experiment, reading, []))[2].append(claim)
    return list(groups.values())
