"""Statements of papers. One file declares a statement and the claims that test it.

    LEMMA_8 = statement("lemma-8", module=__name__)  # texts: lemma_08.toml next to this module

    @LEMMA_8.charitable("lemma-8.experts", GRID.over("num_experts"), rate(at_most=-1))
    def largest_gap(run):
        return share_gaps(run).max(axis=0)

The status of a statement is derived from its claims' verdicts by role (`verification.status`).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from moe_theory.core.errors import DeclarationError, shortened, unknown_name
from moe_theory.core.papers import find_paper, paper_names, paper_of
from moe_theory.runs import Run
from moe_theory.verification.claim import Claim, Experiment, Runs, Selection, register, registered
from moe_theory.verification.criteria import Criterion
from moe_theory.verification.criteria import bound as bound
from moe_theory.verification.criteria import counterexample as counterexample
from moe_theory.verification.criteria import equality as equality
from moe_theory.verification.criteria import identity as identity
from moe_theory.verification.criteria import limit_probability as limit_probability
from moe_theory.verification.criteria import limit_rate as limit_rate
from moe_theory.verification.criteria import ordering as ordering
from moe_theory.verification.criteria import probability as probability
from moe_theory.verification.criteria import rate as rate
from moe_theory.verification.ranges import CLAIMED, Range, range_of
from moe_theory.verification.ranges import constant as constant
from moe_theory.verification.ranges import ranged as ranged
from moe_theory.verification.region import FreeAxis, described, require_varies, varies
from moe_theory.verification.status import DECIDING, deciding
from moe_theory.verification.texts import (
    ClaimTexts,
    StatementTexts,
    claim_words,
    given_texts,
    paper_texts,
    plain_statement,
    sentence_of,
    statement_texts,
)
from moe_theory.verification.verdict import ID_WORDS, Role, Statement, is_id

F = TypeVar("F", bound=Callable[..., Any])
Holds = Callable[[Any, Run], Any]  # (dims, run) -> bool, or one bool per replicate


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    text: str  # such as "signals are orthogonal"
    holds: Holds

    def __fingerprint__(self) -> Any:
        return self.holds


@dataclasses.dataclass(frozen=True)
class Declared(Statement):
    checks: tuple[Hypothesis, ...] = ()
    judged_under: str = ""  # the paper whose readings its claims use
    is_of_a_paper: bool = False  # whether a paper's folder declares it
    paper_numbers: tuple[float, ...] = ()  # numbers in its texts that need no test
    module: str = ""  # the module that declares it
    texts: StatementTexts | None = None  # texts in the file next to the module
    holds: Mapping[str, Holds] = dataclasses.field(default_factory=dict)  # tests of hypotheses by id
    axes: tuple[FreeAxis, ...] = ()  # its free parameters
    shared_axes: tuple[FreeAxis, ...] = ()  # the paper's free parameters that its claims can vary

    @property
    def plain(self) -> Statement:
        """The statement as plain data, with its free parameters."""
        statement = Statement(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Statement)})
        axes = free_of(statement)
        if not axes:
            return statement
        claims = [registered()[id] for id in deciding(self) if id in registered()]
        readings = find_paper(self.judged_under).readings if self.judged_under in paper_names() else {}
        first_readings = list(readings.values())[:1]  # empty if the paper is not installed
        settings = []  # dims and parameters of the cells that the claims read, under the first reading
        for claim, reading in itertools.product(claims, first_readings):
            settings += [
                (claim.experiment.dims, reading.params(**claim.experiment.cells[cell]))
                for cell in claim.cells or claim.experiment.cells
            ]
        recorded = {axis: [axis.recorded_at(params, dims) for dims, params in settings] for axis in axes}
        return dataclasses.replace(statement, free=[described(axis, recorded[axis]) for axis in axes])

    def _register(self) -> "Declared":
        if not is_id(self.id):
            raise DeclarationError(f"statement {shortened(self.id)} of {self.paper}: its id must be {ID_WORDS}.")
        if not (self.where and self.says):
            raise DeclarationError(
                f"statement {self.id} of {self.paper}: give where=... (its place) and claim=... (what it states)."
            )
        if (self.paper, self.id) in _DECLARED:
            raise DeclarationError(f"statement {self.id} of {self.paper} is already declared. Choose another id.")
        for axis in self.axes:
            if not isinstance(axis, FreeAxis):
                raise DeclarationError(
                    f"statement {self.id}: free={axis!r} must be an axis of `verification.region`: Order(...), "
                    "Scale(...), Size(...) or Choice(...)."
                )
            axis.check()
        _DECLARED[self.paper, self.id] = self
        return self

    def claim(
        self,
        id: str,
        runs: Experiment | Selection,
        criterion: Criterion,
        *,
        role: str,
        says: str | None = None,
        formula: str = "",
        where: str = "",
        labels: Sequence[str] | Callable[..., Sequence[str]] | None = None,
        hypotheses: Iterable[str | Hypothesis] = (),
        instead: str | None = None,
        exact: bool = False,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a claim's measuring function.

        The function receives one run of a selection at a time, or all runs by name if `runs` is an experiment. It
        returns numbers (B,) or components (V, B). Each role is also a method, such as `LEMMA.charitable(...)`.

        Args:
            id: the claim's id. In a paper's folder it omits the paper's name, as in "lemma-8.experts".
            runs: an experiment, or a selection of its cells (`Experiment.over`, `Experiment.together`).
            says: the claim in one sentence. Claims with a file of texts need neither this nor `formula` and `where`.
            formula, where: the formula in LaTeX and the place in the paper, by default the statement's.
            labels: names of the components, if the selection has none.
            hypotheses: further hypotheses, by id if `paper.toml` has their sentences.
            instead: id of the claim that holds if this one does not.
            exact: whether the claim has no randomness, as for algebra, enumeration or a constructed instance.
        Raises: DeclarationError for an unknown role, a missing sentence, an incomplete declaration, or a taken id.
        """
        if role not in list(Role):
            raise DeclarationError(f"claim {id}: role={role!r} must be one of {', '.join(Role)}.")
        claim_role = Role(role)
        selection = runs if isinstance(runs, Selection) else Selection(runs, None)
        free = self._free_of(selection, claim_role)
        texts = self._claim_texts(self._full_id(id), says, formula, where)
        checks = (*self.checks, *(_hypothesis(hypothesis, self.module, self.holds) for hypothesis in hypotheses))

        def declare(function: F) -> F:
            claim = Claim(
                id=self._full_id(id),
                paper=self.judged_under,
                **claim_words(texts, self, self.judged_under, claim_role),
                experiment=selection.experiment,
                observe=selection.observer(function),
                criterion=selection.bind(criterion),
                labels=_labeller(selection, labels),
                hypotheses=_checker(checks, selection) if checks else None,
                replaced_by=instead and self._full_id(instead),
                module=self.module or function.__module__,
                function=function,
                is_computed=exact or selection.is_computed,
                ranges=_ranges_of(criterion, function),
                free=free,
                cells=selection.cells,
            )
            return self._register_claim(claim_role, claim, function)

        return declare

    charitable = functools.partialmethod(claim, role=Role.CHARITABLE)
    literal = functools.partialmethod(claim, role=Role.LITERAL)
    step = functools.partialmethod(claim, role=Role.STEP)
    figure = functools.partialmethod(claim, role=Role.FIGURE)
    intervention = functools.partialmethod(claim, role=Role.INTERVENTION)
    suspect = functools.partialmethod(claim, role=Role.SUSPECT)
    competitor = functools.partialmethod(claim, role=Role.COMPETITOR)
    replacement = functools.partialmethod(claim, role=Role.CORRECTED)
    ours = functools.partialmethod(claim, role=Role.OURS)

    def _register_claim(self, role: Role, claim: Claim, function: F) -> F:
        register(claim)
        self.roles[claim.id] = role
        if hasattr(function, "__dict__"):  # built-in functions lack it
            setattr(function, CLAIMED, True)
        return function

    def _claim_texts(self, id: str, says: str | None, formula: str, where: str) -> ClaimTexts:
        if says is not None:
            return ClaimTexts(claim=says, formula=formula, where=where)
        if self.texts is None:
            raise DeclarationError(f"claim {id}: describe the claim in one sentence, as says=...")
        if id not in self.texts.claims:
            raise DeclarationError(f'claim {id}: the file of the texts lacks [{self.id}.claims."{id}"]. Add it.')
        return self.texts.claims[id]

    def _free_of(self, selection: Selection, role: Role) -> tuple[FreeAxis, ...]:
        if role not in VARIED:
            return ()
        for axis in self.axes:
            require_varies(axis, selection.experiment)
        if role is Role.FIGURE:  # its settings are the figure's
            return self.axes
        shared = [axis for axis in self.shared_axes if varies(axis, selection.experiment, selection.cells)]
        return (*self.axes, *shared)

    def cite(self, *ids: str, role: str) -> None:
        """Count claims of other statements as claims of this statement, in this role."""
        for id in ids:
            self.roles[self._full_id(id)] = Role(role)

    def _full_id(self, id: str) -> str:
        if not self.is_of_a_paper or id.startswith(f"{self.judged_under}."):
            return id
        return f"{self.judged_under}.{id}"


VARIED = {Role.CHARITABLE, Role.LITERAL, Role.FIGURE}  # roles whose claims vary free parameters
_DECLARED: dict[tuple[str, str], Declared] = {}


def statement(
    id: str,
    *,
    module: str = "",
    hypotheses: Iterable[str | Hypothesis] = (),
    holds: Mapping[str, Holds] | None = None,
    free: Iterable[FreeAxis] | FreeAxis | None = None,
    shared_free: Iterable[FreeAxis] = (),
    **texts: Any,
) -> Declared:
    """Declare a statement of a paper. Its texts are in the TOML file next to `module`, or arguments.

    Args:
        id: an id such as "lemma-8", unique in its paper.
        module: `__name__` of the declaring module. Its folder has the texts unless `claim` is given.
        hypotheses: hypotheses in addition to the file's. A reading that violates one makes claims INAPPLICABLE.
        holds: tests of hypotheses by id. `(dims, run)` gives a Boolean, or one for each replicate.
        free: free parameters for `challenge`, as axes of `verification.region`.
        shared_free: the paper's free parameters, which are the default of `free`.
        texts: entries of the file, which are fields of `verification.texts.StatementTexts` and of `Deciding`.
    Raises: DeclarationError for an incomplete declaration or a taken id.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> from moe_theory.verification.statement import identity
        >>> dims = continual.Dims(max_experts=2, num_tasks=3, num_features=4, num_samples=2)
        >>> cells = {"M = 2": {"num_experts": 2}}
        >>> runs = mt.Experiment("loads", dims, continual.system(dims), cells, num_rounds=3, replicates=64)
        >>> loads = mt.statement("loads", paper="continual", where="Algorithm 1", claim="A round has one expert.")
        >>> says = "After three rounds the experts have had three tasks."
        >>> @loads.charitable("mine.loads", runs.at("M = 2"), identity(within=1e-9), says=says)
        ... def surplus(run):
        ...     return abs(run.state.visits.sum(axis=0) - 3.0)  # one number per replicate, (B,)
        >>> mt.verify("continual.loads", readings="quick")[0].status is mt.Status.SUPPORTED
        True
    """
    holds = holds or {}
    words = _texts_of(id, module, texts)
    if not texts.get("claim"):  # the texts are in a file
        hypotheses = (*paper_texts(module).all, *words.hypotheses, *hypotheses)
    home = paper_of(module)  # the paper whose folder has the module, or None
    owner = words.paper or home
    if owner is None:
        problem = f"the module {module or 'that declares it'} is not in a paper's folder"
        raise DeclarationError(f"statement {shortened(id)}: name its paper as paper=..., because {problem}.")
    checks = tuple(_hypothesis(hypothesis, module, holds) for hypothesis in hypotheses)
    plain = plain_statement(id, owner, module, words, [check.text for check in checks])
    return Declared(
        **{field.name: getattr(plain, field.name) for field in dataclasses.fields(Statement)},
        checks=checks,
        judged_under=home or owner,
        is_of_a_paper=home is not None,
        paper_numbers=tuple(words.paper_numbers),
        module=module,
        texts=None if texts.get("claim") else words,
        holds=holds,
        axes=(free,) if isinstance(free, FreeAxis) else tuple(free or ()),
        shared_axes=tuple(shared_free) if free is None else (),
    )._register()


def _texts_of(id: str, module: str, texts: Mapping[str, Any]) -> StatementTexts:
    if texts.get("claim"):
        return given_texts(id, texts)
    if not module:
        raise DeclarationError(f"statement {shortened(id)}: give claim=..., or module=__name__ if a file has texts.")
    return statement_texts(module, id)


def _hypothesis(hypothesis: str | Hypothesis, module: str, holds: Mapping[str, Holds]) -> Hypothesis:
    if isinstance(hypothesis, Hypothesis):
        return hypothesis
    if hypothesis not in holds:
        raise DeclarationError(f"holds=...: {unknown_name('hypothesis', hypothesis, holds)}")
    return Hypothesis(sentence_of(paper_texts(module), module, hypothesis), holds[hypothesis])


def free_of(statement: Statement) -> tuple[FreeAxis, ...]:
    """Return the free parameters that all deciding claims can vary. There are none if only literal claims decide."""
    for paper in {id.partition(".")[0] for id in statement.roles}.intersection(paper_names()):
        find_paper(paper).import_claims()
    claims = [registered()[id] for id in deciding(statement) if id in registered() and statement.roles[id] in DECIDING]
    if not claims:
        return ()
    return tuple(axis for axis in claims[0].free if all(axis in claim.free for claim in claims))


def declared() -> list[Declared]:
    return list(_DECLARED.values())


def statements_tested_by(claims: Iterable[str]) -> list[Statement]:
    """Return the statements that the claims with these ids test."""
    ids = set(claims)
    return [declaration.plain for declaration in declared() if ids & declaration.roles.keys()]


def alike(run: Run, numbers: Any) -> np.ndarray:
    """Return a number or components (V,) repeated for every replicate, (B,) or (V, B)."""
    numbers = np.asarray(numbers, np.float64)
    return np.broadcast_to(numbers[..., None], (*numbers.shape, len(run.replicates)))


def _ranges_of(criterion: Criterion, function: Callable[..., Any]) -> dict[str, Range]:
    values = {"predicted": criterion.value, "scale": criterion.scale, "observed": function}
    ranges = {name: range_of(value) for name, value in values.items()}
    return {name: declared for name, declared in ranges.items() if declared is not None}


def _labeller(selection: Selection, labels: Any) -> Callable[[Runs], Sequence[str]] | None:
    if labels is None:
        if selection.labels is None:
            return None
        return lambda runs: list(selection.labels or ())
    if callable(labels):
        return lambda runs: selection.call(labels, runs)[0]  # the first cell's must name all components
    return lambda runs: list(labels)


def _checker(hypotheses: Sequence[Hypothesis], selection: Selection) -> Callable[[Any, Runs], list[tuple[str, bool]]]:
    def check(dims: Any, runs: Runs) -> list[tuple[str, bool]]:
        names = selection.cells or tuple(runs)
        results = []
        for hypothesis in hypotheses:
            failing = [name for name in names if not np.all(hypothesis.holds(dims, runs[name]))]
            where = f" (not for {', '.join(failing)})" if 0 < len(failing) < len(names) else ""
            results.append((hypothesis.text + where, not failing))
        return results

    return check
