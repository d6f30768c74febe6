"""What the paper's own numbers say of its sentences: Tables I and II, and how many parameters (3) has."""

import numpy as np

from moe_theory.merging.claims.values import ANY_TREE, claim
from moe_theory.merging.experiments import DIMS, TREES
from moe_theory.verify.claim import computed, excess, named

COLUMNS = ("Tanbr", "RL", "Switch", "Soft", "NUCB")
# Table II, task by task; of the tasks with two metrics both.
TABLE_2: dict[str, tuple[tuple[float, ...], ...]] = {
    "CoLA": ((42.9,), (42.1,), (43.2,), (43.8,), (40.4,)),
    "MNLI": ((75.3,), (75.7,), (71.5,), (74.0,), (73.2,)),
    "MRPC": ((78.4, 84.4), (77.0, 83.3), (79.3, 85.6), (79.9, 85.9), (80.8, 84.6)),
    "QNLI": ((84.1,), (82.6,), (82.8,), (82.9,), (82.6,)),
    "QQP": ((82.0, 74.8), (81.6, 74.2), (81.6, 75.2), (81.5, 74.6), (81.9, 74.3)),
    "RTE": ((63.8,), (65.3,), (62.3,), (62.8,), (62.8,)),
    "SST-2": ((91.5,), (91.2,), (90.4,), (90.6,), (90.3,)),
    "STS-B": ((86.1, 85.9), (83.6, 83.8), (84.3, 84.1), (85.8, 85.7), (83.3, 82.8)),
}
AVERAGES = (75.43, 74.95, 74.41, 75.10, 74.14)  # as printed
# Table I: seconds with 1, 2 and 3 experts active, one number where all experts are merged.
TOKEN, TASK = (1.81, 2.42, 3.05), (1.16, 1.78, 2.41)
TOKEN_MERGING, TASK_MERGING = 193.88, 3.01
SAVED, ROUGHLY = 0.35, 0.05  # "about 35 %"


def _by_task() -> np.ndarray:
    """Means of a task's metrics, by method and task."""
    return np.array([[np.mean(row[place]) for row in TABLE_2.values()] for place in range(len(COLUMNS))])


def _savings() -> np.ndarray:
    pairs = [*zip(TOKEN, TASK, strict=True), (TOKEN_MERGING, TASK_MERGING)]
    return np.array([1 - task / token for token, task in pairs])


@claim("merging.table-2.averages", where="Table II, last column", kind="identity", margin=0.005 + 1e-9)
class Averages:
    """Each average of Table II is the mean over tasks of the mean of a task's metrics, to its last digit."""

    formula = r"\left\lvert \bar{a} - \frac{1}{8} \sum_v a_v \right\rvert \le 0.005"
    experiment = TREES
    labels = named(*COLUMNS)
    observe = computed(ANY_TREE, lambda: np.abs(_by_task().mean(axis=1) - AVERAGES))


@claim(
    "merging.table-2.every-task",
    where="Section V-B: better performance on individual tasks, of Table II as printed",
    kind="identity",
)
class EveryTask:
    """On every task of Table II Tanbr's mean metric is at least that of every rival."""

    formula = r"a_v^{\text{Tanbr}} \ge \max_m a_v^m, \quad v = 1, \dots, 8"
    experiment = TREES
    labels = named(*TABLE_2)
    observe = computed(ANY_TREE, lambda: excess(_by_task()[1:].max(axis=0), _by_task()[0]))


@claim("merging.table-1.about-35-per-cent", where="Section I, of Table I as printed", kind="identity", margin=ROUGHLY)
class About35:
    """Table I's task-level rows save about 35 % of the seconds of its token-level rows, to within 5 %."""

    formula = r"\left\lvert 1 - \frac{s_{\text{task}}}{s_{\text{token}}} - 0.35 \right\rvert \le 0.05"
    experiment = TREES
    labels = named("1 expert", "2 experts", "3 experts", "merging")
    observe = computed(ANY_TREE, lambda: np.abs(_savings() - SAVED))


def _printed_parameters(depth: int) -> int:
    """p = w K + w V + w^2 (L - 1)."""
    return DIMS.width * (DIMS.max_experts + DIMS.num_tasks) + DIMS.width**2 * (depth - 1)


def _parameters(depth: int) -> int:
    """Entries of the L matrices of (3): (w, K), L - 2 times (w, w), and (V, w)."""
    return DIMS.width * (DIMS.max_experts + DIMS.num_tasks) + DIMS.width**2 * (depth - 2)


@claim("merging.equation-3.parameters", where="below Eq. (3): the number of parameters", kind="identity")
class NumParameters:
    """The number of parameters that the paper gives is that of the L matrices that (3) multiplies."""

    formula = r"p = wK + wV + w^2 (L - 1)"
    experiment = TREES
    labels = named("L = 2", "L = 3")
    observe = computed(ANY_TREE, lambda: [abs(_printed_parameters(depth) - _parameters(depth)) for depth in (2, 3)])
