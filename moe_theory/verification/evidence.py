"""Samples of claims from an experiment's runs."""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.interpreters import partial_eval

from moe_theory.core.errors import OWN_CODE, DeclarationError, InvalidValueError, MoeTheoryError, unknown_name
from moe_theory.core.random import root_key
from moe_theory.core.system import Observe, System
from moe_theory.runs import Cell, Run
from moe_theory.verification.claim import Claim, Experiment, Runs, require_replicates_last
from moe_theory.verification.criteria import Samples


class ClaimSample(NamedTuple):
    samples: Samples
    labels: list[str]  # names of the components, only in a claim's first sample
    cells: set[str]  # cells whose runs the claim read


class BrokenHypothesisError(Exception):
    """A claim's hypotheses that fail for its runs."""


def collect_sample(
    claim: Claim, runs: Runs, overflows: Mapping[str, str], random: Set[str], is_first: bool
) -> ClaimSample:
    """Return a claim's samples from some replicates.

    Args:
        overflows: faults of runs that the claim must not read.
        random: runs of which an exact claim may read only the parameters.
        is_first: whether to check hypotheses and name components.
    """
    first_run = next(iter(runs.values()))
    num_replicates = len(first_run.replicates)
    read_runs = _ReadRuns(runs)
    hypotheses = claim.hypotheses(claim.experiment.dims, read_runs) if is_first and claim.hypotheses else []
    broken = [text for text, holds in hypotheses if not holds]
    if broken:
        raise BrokenHypothesisError(f"fails here: {'; '.join(broken)}")
    hidden = random if claim.is_computed else frozenset()  # only samples of exact claims are restricted
    samples = collect(claim, _ReadRuns(read_runs, hidden), num_replicates)  # `read_runs` also records these reads
    for name in sorted(read_runs.read & overflows.keys()):
        raise InvalidValueError(overflows[name])
    labels = labels_of(claim, runs, samples.observed.shape[1]) if is_first else []
    return ClaimSample(samples, labels, read_runs.read)


def is_of_study(failure: BaseException) -> bool:
    """Return whether a failure gives only the study's claims an ERROR, and does not end the verification."""
    return not isinstance(failure, MoeTheoryError) or isinstance(failure, DeclarationError)


class _ReadRuns(Mapping[str, Run]):
    """Runs by name. The mapping records which runs are read. Of `random` runs it shows only the parameters."""

    def __init__(self, runs: Runs, random: Set[str] = frozenset()) -> None:
        self._runs = runs
        self._random = random
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._runs:
            raise unknown_name("cell", name, self._runs)
        self.read.add(name)
        run = self._runs[name]
        if name in self._random:
            return _Parameters(name, run)
        return run

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


class _Parameters:
    def __init__(self, name: str, run: Run) -> None:
        self._name = name
        self.params = run.params
        self.rounds = run.rounds
        self.replicates = run.replicates
        self.dims = run.dims

    def __getattr__(self, field: str) -> Any:
        raise DeclarationError(f"it is declared exact, but reads random {field} of {self._name!r}. Leave out `exact`.")


def collect(claim: Claim, runs: Runs, num_replicates: int) -> Samples:
    """Return the samples of a batch. Raises: DeclarationError if shapes or values cannot be tested."""
    observed = _observe(claim, runs, num_replicates)
    criterion = claim.criterion
    if criterion.abscissa is not None and len(criterion.abscissa) != observed.shape[1]:
        raise DeclarationError(f"abscissa has {len(criterion.abscissa)} grid points for {observed.shape[1]} components")
    target = observed[:, :1] if criterion.is_of_slopes else observed  # one exponent serves all components
    parts = {}
    for field, name, function in criterion.further_samples():
        parts[field] = None if function is None else _broadcast(claim, name, function(runs), target)
    if criterion.is_of_events and not np.all((observed == 0) | (observed == 1)):
        raise DeclarationError(
            "`observe` must return True or False for each run, because the claim is about a probability"
        )
    return Samples(observed, **parts)


def random_cells(experiment: Experiment, cells: Sequence[Cell], claims: Sequence[Claim]) -> frozenset[str]:
    """Return the cells whose states or records depend on a replicate's key, if some claim is exact.

    Runs with their own initial states count as random, but measured runs do not.
    """
    random: set[str] = set()
    if experiment.measured is not None or not any(claim.is_computed for claim in claims):
        return frozenset()
    for cell in cells:
        leaves, structure = jax.tree.flatten(cell.params)
        with contextlib.suppress(*OWN_CODE):  # the runs of a faulty system will report it
            types = map(jax.typeof, leaves)
            shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=array.weak_type) for array in types)
            if experiment.start or _depends_on_key(cell.system, cell.observe, cell.keeps_state, structure, shapes):
                random.add(cell.name)
    return frozenset(random)


@functools.lru_cache
def _depends_on_key(system: System, observe: Observe, keeps_state: bool, structure: Any, shapes: tuple) -> bool:
    def run(key: Any, params: Any) -> Any:
        def one_round(state: Any, _: None) -> Any:
            state, info = system.step(key, state, params)
            return state, observe(state, info)

        # In a second round, records can depend on what the key did to the state in the first.
        state, records = jax.lax.scan(one_round, system.init(key, params), None, length=2)
        return (state if keeps_state else None), records

    program = jax.make_jaxpr(run)(root_key(0), jax.tree.unflatten(structure, shapes)).jaxpr
    # Elimination of dead code tells which inputs the outputs need. The key is the first.
    _, is_used = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    return is_used[0]


def find_nan_runs(runs: Runs) -> dict[str, str]:
    messages = {}
    for name, run in runs.items():
        is_lost = np.zeros(len(run.replicates), bool)
        for leaf in map(np.asarray, jax.tree.leaves(run.state)):
            if leaf.dtype.kind == "f":
                is_lost |= np.isnan(leaf).any(axis=tuple(range(leaf.ndim - 1)))  # replicates are the last axis
        if is_lost.any():
            messages[name] = (
                f"{np.count_nonzero(is_lost)} of {len(is_lost)} replicates of {name!r} are NaN at the end. "
                "`simulate(..., debug=True)` names the operation that gives the first NaN. Change the parameters, or "
                "the part of the system that divides by zero or overflows."
            )
    return messages


def labels_of(claim: Claim, runs: Runs, num_components: int) -> list[str]:
    """Return the names of the components or rounds. Raises: DeclarationError if there are more or fewer names."""
    rounds = next(iter(runs.values())).rounds
    labels = ["mean"] if num_components == 1 else [f"component {index + 1}" for index in range(num_components)]
    abscissa = claim.criterion.abscissa
    if abscissa is not None and len(abscissa) == num_components:
        labels = [f"x = {place:.3g}" for place in abscissa]
    elif len(rounds) == num_components:
        labels = [f"t = {time}" for time in rounds]
    if claim.labels is not None:
        labels = list(claim.labels(runs))
    if len(labels) != num_components:
        raise DeclarationError(f"{len(labels)} labels for {num_components} components")
    return labels


def _observe(claim: Claim, runs: Runs, num_replicates: int) -> np.ndarray:
    values = claim.observe(runs)
    if claim.function is not None:  # `Selection.observer` has transposed its (B,) or (V, B)
        require_replicates_last(claim.function, np.shape(values)[::-1], num_replicates)
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != num_replicates:
        raise DeclarationError(
            f"observe returned shape {np.shape(values)}, not ({num_replicates},) or ({num_replicates}, components)"
        )
    return _require_finite("observe", array)


def _broadcast(claim: Claim, name: str, values: Any, target: np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1 and target.shape[1] == 1 and len(array) == len(target):
        array = array[:, None]
    try:
        array = np.broadcast_to(array, target.shape)
    except ValueError:
        shape = np.shape(values)
        expected = target.shape
        hint = ""
        if claim.function is not None:  # the message shows shapes of the function itself
            shape = shape[::-1]
            expected = expected[::-1]
            hint = ". The last axis must be for replicates, as in (B,) or (V, B)"
        raise DeclarationError(f"{name} returned shape {shape}, which does not broadcast to {expected}{hint}") from None
    return _require_finite(name, array)


def _require_finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(array)):
        rows = int(np.sum(~np.isfinite(array).all(axis=1)))
        raise DeclarationError(f"{name} returned values that are not finite in {rows} of {len(array)} replicates")
    return np.ascontiguousarray(array)  # so that sums over replicates always have the same order
