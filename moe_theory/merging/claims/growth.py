"""The remark on Theorem 1: how the sum of nu_1 rho^h over the leaves picked grows, and the right side of (6)."""

from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.claims.values import ANY_TREE, BY_RATIO, claim, has_room, over_ratios, recorded
from moe_theory.merging.experiments import GROWTH, SMOOTHNESS_RATIOS, TREES, tree_cell
from moe_theory.merging.params import Params
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values, computed, excess

GROWING = (64, 256, 1024, 4096)
LARGEST_RATIO = SMOOTHNESS_RATIOS[-1]
SIZES = (1e6, 1e8, 1e10, 1e12)  # T at which the right side of (6) is looked at
_NEURAL = r"3 \sqrt{T} \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2} \left[ \cdot \right]"


def _growth(ratio: float, log_power: float) -> Values:
    """sum of nu_1 rho^(h_t) at `GROWING` (B, V), over the power of log T that is claimed beside that of T."""

    def values(runs: Runs) -> np.ndarray:
        run = runs[tree_cell("in-turn", ratio)]
        sums = recorded(run, "cumulative_discretization")[np.searchsorted(run.rounds, GROWING)].T
        return sums / np.log(GROWING) ** log_power

    return values


@claim(
    "merging.remark.boxes",
    where="Remark on Theorem 1, the last sum of (10), rho = 0.9",
    kind="rate",
    margin=0.1,
    replaced_by="merging.remark.right-exponent",
)
class Boxes:
    """The sum of nu_1 rho^h over the leaves picked, which (10) has beside its root, is O(sqrt(T) log T)."""

    formula = r"\sum_{t \le T} \nu_1 \rho^{h_t} = \mathcal{O}(\sqrt{T} \log T)"
    experiment = GROWTH
    side = "at_most"
    abscissa = GROWING
    hypotheses = has_room
    observe = _growth(LARGEST_RATIO, 1)
    predict = staticmethod(lambda runs: 0.5)


@claim("merging.remark.right-exponent", where="replaces the remark on Theorem 1, rho = 0.9", kind="rate", margin=0.05)
class RightExponent:
    """The sum grows no faster than T^a (log T)^(1-a) with a = log(2/rho) / log(2/rho^2)."""

    formula = (
        r"\sum_{t \le T} \nu_1 \rho^{h_t} = \mathcal{O}(T^a (\log T)^{1-a}), \quad "
        r"a = \frac{\log(2/\rho)}{\log(2/\rho^2)}"
    )
    experiment = GROWTH
    side = "at_most"
    abscissa = GROWING
    hypotheses = has_room
    observe = _growth(LARGEST_RATIO, 1 - corrected.regret_exponent(LARGEST_RATIO))
    predict = staticmethod(lambda runs: corrected.regret_exponent(LARGEST_RATIO))


@claim("merging.remark.finite-sum", where="replaces the remark on Theorem 1, at finite T", kind="identity", margin=1e-5)
class FiniteSum:
    """The sum is at most what T pulls give that fill up the smallest depths first, relative to that."""

    formula = (
        r"\sum_{t \le T} \nu_1 \rho^{h_t} \le \nu_1 \min_H \left[ T \rho^H + "
        r"\sum_{h < H} 2^h m_h (\rho^h - \rho^H) \right]"
    )
    experiment = GROWTH
    labels = BY_RATIO
    hypotheses = has_room
    observe = over_ratios("in-turn", lambda run: _relative_excess(run, GROWING))


def _relative_excess(run: Run, horizons: Sequence[int]) -> np.ndarray:
    sums = recorded(run, "cumulative_discretization")[np.searchsorted(run.rounds, horizons)]
    bounds = np.array([corrected.discretization_bound(horizon, run.params) for horizon in horizons])[:, None]
    return excess(sums / bounds, 1.0).max(axis=0)


@claim(
    "merging.remark.bound",
    where="Remark on Theorem 1, the right side of (6) itself",
    kind="rate",
    margin=0.1,
    replaced_by="merging.remark.neural-part",
)
class BoundItself:
    """The right side of (6), of a given effective dimension, is O(sqrt(T) log T)."""

    formula = _NEURAL + r" + T + 1 = \mathcal{O}(\sqrt{T} \log T)"
    experiment = TREES
    side = "at_most"
    abscissa = SIZES
    observe = computed(ANY_TREE, lambda: _right_sides(lambda bound: bound.confidence + bound.norm + bound.remainder))
    predict = staticmethod(lambda runs: 0.5)


@claim(
    "merging.remark.neural-part",
    where="replaces the remark on Theorem 1, without the T + 1 of (6)",
    kind="rate",
    margin=0.1,
)
class NeuralPart:
    """Without T + 1, of a given effective dimension, the right side of (6) is O(sqrt(T) log T)."""

    formula = _NEURAL + r" = \mathcal{O}(\sqrt{T} \log T)"
    experiment = TREES
    side = "at_most"
    abscissa = SIZES
    observe = computed(ANY_TREE, lambda: _right_sides(lambda bound: bound.confidence + bound.norm))
    predict = staticmethod(lambda runs: 0.5)


def _right_sides(part: Callable[[theory.RegretBound], float]) -> np.ndarray:
    """Parts of (6) over log T, for an effective dimension of 10, at N of Lemma 1."""
    params = Params(smoothness_ratio=LARGEST_RATIO)
    values = [part(theory.theorem_1(size, 10.0, float(theory.leaf_bound(size, params)))) for size in SIZES]
    return np.array(values) / np.log(SIZES)
