"""Lemmas 3 and 4 and Theorem 1: what is said of the reward network, its confidence widths and the regret.

What the lemmas suppose of the network's width is out of reach (`theory.least_width`), so that each stands twice: as it
is, where it does not apply, and of the network that Tanbr has, where its conclusion is tried all the same. The bounds
on the regret are of that network too: they need no hypothesis to hold, as each is above T at these T.
"""

import numpy as np

from moe_theory.merging import corrected, policies, theory
from moe_theory.merging.claims.values import BY_RATIO, claim, over, recorded
from moe_theory.merging.experiments import ABLATION, DIMS, NUM_ROUNDS, SMOOTHNESS_RATIOS, SURFACE, ratio_cell
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, alike, excess, named

CONFIDENCE = 0.2  # delta of Lemmas 3 and 4 and of Theorem 1; the experiments' own, 1, would make them say nothing
NUM_LAYERS = DIMS.num_hidden + 1  # L
_TANBR = policies.TANBR
_RATIO_CELLS = [ratio_cell(ratio) for ratio in SMOOTHNESS_RATIOS]
_DISTANCE = r"\lVert \theta_t - \theta_0 \rVert_2 \le 2 \sqrt{t / (w \lambda)}"
_GAP = r"f^*(x_t^*) - f^*(x_t) \le 2 \min\{\gamma \lVert g / \sqrt{w} \rVert_{Z_{t-1}^{-1}}, 1\} + \nu_1 \rho^{h_t}"
_NEURAL = (
    r"3 \sqrt{T} \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2} \left[ v \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2 - "
    r"2 \log \delta} + 2 \sqrt{\lambda S} \right]"
)


def _distance_excess(runs: Runs) -> np.ndarray:
    """By how much the network is further from its start than Lemma 3 says, at the worst recorded slot (B,)."""
    run = runs[_TANBR]
    allowed = 2 * np.sqrt(run.rounds / (DIMS.width * float(run.params.regularization)))
    return excess(recorded(run, "distance"), allowed[:, None]).max(axis=0)


def _is_wide(dims, runs: Runs) -> list[tuple[str, bool]]:
    params = runs[_TANBR].params
    leaves = float(theory.leaf_bound(float(NUM_ROUNDS), params))
    least = theory.least_width(dims.width, NUM_ROUNDS, leaves, NUM_LAYERS, float(params.regularization), CONFIDENCE)
    return [(f"the width {dims.width} is at least {least:.1e}, for a constant of 1", dims.width >= least)]


@claim("merging.lemma-3.distance", where="Lemma 3", kind="identity")
class Distance:
    """A network that is as wide as Lemma 3 asks stays within 2 sqrt(t/(w lambda)) of where it began."""

    formula = _DISTANCE
    experiment = SURFACE["peaked"]
    labels = named("largest excess")
    hypotheses = _is_wide
    observe = _distance_excess


@claim("merging.lemma-3.distance-at-64", where="Lemma 3, of a network of width 64", kind="identity")
class DistanceInPractice:
    """Tanbr's network of width 64 stays within 2 sqrt(t/(w lambda)) of where it began."""

    formula = _DISTANCE
    experiment = SURFACE["peaked"]
    labels = named("largest excess")
    observe = _distance_excess


def _widths(run: Run) -> np.ndarray:
    """The right side of (9) without the terms for the network's width, at each recorded slot (R, B)."""
    return np.asarray(theory.gap_bound(recorded(run, "width"), 0.0, recorded(run, "depth"), run.params))


def _gap_of(run: Run) -> np.ndarray:
    return np.all(recorded(run, "regret") <= _widths(run), axis=0)


def _gap_holds(runs: Runs) -> np.ndarray:
    return _gap_of(runs[_TANBR])


def _linearization(dims, runs: Runs) -> list[tuple[str, bool]]:
    params = runs[_TANBR].params
    error = theory.linearization_error(float(NUM_ROUNDS), dims.width, NUM_LAYERS, float(params.regularization))
    return [*_is_wide(dims, runs), (f"its terms for the width, {error:.1e}, are below 1", error < 1)]


@claim("merging.lemma-4.gap", where="Lemma 4, Eq. (9)", kind="probability")
class Gap:
    """Where Lemma 4 applies, a slot loses at most what (9) says in all recorded slots, with probability 1 - delta."""

    formula = _GAP
    experiment = SURFACE["peaked"]
    side = "at_least"
    hypotheses = _linearization
    observe = _gap_holds
    predict = staticmethod(lambda runs: 1 - CONFIDENCE)


def _declare_gap(surface: str) -> None:
    @claim(
        f"merging.lemma-4.gap-at-64-{surface}",
        where=f"Lemma 4, Eq. (9) without the terms for the width, at a width of 64, rho = 0.9, reward `{surface}`",
        kind="probability",
    )
    class GapInPractice:
        """Tanbr's slots lose at most twice their confidence width and nu_1 rho^h, all recorded ones together."""

        formula = _GAP
        experiment = SURFACE[surface]
        side = "at_least"
        observe = _gap_holds
        predict = staticmethod(lambda runs: 1 - CONFIDENCE)


for _surface in ("peaked", "shares"):
    _declare_gap(_surface)


@claim(
    "merging.lemma-4.gap-at-64-by-ratio",
    where="Lemma 4, Eq. (9) without the terms for the width, of a network of width 64, reward `peaked`",
    kind="probability",
)
class GapByRatio:
    """At each rho of the paper slots lose at most twice their confidence width and nu_1 rho^h, all recorded ones."""

    formula = _GAP
    experiment = ABLATION
    side = "at_least"
    labels = BY_RATIO
    observe = over(_RATIO_CELLS, _gap_of)
    predict = staticmethod(lambda runs: 1 - CONFIDENCE)


@claim("merging.assumption-1.best-leaf", where="Assumption 1, iii) and iv), as Lemma 4 uses it", kind="probability")
class BestLeaf:
    """The leaf with the best weights has a candidate within nu_1 rho^h of their reward, in all recorded slots."""

    formula = r"f^*(x_t^*) - f^*(x_{h_t^*, i_t^*}) \le \nu_1 \rho^{h_t^*}"
    experiment = ABLATION
    side = "at_least"
    labels = BY_RATIO
    observe = over(_RATIO_CELLS, lambda run: _is_near_best(run))
    predict = staticmethod(lambda runs: 1 - CONFIDENCE)


def _is_near_best(run: Run) -> np.ndarray:
    """Whether no recorded slot's best leaf has a candidate that loses more than nu_1 rho^h (B,)."""
    diameter = float(run.params.smoothness) * float(run.params.smoothness_ratio) ** recorded(run, "best_depth")
    return np.all(recorded(run, "best_gap") <= diameter, axis=0)


def _bounds(run: Run) -> list[theory.RegretBound]:
    """(6) of each replicate, with the determinant of Z, of the gradients of the weights picked, for that of M."""
    leaves = float(theory.leaf_bound(float(NUM_ROUNDS), run.params))
    information = np.log1p(NUM_ROUNDS * leaves / float(run.params.regularization))
    dimensions = recorded(run, "log_determinant")[-1] / information
    return [theory.theorem_1(NUM_ROUNDS, float(dimension), leaves, confidence=CONFIDENCE) for dimension in dimensions]


def _right_side(runs: Runs) -> np.ndarray:
    return np.array([bound.confidence + bound.norm + bound.remainder for bound in _bounds(runs[_TANBR])])


def _neural_side(runs: Runs) -> np.ndarray:
    return np.array([bound.confidence + bound.norm for bound in _bounds(runs[_TANBR])])


def _repaired_side(runs: Runs) -> np.ndarray:
    params = runs[_TANBR].params
    return np.array([corrected.regret_bound(NUM_ROUNDS, neural, params) for neural in _neural_side(runs)])


def _regret(runs: Runs) -> np.ndarray:
    return recorded(runs[_TANBR], "cumulative_regret")[-1]


def _slots(runs: Runs) -> np.ndarray:
    """T, which no regret of rewards in [0, 1] exceeds."""
    return alike(runs[_TANBR], NUM_ROUNDS)


@claim(
    "merging.theorem-1.regret",
    where="Theorem 1, Eq. (6), its term with J taken as 0, of a network of width 64",
    kind="upper_bound",
    replaced_by="merging.theorem-1.right-form",
)
class RegretBound:
    """Tanbr's regret is at most the right side of (6)."""

    formula = r"R \le " + _NEURAL + " + T + 1"
    experiment = SURFACE["peaked"]
    labels = named("R_T")
    observe = _regret
    predict = _right_side
    trivial = _slots


@claim(
    "merging.theorem-1.neural-part",
    where="Theorem 1, Eq. (6) without T + 1, of a network of width 64",
    kind="upper_bound",
)
class NeuralRegretBound:
    """Tanbr's regret is at most the right side of (6) without T + 1."""

    formula = r"R \le " + _NEURAL
    experiment = SURFACE["peaked"]
    labels = named("R_T")
    observe = _regret
    predict = _neural_side
    trivial = _slots


@claim(
    "merging.theorem-1.right-form",
    where="replaces Theorem 1: the worst sum of nu_1 rho^h in place of T + 1, which says little at this T too",
    kind="upper_bound",
)
class RightRegretBound:
    """Tanbr's regret is at most the neural part of (6) and the largest sum of nu_1 rho^h, without 2 sum Gamma-bar."""

    formula = r"R \le " + _NEURAL + r" + \max \sum_{t \le T} \nu_1 \rho^{h_t}"
    experiment = SURFACE["peaked"]
    labels = named("R_T")
    observe = _regret
    predict = _repaired_side
    trivial = _slots
