"""Eq. (10): a second sample in place of the true risk, in the proof of Theorem 1."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import CELL_GAPS, FEW_CELL_SAMPLES, is_beyond
from moe_theory.generalization.statements.setting import HOLDS, statement
from moe_theory.verification.statement import bound, ranged

MOST_DOUBT = 1 / 4  # Eq. (10) assumes that exp(-eps^2 m / 2) is at most this
GAPS = {
    experts: [gap for gap in gaps if theory.ghost_factor(FEW_CELL_SAMPLES, gap) >= 1 - 2 * MOST_DOUBT]
    for experts, gaps in CELL_GAPS.items()
}
RUNS = experiments.FEW_CELLS.over("num_experts", *GAPS)
LABELS = [f"T = {experts}, gap {gap}" for experts, gaps in GAPS.items() for gap in gaps]


def gaps_of(run) -> np.ndarray:
    return np.array(GAPS[int(run.params.num_experts)])


@ranged(low=0, high=2)
def twice_beyond_half(run) -> np.ndarray:
    return 2 * is_beyond(run, "paired_gap", gaps_of(run) / 2)


def is_little_doubt(dims, run) -> bool:
    return bool(np.all(np.exp(-(gaps_of(run) ** 2) * int(run.params.num_samples) / 2) <= MOST_DOUBT))


EQUATION_10 = statement("equation-10", module=__name__, holds={**HOLDS, "little-doubt": is_little_doubt})


@EQUATION_10.charitable("equation-10.ghost-sampling", RUNS, bound(at_most=twice_beyond_half), labels=LABELS)
@ranged(low=0, high=1)
def is_beyond_gap(run) -> np.ndarray:
    return is_beyond(run, "gap", gaps_of(run))
