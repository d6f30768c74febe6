"""Lemma 10: softmax probabilities of two experts whose gate outputs, after round T, are set delta apart."""

import numpy as np
from jaxtyping import Float

from moe_theory.continual.claims.lemmas_1_2 import gate_output_pairs
from moe_theory.continual.claims.measurements import claim, rate
from moe_theory.continual.experiments import ROUTER_GRID, ROUTER_SCALE, router_cell
from moe_theory.verify.claim import Runs, named

CELL = router_cell(ROUTER_SCALE)
SMALL_GAPS = (1e-4, 1e-3, 1e-2, 1e-1)  # close to 0
BOUNDED_GAPS = (1 / 512, 1 / 64, 1 / 8, 1.0)
LARGE_GAPS = (2.0, 8.0, 32.0, 128.0)  # from not close to 0 on
TOLERANCE = 1e-9  # of probabilities in float64


def probabilities_at(runs: Runs, gaps: tuple[float, ...]) -> Float[np.ndarray, "B gaps 2"]:
    outputs = np.repeat(gate_output_pairs(runs[CELL])[:, :1], len(gaps), axis=1)
    outputs[..., 0] = outputs[..., 1] + np.asarray(gaps)
    weights = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True))[..., :2]


def _difference(gaps: tuple[float, ...]):
    return lambda runs: np.abs(np.diff(probabilities_at(runs, gaps), axis=-1))[..., 0]


def _by_gap(gaps: tuple[float, ...]):
    return named(*(f"delta = {gap:g}" for gap in gaps))


@rate("continual.lemma-10.near", at_least=1.0, where="Lemma 10, first case")
class Lemma10Near:
    """Two experts' probabilities differ by O(delta), for a small gap delta of their gate outputs."""

    formula = r"\delta_\Theta \to 0 \Rightarrow |\pi_m - \pi_{m'}| = O(\delta_\Theta)"
    experiment = ROUTER_GRID
    labels = _by_gap(SMALL_GAPS)
    abscissa = SMALL_GAPS
    observe = _difference(SMALL_GAPS)


@rate("continual.lemma-10.far", at_least=1.0, where="Lemma 10, second case", replaced_by="continual.lemma-10.exact")
class Lemma10Far:
    """They differ by Omega(delta) for gaps that are not small: the difference grows at least in proportion.

    The lemma's "otherwise" is read as gaps from 2 to 128, although Lemma 6 keeps gates, and so gate outputs, small.
    """

    formula = r"|\pi_m - \pi_{m'}| = \Omega(\delta_\Theta)"
    experiment = ROUTER_GRID
    labels = _by_gap(LARGE_GAPS)
    abscissa = LARGE_GAPS
    observe = _difference(LARGE_GAPS)


@rate("continual.lemma-10.far-bounded", at_most=1.0, where="Lemma 10, second case, for bounded gaps")
class Lemma10FarBounded:
    """For gaps up to 1 they differ by Omega(delta): towards 0 the difference shrinks no faster than in proportion.

    From gaps of 1/512 on, since Omega is about the limit: pi_m + pi_m' grows with the gap as well, so that between 1/8
    and 1 alone the slope is near 1.16, above 1, although the difference stays above a multiple of the gap.
    """

    formula = r"\delta_\Theta \leq 1 \Rightarrow |\pi_m - \pi_{m'}| = \Omega(\delta_\Theta)"
    experiment = ROUTER_GRID
    labels = _by_gap(BOUNDED_GAPS)
    abscissa = BOUNDED_GAPS
    observe = _difference(BOUNDED_GAPS)


def _shortfall(gaps: tuple[float, ...], lesser):
    """How far |pi_m - pi_m'| falls short of what `lesser` makes of both probabilities, times the gap."""

    def observe(runs: Runs) -> np.ndarray:
        probabilities = probabilities_at(runs, gaps)
        difference = np.abs(np.diff(probabilities, axis=-1))[..., 0]
        return np.maximum(lesser(probabilities) * np.asarray(gaps) - difference, 0)

    return observe


@claim("continual.lemma-10.smaller", where="Lemma 10, proof of the second case", kind="identity", margin=TOLERANCE)
class Lemma10Smaller:
    """They differ by at least min(pi_m, pi_m') delta, at small gaps and at large ones; the largest shortfall.

    The proof's step, whose pi_m' is that of the expert of lower gate output.
    """

    formula = r"|\pi_m - \pi_{m'}| \geq \min(\pi_m, \pi_{m'}) |h_m - h_{m'}|"
    experiment = ROUTER_GRID
    labels = _by_gap(SMALL_GAPS + LARGE_GAPS)
    observe = _shortfall(SMALL_GAPS + LARGE_GAPS, lambda probabilities: probabilities.min(axis=-1))


@claim("continual.lemma-10.exact", where="replaces Lemma 10, second case", kind="identity", margin=TOLERANCE)
class Lemma10Exact:
    """They differ by exactly (pi_m + pi_m') tanh(delta/2), which grows like delta for small gaps and stays below 1."""

    formula = r"|\pi_m - \pi_{m'}| = (\pi_m + \pi_{m'}) \tanh (\delta_\Theta / 2)"
    experiment = ROUTER_GRID
    labels = _by_gap(SMALL_GAPS + LARGE_GAPS)

    @staticmethod
    def observe(runs: Runs) -> np.ndarray:
        gaps = SMALL_GAPS + LARGE_GAPS
        probabilities = probabilities_at(runs, gaps)
        return _difference(gaps)(runs) - probabilities.sum(axis=-1) * np.tanh(np.asarray(gaps) / 2)
