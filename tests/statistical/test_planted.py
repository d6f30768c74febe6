"""Planted theorems, true and false, judged from end to end: catches an engine that supports or refutes too easily."""

import numpy as np
import pytest
from judging import judge

from moe_theory import System, continual
from moe_theory.continual import exact
from moe_theory.continual.experiments import observe_metrics, pools_of
from moe_theory.core import random
from moe_theory.runs import Cell, run_cells
from moe_theory.verification import Claim, Experiment, Status
from moe_theory.verification.criteria import Equality
from moe_theory.verification.judgement import Prior, judge_means

pytestmark = pytest.mark.usefixtures("compiled_to_run")

DIMS = continual.Dims(max_experts=1, num_tasks=4, num_features=10, num_samples=6)
ERROR = 1e-6


def gaussian_system() -> System:
    """A user's own system: the paper's `learn` on arrivals without a signal column."""
    drawn = continual.system(DIMS)

    def step(key, state, params):
        units, normals = random.draws(key, 1, DIMS.num_features * DIMS.num_samples, state.experts.dtype)
        task = (units[0] * DIMS.num_tasks).astype(int)
        features = normals.reshape(DIMS.num_features, DIMS.num_samples)
        return continual.learn(state, continual.Arrival(task, features), units * 0, params)

    return System(drawn.init, step)


# One cluster: tasks near one another, so that unlearned truths weigh most and the ratio r shows.
EXPERIMENT = Experiment(
    name="gaussian",
    dims=DIMS,
    system=gaussian_system(),
    cells={"M=1": {"num_experts": 1, "num_clusters": 1, "cluster_spread": 0.1}},
    num_rounds=6,
    record_every=2,
    observe=observe_metrics,
    replicates=32768,  # five standard errors are 2 % of the mean: less than half of every planted error
)


def error_with_ratio(shift: float):
    """E[G_t] as in `exact.single_expert_gaussian`, with the ratio r shifted."""

    def predict(runs):
        run = runs["M=1"]
        ratio = 1 - DIMS.num_samples / DIMS.num_features + shift
        truths = run.state.pool.truths.astype(float)  # (N, d, B)
        norm = np.mean(np.sum(truths**2, axis=1), axis=0)[:, None]
        gap = np.mean(np.sum((truths - truths[:, None]) ** 2, axis=2), axis=(0, 1))[:, None]
        powers = ratio**run.rounds
        return powers * norm + (1 - powers) * (1 - 1 / run.rounds) * gap

    return predict


@pytest.fixture(scope="module")
def runs():
    params = continual.reading("unit-signal").params(**EXPERIMENT.cells["M=1"])
    cell = Cell("M=1", EXPERIMENT.system, params, EXPERIMENT.num_rounds, EXPERIMENT.record_every, EXPERIMENT.observe)
    return run_cells([cell], EXPERIMENT.replicates, seed=11, width=1024)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shift", "status"), [(0.0, Status.SUPPORTED), (0.05, Status.REFUTED), (-0.05, Status.REFUTED)]
)
def test_the_true_ratio_is_supported_and_a_wrong_one_refuted(runs, shift, status):
    claim = Claim(
        id="test.planted",
        paper="continual",
        where="Eq. (18), planted",
        statement="The ratio is 1 - s/d.",
        experiment=EXPERIMENT,
        observe=lambda runs: runs["M=1"].records.generalization_error.T,
        criterion=Equality(error_with_ratio(shift), 0.05),
    )
    verdict = judge(claim, "unit-signal", runs, seed=11, error=ERROR)
    assert verdict.status is status, verdict.reason


def test_the_planted_formula_is_the_exact_one(runs):
    pool = pools_of(runs["M=1"])[0]
    formula = error_with_ratio(0.0)(runs)[0]
    moments = exact.single_expert_gaussian(pool, DIMS.num_samples, 6)
    np.testing.assert_allclose(formula, moments.generalization_error[[1, 3, 5]], rtol=1e-6)


@pytest.mark.parametrize(("factor", "status"), [(1.05, Status.SUPPORTED), (0.95, Status.REFUTED)])
def test_a_bound_just_above_is_supported_and_just_below_refuted(runs, factor, status):
    observed = runs["M=1"].records.generalization_error.T.astype(float)
    bound = factor * error_with_ratio(0.0)(runs)
    assert judge_means(observed - bound, 0 * bound, ERROR, "upper_bound", Prior()).status is status
