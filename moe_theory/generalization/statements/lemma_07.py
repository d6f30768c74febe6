"""Lemma 7: a second sample in place of the true risk."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import CELL_GAPS, is_beyond, risk_difference, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import bound, identity, ranged

COIN_GAPS = {25: (0.28,), 100: (0.13, 0.17)}  # m -> gaps
BY_CELLS = experiments.FEW_CELLS.over("num_experts", *CELL_GAPS)
BY_SAMPLES = experiments.COIN.over("num_samples")
COIN_LABELS = [f"m = {samples}, gap {gap}" for samples, gaps in COIN_GAPS.items() for gap in gaps]
CELL_LABELS = [f"T = {experts}, gap {gap}" for experts, gaps in CELL_GAPS.items() for gap in gaps]

LEMMA_7 = statement("lemma-7", module=__name__)


def gaps_of(run) -> np.ndarray:
    return np.array(CELL_GAPS[int(run.params.num_experts)])


def gaps_of_coin(run) -> np.ndarray:
    return np.array(COIN_GAPS[int(run.params.num_samples)])[:, None]


def weighted(run, name: str) -> np.ndarray:
    """Return the factor of ghost sampling where a field is above each of its cell's gaps, 0 elsewhere (V, B)."""
    gaps = gaps_of(run)
    return theory.ghost_factor(int(run.params.num_samples), gaps[:, None]) * is_beyond(run, name, gaps)


@ranged(low=0, high=1)
def is_beyond_half(run) -> np.ndarray:
    return is_beyond(run, "paired_gap", gaps_of(run) / 2)


@LEMMA_7.literal("lemma-7.as-printed", BY_CELLS, identity(within=0.0), labels=CELL_LABELS)
def excess_as_printed(run) -> np.ndarray:
    return excess(weighted(run, "paired_gap"), is_beyond_half(run))


@LEMMA_7.charitable("lemma-7.as-meant", BY_CELLS, bound(at_most=is_beyond_half), labels=CELL_LABELS)
@ranged(low=0, high=1)
def weighted_gap(run) -> np.ndarray:
    return weighted(run, "gap")


@ranged(low=0, high=1)
def is_coin_beyond_half(run) -> np.ndarray:
    return np.abs(risk_difference(run)) > gaps_of_coin(run) / 2


@LEMMA_7.charitable("lemma-7.one-function", BY_SAMPLES, bound(at_most=is_coin_beyond_half), labels=COIN_LABELS)
@ranged(low=0, high=1)
def weighted_coin(run) -> np.ndarray:
    is_above = np.abs(shown(run, "risk") - 0.5) > gaps_of_coin(run)
    return theory.ghost_factor(int(run.params.num_samples), gaps_of_coin(run)) * is_above
