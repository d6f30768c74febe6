"""Numbers that claims are made of, one a replicate and component, from the runs of `experiments`."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from moe_theory.runs import Run
from moe_theory.verify.claim import Runs
from moe_theory.verify.components import Values as Values
from moe_theory.verify.components import alike as alike
from moe_theory.verify.components import computed as computed
from moe_theory.verify.components import excess as excess
from moe_theory.verify.components import named as named


def recorded(run: Run, name: str) -> Float[np.ndarray, "R B"]:
    """What every recorded slot shows under a name, in float64."""
    return np.asarray(getattr(run.records, name), np.float64)


def final(cell: str, name: str) -> Values:
    """What the last slot shows (B,)."""
    return lambda runs: recorded(runs[cell], name)[-1]


def at_rounds(run: Run, rounds: Sequence[int]) -> Int[np.ndarray, " R"]:
    """Places of these slots among the recorded ones."""
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

    A sign test: regrets and accuracies of 64 replicates are too skewed for an interval of their mean at a report's
    error, and the median of their differences needs none.
    """
    return lambda runs: smaller(runs) < larger(runs)


def half(runs: Runs) -> float:
    """What a claim on most replicates says of their share."""
    del runs
    return 0.5
