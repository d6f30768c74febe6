"""Lemma 6: the size of the gates."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.setting import FEWER_EXPERTS, MORE_EXPERTS, statement
from moe_theory.verification.statement import identity, rate

LEMMA_6 = statement("lemma-6", module=__name__, free=experiments.FREE_AT_LEVEL)


@LEMMA_6.charitable("lemma-6.gates", experiments.BY_SCALE, rate(at_least=0.5), hypotheses=MORE_EXPERTS)
@LEMMA_6.charitable("lemma-6.gates-fewer", experiments.BY_SCALE_FEWER, rate(at_least=0.5), hypotheses=FEWER_EXPERTS)
def largest_gate(run) -> np.ndarray:
    return run.records.gate_size.max(axis=0).astype(np.float64)


@LEMMA_6.step("lemma-6.bound", experiments.BY_SCALE, identity(within=1e-6))
def gate_excess(run) -> np.ndarray:
    params = run.params
    last = int(run.rounds[-1])
    step_size = float(params.learning_rate)
    largest_cost = float(params.balance_weight) * int(params.num_experts)
    t1 = experiments.stage_rounds(params)
    early_bound = step_size * t1 * largest_cost
    late_bound = early_bound + step_size * (last - t1) * largest_cost / t1
    ratio = np.maximum(
        experiments.up_to_t1(run, "gate_size").max(axis=0) / early_bound,
        experiments.from_to(run, "gate_size", first=t1 + 1, last=last).max(axis=0) / late_bound,
    )
    return np.maximum(ratio - 1, 0)
