"""Numbers that claims are made of: errors of cells at recorded rounds, one a replicate, and the components' names."""

from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.experiments import FIGURE_3_DIMS, FIGURE_3_ROUNDS, cell_name
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs
from moe_theory.verify.components import Values as Values
from moe_theory.verify.components import named as named

ENOUGH = (30, 50, 70)  # the M of Fig. 3 that the paper calls sufficient
PAST_EXPLORATION = (30, 50)  # those of them whose T1 lies within the run


def by_servers(*numbers: int) -> Callable[[Runs], list[str]]:
    """Components named after numbers of servers."""
    return named(*(cell_name(number) for number in numbers))


def final_error(*numbers: int, per_coordinate: bool = False, time: int = FIGURE_3_ROUNDS) -> Values:
    """G once the tasks under way are completed, at round `time`, one component a number of servers."""
    divisor = FIGURE_3_DIMS.num_features if per_coordinate else 1

    def observe(runs: Runs) -> np.ndarray:
        columns = []
        for number in numbers:
            run = runs[cell_name(number)]
            columns.append(run.records.flushed[np.searchsorted(run.rounds, time)].astype(np.float64))
        return np.stack(columns, axis=1) / divisor

    return observe


def misrouted_share(run: Run) -> np.ndarray:
    """The share of the tasks past T1 that go to an expert that specialises in another kind, or in none (B,)."""
    first = experiments.explored_record(run)
    counts = run.records.misrouted.astype(np.float64)
    return (counts[-1] - counts[first]) / (run.rounds[-1] - run.rounds[first])


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """What `value` says of each cell's run (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)


def over_servers(numbers: Sequence[int], value: Callable[[Run], np.ndarray]) -> Values:
    """The same for cells that differ in their number of servers."""
    return over([cell_name(number) for number in numbers], value)


def specialists(run: Run) -> np.ndarray:
    """Whether each existing expert specialises in the kind that arrives in the last round (15), as bools (M, B)."""
    gates = run.records.gates[-1][: int(run.params.num_experts)].astype(np.float64)
    drives = np.einsum("mdb,ndb->mnb", gates, run.state.pool.signals.astype(np.float64))
    is_own = np.arange(drives.shape[1])[:, None] == run.records.task[-1]
    own = np.sum(np.where(is_own, drives, 0), axis=1)
    return own > np.max(np.where(is_own, -np.inf, drives), axis=1)
