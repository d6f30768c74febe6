"""Numbers that claims are made of, one a replicate and component, from the runs of `experiments`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from moe_theory.merging.experiments import LARGE_CONSTANT, SMOOTHNESS_RATIOS, tree_cell
from moe_theory.merging.params import Params
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values, excess, named
from moe_theory.verify.claim import claim as declared

claim = functools.partial(declared, paper="merging")


def recorded(run: Run, name: str) -> Float[np.ndarray, "R B"]:
    """A recorded observable in every recorded slot, in float64."""
    return np.asarray(getattr(run.records, name), np.float64)


def final(cell: str, name: str) -> Values:
    """An observable of the last slot (B,)."""
    return lambda runs: recorded(runs[cell], name)[-1]


def at_rounds(run: Run, rounds: Sequence[int]) -> Int[np.ndarray, " R"]:
    """Indices of these slots among the recorded ones."""
    places = np.searchsorted(run.rounds, rounds)
    assert np.array_equal(run.rounds[places], rounds), "slots that are recorded"
    return places


def mean_value(run: Run, first: int, last: int) -> Float[np.ndarray, " B"]:
    """Mean of psi' f*(x) over slots `first` + 1 to `last`; 0 or a recorded slot each."""
    total = recorded(run, "total_value")
    before = 0.0 if first == 0 else total[at_rounds(run, [first])[0]]
    return (total[at_rounds(run, [last])[0]] - before) / (last - first)


def in_most(smaller: Values, larger: Values) -> Values:
    """Whether one number is below another in each replicate, for claims that it is so in most of them.

    A sign test: regrets and accuracies of 64 replicates are too skewed for an interval of their mean at the error level
    of a report.
    """
    return lambda runs: smaller(runs) < larger(runs)


def half(runs: Runs) -> float:
    """The share of replicates that a claim on most of them supposes."""
    del runs
    return 0.5


HORIZONS = (16, 64, 256, 1024)  # T at which corrected bounds are compared
ANY_TREE = tree_cell("deepest", SMOOTHNESS_RATIOS[-1])  # for claims that read no tree
BY_RATIO = named(*(f"rho = {ratio:g}" for ratio in SMOOTHNESS_RATIOS))


def has_room(dims, runs: Runs) -> list[tuple[str, bool]]:
    """That the runs are those of Algorithm 1, whose tree has room for any number of leaves."""
    del dims
    return [("no split was left out", all(not run.records.left_out.any() for run in runs.values()))]


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """`value` of each of these cells (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)


def over_ratios(rule: str, value: Callable[[Run], np.ndarray], constant: float = 1.0) -> Values:
    """`value` of each cell of a rule (B,), one component a rho."""
    return over([tree_cell(rule, ratio, constant) for ratio in SMOOTHNESS_RATIOS], value)


def horizon(run: Run) -> int:
    """T."""
    return int(run.rounds[-1])


def beyond(name: str, bound: Callable[[Run], Any]) -> Callable[[Run], np.ndarray]:
    """Excess of an observable over its bound in the worst slot (B,)."""
    return lambda run: excess(recorded(run, name), np.reshape(bound(run), (-1, 1))).max(axis=0)


def candidates(run: Run) -> np.ndarray:
    """N_t, the active leaves that slot t picks from (R, B)."""
    after = recorded(run, "num_active")
    return np.concatenate([np.ones_like(after[:1]), after[:-1]])


def beyond_for_both_constants(rule: str, name: str, bound: Callable[[int, Params], float]) -> Values:
    """Excess of an observable after T slots over its bound for T, at the worst of `HORIZONS` and either C."""

    def value(run: Run) -> np.ndarray:
        bounds = np.array([bound(slots, run.params) for slots in HORIZONS])
        return excess(recorded(run, name)[np.array(HORIZONS) - 1], bounds[:, None]).max(axis=0)

    small, large = over_ratios(rule, value), over_ratios(rule, value, LARGE_CONSTANT)
    return lambda runs: np.maximum(small(runs), large(runs))
