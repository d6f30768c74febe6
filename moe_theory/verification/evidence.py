"""Evidence: runs of an experiment, and the samples that claims take from them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from moe_theory.core.errors import OWN_CODE, DeclarationError
from moe_theory.core.random import root_key
from moe_theory.core.system import Observe, System
from moe_theory.runs import Cell
from moe_theory.verification.claim import Claim, Experiment, Runs, require_replicates_last
from moe_theory.verification.criteria import Samples


def failed_hypotheses(claim: Claim, runs: Runs) -> list[str]:
    return [text for text, holds in _call(claim.hypotheses, [], claim.experiment.dims, runs) if not holds]


def collect(claim: Claim, runs: Runs, num_replicates: int) -> Samples:
    """The samples of a batch of replicates. Raises: DeclarationError for shapes or values that cannot be judged."""
    observed = _observed(claim, runs, num_replicates)
    criterion = claim.criterion
    if criterion.abscissa is not None and len(criterion.abscissa) != observed.shape[1]:
        raise DeclarationError(f"{len(criterion.abscissa)} grid points for {observed.shape[1]} components")
    like = observed[:, :1] if criterion.is_of_slopes else observed
    parts = {}
    for field, name, function in criterion.asked():
        parts[field] = None if function is None else _broadcast(claim, name, function(runs), like)
    if criterion.is_of_events and not np.all((observed == 0) | (observed == 1)):
        raise DeclarationError("observe gave values other than True and False, and an event happens or does not")
    return Samples(observed, **parts)


def random_cells(experiment: Experiment, cells: Sequence[Cell], claims: Sequence[Claim]) -> frozenset[str]:
    """The cells whose states or records a replicate's key changes; not asked unless a claim is declared exact. Runs
    that begin with states of their own are taken to be random. Of measured ones it cannot be known: replicates of a
    claim on them must agree, as of any exact one.
    """
    if experiment.measured is not None or not any(claim.is_computed for claim in claims):
        return frozenset()
    has_own_start = experiment.start is not None
    return frozenset(cell.name for cell in cells if has_own_start or _is_random(cell))


def _is_random(cell: Cell) -> bool:
    leaves, structure = jax.tree.flatten(cell.params)
    try:
        types = map(jax.typeof, leaves)
        shapes = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype, weak_type=each.weak_type) for each in types)
        return _depends_on_key(cell.system, cell.observe, cell.keeps_state, structure, shapes)
    except OWN_CODE:  # of a faulty system, which its runs will report
        return False


@functools.lru_cache
def _depends_on_key(system: System, observe: Observe, keeps_state: bool, structure: Any, shapes: tuple) -> bool:
    """Whether a run's records, or the state that it keeps, depend on its key: read in the program, which is not run."""

    def run(key: Any, params: Any) -> Any:
        def one_round(state: Any, _: None) -> Any:
            state, info = system.step(key, state, params)
            return state, observe(state, info)

        state, records = jax.lax.scan(one_round, system.init(key, params), None, 2)
        return (state if keeps_state else None), records

    program = jax.make_jaxpr(run)(root_key(0), jax.tree.unflatten(structure, shapes)).jaxpr
    return partial_eval.dce_jaxpr(program, [True] * len(program.outvars))[1][0]


def find_overflows(runs: Runs) -> dict[str, str]:
    """Error messages by name of the runs in which the final state of a replicate is NaN somewhere."""
    found = {}
    for name, run in runs.items():
        leaves = [leaf for leaf in map(np.asarray, jax.tree.leaves(run.state)) if leaf.dtype.kind == "f"]
        lost = [np.isnan(leaf).any(axis=tuple(range(leaf.ndim - 1))) for leaf in leaves]
        if count := int(np.sum(np.any(lost, axis=0))) if lost else 0:
            found[name] = (
                f"{count} of {len(run.replicates)} replicates of {name!r} are NaN after {run.rounds[-1]} rounds: they "
                "have overflowed. Change the parameters."
            )
    return found


def labels_of(claim: Claim, runs: Runs, rounds: np.ndarray, num_components: int) -> list[str]:
    """Names of the components, or of the recorded `rounds`. Raises: DeclarationError where there are not as many."""
    labels = ["mean"] if num_components == 1 else [f"component {index + 1}" for index in range(num_components)]
    abscissa = claim.criterion.abscissa
    if abscissa is not None and len(abscissa) == num_components:
        labels = [f"x = {place:.3g}" for place in abscissa]
    elif len(rounds) == num_components:
        labels = [f"t = {time}" for time in rounds]
    labels = list(_call(claim.labels, labels, runs))
    if len(labels) != num_components:
        raise DeclarationError(f"{len(labels)} labels for {num_components} components")
    return labels


def _call(function: Callable | None, default: Any, *arguments: Any) -> Any:
    return default if function is None else function(*arguments)


def _observed(claim: Claim, runs: Runs, num_replicates: int) -> np.ndarray:
    values = claim.observe(runs)
    if claim.function is not None:  # whose replicates are last, as its selection of runs has checked for a run
        require_replicates_last(claim.function, np.shape(values)[::-1], num_replicates)
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != num_replicates:
        raise DeclarationError(
            f"observe gave shape {np.shape(values)}, not ({num_replicates},) or ({num_replicates}, components): "
            "one row a replicate"
        )
    return _finite("observe", array)


def _broadcast(claim: Claim, name: str, values: Any, observed: np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1 and observed.shape[1] == 1 and len(array) == len(observed):
        array = array[:, None]
    try:
        array = np.broadcast_to(array, observed.shape)
    except ValueError:
        given, wanted, last = np.shape(values), observed.shape, ""
        if claim.function is not None:
            given, wanted, last = given[::-1], wanted[::-1], ": replicates last, (B,) or (V, B)"
        raise DeclarationError(f"{name} gave shape {given}, which does not broadcast to {wanted}{last}") from None
    return _finite(name, array)


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(array)):
        rows = int(np.sum(~np.isfinite(array).all(axis=1)))
        raise DeclarationError(f"{name} gave values that are not finite in {rows} of {len(array)} replicates")
    return np.ascontiguousarray(array)  # so that sums over replicates run in one order, however samples came about
