"""Table II: as printed, and with its methods on the digits testbeds, where no rival drops tokens."""

from collections.abc import Sequence

import numpy as np

from moe_theory.merging import policies
from moe_theory.merging.experiments import BESIDE_TABLE_2, METHODS_OF_TABLE_2, TESTBEDS, computed, lead_over
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import alike, bound, identity, probability

COLUMNS = ("Tanbr", "RL", "Switch", "Soft", "NUCB")
RIVALS = COLUMNS[1:]
# Scores in the order of `COLUMNS`, with both metrics for tasks that have two.
TASKS: dict[str, tuple[tuple[float, ...], ...]] = {
    "CoLA": ((42.9,), (42.1,), (43.2,), (43.8,), (40.4,)),
    "MNLI": ((75.3,), (75.7,), (71.5,), (74.0,), (73.2,)),
    "MRPC": ((78.4, 84.4), (77.0, 83.3), (79.3, 85.6), (79.9, 85.9), (80.8, 84.6)),
    "QNLI": ((84.1,), (82.6,), (82.8,), (82.9,), (82.6,)),
    "QQP": ((82.0, 74.8), (81.6, 74.2), (81.6, 75.2), (81.5, 74.6), (81.9, 74.3)),
    "RTE": ((63.8,), (65.3,), (62.3,), (62.8,), (62.8,)),
    "SST-2": ((91.5,), (91.2,), (90.4,), (90.6,), (90.3,)),
    "STS-B": ((86.1, 85.9), (83.6, 83.8), (84.3, 84.1), (85.8, 85.7), (83.3, 82.8)),
}
BY_TASK = np.array([[np.mean(row[place]) for row in TASKS.values()] for place in range(len(COLUMNS))])
LEADS = BY_TASK[0] - BY_TASK[1:]  # (rivals, tasks)
AVERAGES = (75.43, 74.95, 74.41, 75.10, 74.14)  # as printed
LEAST_TASKS = len(TASKS) // 2 + 1
STUDENT = 2.365  # two-sided 5 % point of Student's t at 7 degrees of freedom
SAME = 0.01  # difference of accuracy that counts as "the same or even better"

TABLE_2 = statement("table-2", module=__name__)


@TABLE_2.charitable("table-2.highest", computed(*RIVALS), identity(within=0))
def lead_of_average(run) -> np.ndarray:
    means = BY_TASK.mean(axis=1)
    return alike(run, np.maximum(excess(means[1:], means[0]), excess(np.array(AVERAGES[1:]), AVERAGES[0])))


@TABLE_2.charitable("table-2.most-tasks", computed(*RIVALS), bound(at_least=LEAST_TASKS))
def tasks_ahead(run) -> np.ndarray:
    return alike(run, np.sum(LEADS > 1e-9, axis=1))  # equal scores may differ by rounding


@TABLE_2.literal("table-2.averages", computed(*COLUMNS), identity(within=0.005 + 1e-9))  # two decimals
def error_of_average(run) -> np.ndarray:
    return alike(run, np.abs(BY_TASK.mean(axis=1) - AVERAGES))


@TABLE_2.literal("table-2.every-task", computed(*TASKS), identity(within=0))
def lead_of_best_rival(run) -> np.ndarray:
    return alike(run, excess(BY_TASK[1:].max(axis=0), BY_TASK[0]))


@TABLE_2.ours("table-2.beyond-chance", computed(*RIVALS), bound(at_least=STUDENT))
def leads_in_errors(run) -> np.ndarray:
    return alike(run, LEADS.mean(axis=1) / (LEADS.std(axis=1, ddof=1) / np.sqrt(len(TASKS))))


def claim_beside(id: str, mix: str, methods: Sequence[str], role: str) -> None:
    """Declare that no method's final accuracy is more than a point above Tanbr's, on most streams."""
    runs = TESTBEDS[mix].together(policies.TANBR, *methods)
    test_beside = TABLE_2.claim(id, runs, probability(at_least=0.5), role=role, labels=methods)
    test_beside(lambda tanbr, *rivals: np.stack([lead_over(tanbr, rival) >= -SAME for rival in rivals]))


for mix in ("fixed", "dynamic", "agreeing"):
    claim_beside(f"table-2.{mix}", mix, (*METHODS_OF_TABLE_2, policies.NUCB), "literal")
claim_beside("table-2.beside-dynamic", "dynamic", BESIDE_TABLE_2, "ours")
