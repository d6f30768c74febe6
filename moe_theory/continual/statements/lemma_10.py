"""Lemma 10: softmax probabilities of two experts, with their gate outputs set delta apart after round T."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from moe_theory.continual.experiments import FREE_AT_LEVEL, ROUTER_GRID, ROUTER_SCALE, gate_output_pairs, router_cell
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Selection
from moe_theory.verification.statement import identity, rate

CELL = router_cell(ROUTER_SCALE)
SMALL_GAPS = (1e-4, 1e-3, 1e-2, 1e-1)  # gaps close to 0
BOUNDED_GAPS = (1 / 512, 1 / 64, 1 / 8, 1.0)
LARGE_GAPS = (2.0, 8.0, 32.0, 128.0)  # gaps not close to 0
GAPS = SMALL_GAPS + LARGE_GAPS
TOLERANCE = 1e-9  # rounding error of probabilities in float64

CLOSE = statement("lemma-10-close", module=__name__, free=FREE_AT_LEVEL)
APART = statement("lemma-10-apart", module=__name__, free=FREE_AT_LEVEL)


def set_apart(*gaps: float) -> Selection:
    """Return one run, with one component for each gap set between two of its gate outputs."""
    labels = tuple(f"delta = {gap:g}" for gap in gaps)
    return Selection(ROUTER_GRID, cells=(CELL,), labels=labels, abscissa=gaps)


def probabilities_at(run, *gaps: float) -> Float[np.ndarray, "B gaps 2"]:
    outputs = np.repeat(gate_output_pairs(run)[:, :1], len(gaps), axis=1)
    outputs[..., 0] = outputs[..., 1] + np.asarray(gaps)  # the gap is between the first two of all M experts
    weights = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True))[..., :2]


def difference_at(*gaps: float) -> Callable[[Run], Float[np.ndarray, "gaps B"]]:
    return lambda run: np.abs(np.diff(probabilities_at(run, *gaps), axis=-1))[..., 0].T


CLOSE.charitable("lemma-10.near", set_apart(*SMALL_GAPS), rate(at_least=1.0))(difference_at(*SMALL_GAPS))
APART.charitable("lemma-10.far-bounded", set_apart(*BOUNDED_GAPS), rate(at_most=1.0))(difference_at(*BOUNDED_GAPS))


@APART.literal("lemma-10.far", set_apart(*LARGE_GAPS), identity(within=TOLERANCE), instead="lemma-10.exact")
def short_of_proportion(run) -> np.ndarray:
    differences = difference_at(*LARGE_GAPS)(run)
    in_proportion = np.asarray(LARGE_GAPS)[:, None] / LARGE_GAPS[0] * differences[:1]
    return np.maximum(in_proportion - differences, 0)


@APART.step("lemma-10.smaller", set_apart(*GAPS), identity(within=TOLERANCE))
def shortfall(run) -> np.ndarray:
    probabilities = probabilities_at(run, *GAPS)
    least = probabilities.min(axis=-1) * np.asarray(GAPS)
    return np.maximum(least - np.abs(np.diff(probabilities, axis=-1))[..., 0], 0).T


@APART.replacement("lemma-10.exact", set_apart(*GAPS), identity(within=TOLERANCE))
def error_of_exact(run) -> np.ndarray:
    exact = probabilities_at(run, *GAPS).sum(axis=-1) * np.tanh(np.asarray(GAPS) / 2)
    return difference_at(*GAPS)(run) - exact.T
