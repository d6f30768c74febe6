"""Lemma 11: whether exploration gives every task, or cluster, an expert.

Sets follow (11), at the gates that route.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import corrected, experiments, interventions, theory
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Experiment, Selection
from moe_theory.verification.region import Size
from moe_theory.verification.statement import alike, identity, probability

COVERAGE_SIZES = ((2, 2), (3, 3), (3, 6), (6, 12), (6, 24), (10, 53))  # sets N and experts M
BY_SIZES = [f"N = {num_sets}, M = {num_experts}" for num_sets, num_experts in COVERAGE_SIZES]


def _covered(letter: str, experiment: Experiment) -> Selection:
    """Return the one cell, with a label that calls its number of sets N or K."""
    (params,) = experiment.cells.values()
    label = f"{letter} = {params['num_clusters']}, M = {params['num_experts']}"
    return Selection(experiment, cells=tuple(experiment.cells), labels=(label,))


OF_TASKS = _covered("N", experiments.COVERAGE)
OF_CLUSTERS = _covered("K", experiments.COVERAGE_CLUSTERS)
AMPLE_TASKS = _covered("N", experiments.AMPLE_COVERAGE)
AMPLE_CLUSTERS = _covered("K", experiments.AMPLE_COVERAGE_CLUSTERS)
# Runs without the auxiliary loss in the first rounds.
LATER_TASKS = _covered("N", interventions.LATER)
LATER_CLUSTERS = _covered("K", interventions.LATER_CLUSTERS)

LEAST_TASKS = experiments.AMPLE_SETS * experiments.AMPLE_MEMBERS
MOST_TASKS = experiments.COVERAGE_SETS * experiments.AMPLE_MEMBERS
FREE_SETS = Size("num_tasks", low=experiments.AMPLE_SETS, high=experiments.COVERAGE_SETS)  # every set is one task
FREE_CLUSTERS = Size("num_tasks", low=LEAST_TASKS, high=MOST_TASKS)
TASKS = statement("lemma-11-more-experts", module=__name__, free=(*experiments.FREE_COVERAGE, FREE_SETS))
CLUSTERS = statement("lemma-11-fewer-experts", module=__name__, free=(*experiments.FREE_COVERAGE, FREE_CLUSTERS))
CLUSTERS.cite("lemma-11.product", role="step")
CLUSTERS.cite("lemma-11.union", role="step")
MOSTLY = probability(at_least=1 - experiments.FAILURE)


def size_label(letter: str) -> Callable[[Run], list[str]]:
    """Return labels from a run's own sizes, which a search may vary."""
    return lambda run: [f"{letter} = {int(run.params.num_clusters)}, M = {int(run.params.num_experts)}"]


@TASKS.charitable("lemma-11.tasks-small-alpha", AMPLE_TASKS, MOSTLY, labels=size_label("N"))
@TASKS.literal("lemma-11.tasks", OF_TASKS, MOSTLY, labels=size_label("N"), instead="lemma-11.two-tasks")
@TASKS.intervention("lemma-11.tasks-later", LATER_TASKS, MOSTLY)
@CLUSTERS.charitable("lemma-11.clusters-small-alpha", AMPLE_CLUSTERS, MOSTLY, labels=size_label("K"))
@CLUSTERS.literal("lemma-11.clusters", OF_CLUSTERS, MOSTLY, labels=size_label("K"), instead="lemma-11.two-clusters")
@CLUSTERS.intervention("lemma-11.clusters-later", LATER_CLUSTERS, MOSTLY)
def no_set_is_empty(run) -> np.ndarray:
    row = np.searchsorted(run.rounds, experiments.stage_rounds(run.params))
    sets = run.records.sets[row, : int(run.params.num_experts)]
    has_expert = [np.any(sets == cluster, axis=0) for cluster in range(int(run.params.num_clusters))]
    return np.all(has_expert, axis=0)


def shortfalls(bound: Callable[[int, int], float]) -> Callable[[Run], np.ndarray]:
    """Return the shortfall of the exact probability from a lower bound, the same for every replicate."""
    values = [max(bound(*sizes) - corrected.coverage_probability(*sizes), 0.0) for sizes in COVERAGE_SIZES]
    return lambda run: alike(run, values)


NO_SHORTFALL = identity(within=1e-9)
TASKS.step("lemma-11.product", OF_TASKS, NO_SHORTFALL, labels=BY_SIZES, instead="lemma-11.union", exact=True)(
    shortfalls(theory.lemma_11)
)
TASKS.step("lemma-11.union", OF_TASKS, NO_SHORTFALL, labels=BY_SIZES, exact=True)(shortfalls(corrected.lemma_11))


@TASKS.replacement("lemma-11.two-tasks", OF_TASKS, identity(within=0))
@CLUSTERS.replacement("lemma-11.two-clusters", OF_CLUSTERS, identity(within=0))
def num_rounds_with_one_set(run) -> np.ndarray:
    sets = run.records.sets[run.rounds <= experiments.stage_rounds(run.params), : int(run.params.num_experts)]
    return np.sum(np.all(sets == sets[:, :1], axis=1), axis=0).astype(float)
