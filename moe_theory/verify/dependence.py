"""What a claim's samples depend on: for readings that cannot change them it is judged once.

Readings differ in some parameters of an experiment. These matter to a claim if it reads them itself, or states or
records that they change by way of the system's program. What the program uses is found in it: it is traced, and not
run. What the claim reads is found by calling its functions on runs of made-up numbers. On others it may read more, so
that the real ones are guarded.
"""

import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.interpreters import partial_eval

from moe_theory.core.errors import OWN_CODE, InvalidClaimError
from moe_theory.core.random import root_key
from moe_theory.core.system import Observe, System
from moe_theory.runs import Cell, Run
from moe_theory.verify.claim import Claim, Experiment, Runs

NUM_MADE_UP = 2  # replicates of a run of made-up numbers


class Difference(NamedTuple):
    """What tells a cell under one reading from the same under others."""

    fields: frozenset[str]  # of its parameters that they set to different values
    reaches_runs: bool  # whether these can change its states or records


Differences = Mapping[str, Difference]  # by cell


def differences(experiment: Experiment, cells: Sequence[Cell], others: Sequence[Cell]) -> Differences | None:
    """What tells an experiment's cells under one reading from those under another; None where that cannot be told.

    Only of runs that a program makes from the start is it known what they depend on: others are taken to differ.
    """
    is_traced = experiment.measure is None and experiment.start is None
    found = {}
    for cell, other in zip(cells, others, strict=True):
        names = getattr(cell.params, "_fields", None)
        if names is None or type(cell.params) is not type(other.params):
            return None
        pairs = {name: (getattr(cell.params, name), getattr(other.params, name)) for name in names}
        fields = frozenset(name for name, (one, another) in pairs.items() if not _is_same(one, another))
        is_same_program = is_traced and _types(cell.params) == _types(other.params)
        found[cell.name] = Difference(fields, bool(fields) and not (is_same_program and _ignores(cell, fields)))
    return found


def _ignores(cell: Cell, fields: frozenset[str]) -> bool:
    try:
        return _program_of(cell).ignores(fields)
    except OWN_CODE:  # of a faulty system, which its runs will tell
        return False


def together(one: Differences, other: Differences) -> Differences:
    """What tells three readings apart, from what tells the second and the third from the first."""
    return {
        name: Difference(mine.fields | other[name].fields, mine.reaches_runs or other[name].reaches_runs)
        for name, mine in one.items()
    }


def depending_on_chance(experiment: Experiment, cells: Sequence[Cell]) -> Differences:
    """The cells whose states or records a replicate's key changes, for a claim in which nothing random is to enter.
    Stored runs, and those that begin with states of their own, are taken to be random. Of measured ones it cannot be
    told: that their replicates do not differ is all that is known.
    """
    if experiment.measure is not None:
        return {}
    is_traced = experiment.start is None and experiment.stored is None
    random = [cell for cell in cells if not is_traced or _is_random(cell)]
    return {cell.name: Difference(frozenset(), reaches_runs=True) for cell in random}


def _is_random(cell: Cell) -> bool:
    try:
        return _program_of(cell).is_random
    except OWN_CODE:  # of a faulty system, which its runs will tell
        return False


def is_indifferent(claim: Claim, cells: Sequence[Cell], between: Differences) -> bool:
    """Whether a claim reads nothing of made-up runs in which readings differ. False if it cannot be called on them."""
    guard = Guard(between)
    runs = guard.watch(_MadeUp(cells, between))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if claim.hypotheses is not None:
                claim.hypotheses(claim.experiment.dims, runs)
            for function in (claim.observe, claim.predict, claim.scale, claim.trivial, claim.labels):
                if function is not None:
                    function(runs)
    except OWN_CODE:  # whatever a guard, or numbers that no run has, make of a claim's own code
        return False
    return guard.read is None


class Guard:
    """Refuses a claim whatever of its runs it is not to depend on, and says why it is not."""

    def __init__(self, between: Differences, why: str = "") -> None:
        self.between, self.why = between, why
        self.read: str | None = None  # what was refused, even if the claim went on without it

    def watch(self, runs: Runs) -> Runs:
        """The runs, of which nothing else can be read."""
        return _WatchedRuns(runs, self)

    def check(self) -> None:
        """Raise InvalidClaimError if anything was refused."""
        if self.read is not None:
            raise InvalidClaimError(f"it reads {self.read}, {self.why}")

    def refuse(self, what: str) -> None:
        self.read = what
        self.check()


class _WatchedRuns(Mapping[str, Run]):
    def __init__(self, runs: Runs, guard: Guard) -> None:
        self._runs, self._guard = runs, guard

    def __getitem__(self, name: str) -> Any:
        run, difference = self._runs[name], self._guard.between.get(name)
        forbidden = frozenset({"state", "records"} if difference and difference.reaches_runs else ())
        if difference is None or not (difference.fields or forbidden):
            return run
        if difference.fields:
            run = run._replace(params=_Watched(run.params, f"params of {name!r}", difference.fields, self._guard))
        return _Watched(run, repr(name), forbidden, self._guard)

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


class _Watched:
    """A NamedTuple that is read by its fields, those that are forbidden left out. It is no tuple, so that nothing reads
    it as one unseen."""

    def __init__(self, inner: Any, name: str, forbidden: frozenset[str], guard: Guard) -> None:
        self._inner, self._name, self._forbidden, self._guard = inner, name, forbidden, guard

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]  # checks of types pass
        return type(self._inner)

    def __getattr__(self, field: str) -> Any:
        if field == "_replace":
            return self._replaced
        value = getattr(self._inner, field)
        if field in self._forbidden or field not in self._inner._fields:  # a method may read anything
            self._guard.refuse(f"{field} of {self._name}")
        return value

    def _replaced(self, **changes: Any) -> "_Watched":
        inner, forbidden = self._inner._replace(**changes), self._forbidden - changes.keys()
        return _Watched(inner, self._name, forbidden, self._guard)

    def _whole(self, *_: Any) -> Any:
        self._guard.refuse(self._name)

    __iter__ = __getitem__ = __len__ = __eq__ = __hash__ = __repr__ = __array__ = __reduce_ex__ = _whole


class _MadeUp(Mapping[str, Run]):
    """Runs of ones, in the shapes of the cells' runs; without states and records where these may not be read."""

    def __init__(self, cells: Sequence[Cell], between: Differences) -> None:
        self._cells, self._between = {cell.name: cell for cell in cells}, between

    def __getitem__(self, name: str) -> Run:
        cell, replicates = self._cells[name], np.arange(NUM_MADE_UP)
        if self._between[name].reaches_runs:
            return Run(cell.params, cell.rounds, replicates, None, None)
        state, record = _program_of(cell).shapes

        def ones(leaf: Any, *outer: int) -> np.ndarray:
            return np.broadcast_to(np.ones((), leaf.dtype), (*outer, *leaf.shape, NUM_MADE_UP))

        records = jax.tree.map(lambda leaf: ones(leaf, len(cell.rounds)), record)
        return Run(cell.params, cell.rounds, replicates, jax.tree.map(ones, state), records)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


class _Program:
    """What makes the runs of cells, traced for one replicate as far as is asked for."""

    def __init__(self, system: System, observe: Observe, keeps_state: bool, kind: Any, types: tuple[Any, ...]) -> None:
        self.system, self.observe, self.keeps_state, self.kind, self.types = system, observe, keeps_state, kind, types

    @property
    def shapes(self) -> tuple[Any, Any]:
        """Of the state that is kept, and of what is recorded of a round."""
        return self._rounds[1]

    def ignores(self, fields: frozenset[str]) -> bool:
        """Whether neither states nor records depend on these parameters. What initial states depend on is not followed
        any further: a round takes long to trace.
        """
        return fields.isdisjoint(self._behind_start) and fields.isdisjoint(self._rounds[0])

    @property
    def is_random(self) -> bool:
        """Whether what is kept of a run depends on its key."""
        return self._rounds[2]

    @functools.cached_property
    def _behind_start(self) -> frozenset[str]:
        """The parameters that initial states depend on."""
        program = jax.make_jaxpr(self.system.init)(*self._inputs)
        return self._behind(program, [True] * len(program.out_avals))[0]

    @functools.cached_property
    def _rounds(self) -> tuple[frozenset[str], tuple[Any, Any], bool]:
        """The parameters that what is kept of a run depends on, its shapes, and whether it depends on the key."""

        def run(key: Any, params: Any) -> Any:
            def one_round(state: Any, _: None) -> Any:
                state, info = self.system.step(key, state, params)
                return state, self.observe(state, info)

            return jax.lax.scan(one_round, self.system.init(key, params), None, 2)

        program, (state, records) = jax.make_jaxpr(run, return_shape=True)(*self._inputs)
        is_kept = [*(self.keeps_state for _ in jax.tree.leaves(state)), *(True for _ in jax.tree.leaves(records))]
        record = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), records)
        names, is_random = self._behind(program, is_kept)
        return names, (state if self.keeps_state else None, record), is_random

    @property
    def _inputs(self) -> tuple[Any, Any]:
        leaves = (jax.tree.unflatten(structure, parts) for structure, parts in self.types)
        return jax.eval_shape(lambda: root_key(0)), self.kind(*leaves)

    def _behind(self, program: Any, is_kept: list[bool]) -> tuple[frozenset[str], bool]:
        """The parameters that those results of a program of `_inputs` depend on which are kept, and whether they depend
        on its key.
        """
        _, is_used = partial_eval.dce_jaxpr(program.jaxpr, is_kept)
        flags = iter(is_used[1:])  # that of the key is the first
        leaves = zip(self.kind._fields, self.types, strict=True)
        return frozenset(name for name, (_, parts) in leaves if sum(next(flags) for _ in parts)), is_used[0]


_programs = functools.lru_cache(_Program)


def _program_of(cell: Cell) -> _Program:
    return _programs(cell.system, cell.observe, cell.keeps_state, type(cell.params), _types(cell.params))


def _types(params: Any) -> tuple[Any, ...]:
    """Of every parameter, its structure and its leaves' types: what a program is compiled for."""
    found = []
    for value in params:
        leaves, structure = jax.tree.flatten(value)
        types = [jax.typeof(leaf) for leaf in leaves]
        found.append((structure, tuple(jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in types)))
    return tuple(found)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter are the same, in type too."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
