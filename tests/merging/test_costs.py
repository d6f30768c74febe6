"""What serving costs, the testbed as a reward, and the evaluation's table, on a model of a few units."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError
from moe_theory.merging import costs, evaluation
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.serving import merge
from moe_theory.merging.system import system
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import VALIDATION, Recipe, examples
from moe_theory.runs.cells import Cell

SETTING = Recipe(num_tasks=2, num_experts=2, width=4, hidden=4, num_layers=1, num_heads=1, batch_size=8)
ROOT = mt.root_key(3)


@pytest.fixture(scope="module")
def deployment():
    return costs.untrained(SETTING)


@pytest.fixture(scope="module")
def data():
    return examples(SETTING, VALIDATION)


@jax.jit
def logits_of(model, weights, inputs):
    return transformer.forward(merge.weighted(model, weights), inputs, merge.single)


def answers(model, weights, inputs):
    return np.asarray(logits_of(model, weights, inputs)).argmax(-1)


class Ticks:
    """A clock on which every call takes as long as the one that ran said."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def run(self, seconds, calls, name):
        def call():
            calls.append(name)
            self.now += seconds

        return call


def test_every_run_is_timed_once_a_repetition_in_new_orders():
    """Would catch runs that are timed more often than others, seconds in another's column, and one order for all."""
    clock, calls = Ticks(), []
    runs = [clock.run(seconds, calls, seconds) for seconds in (1.0, 2.0, 4.0)]
    seconds = costs.interleaved(runs, 20, 0, clock)
    np.testing.assert_array_equal(seconds, np.broadcast_to([1.0, 2.0, 4.0], (20, 3)))
    timed = np.array(calls[3 * costs.WARM_UP :]).reshape(20, 3)
    np.testing.assert_array_equal(np.sort(timed, axis=1), seconds)
    assert len(np.unique(timed, axis=0)) > 3
    with pytest.raises(InvalidValueError, match="repeats=0"):
        costs.interleaved(runs, 0, 0)


def test_a_method_listed_twice_is_one_program(deployment, data):
    """Ratios are by repetition, and who merges slot by slot pays for it: against a clock with known ticks."""
    names = ["average", "merged", "average"]
    timer = costs.Timer(names, deployment, data.inputs[:6], data.tasks[:6])
    assert timer.serves[0].run is timer.serves[1].run is timer.serves[2].run
    moments = iter(np.arange(1000.0))
    table = timer.measure(5, clock=lambda: next(moments))
    np.testing.assert_array_equal(table.serving, 1)
    np.testing.assert_array_equal(table.merging, np.broadcast_to([0, 1, 0], (5, 3)))
    np.testing.assert_array_equal(table.ratio, np.broadcast_to([0.5, 1, 0.5], (5, 3)))
    np.testing.assert_array_equal(table.serving_ratio, 1)
    expert = 4 * (4 * 4 + 4 + 4 * 4 + 4)
    rest = 4 * ((16 * 4 + 4 + 4 * 4) + (4 * 4 + 4 * 3 * 4 + 3 * 4 + 4 * 4 + 4) + (2 * 4 + 4 * 10 + 10))
    np.testing.assert_array_equal(table.loaded_bytes, expert + rest)
    assert np.all(table.peak_bytes >= expert + rest + 6 * 4 * 16 * 4)
    assert np.all(table.merging_peak_bytes[[0, 2]] == 0)
    assert table.merging_peak_bytes[1] >= 3 * expert  # two experts go in, one comes out
    with pytest.raises(InvalidValueError, match="'merged'"):
        costs.Timer(["average"], deployment, data.inputs[:6], data.tasks[:6])


def test_clocks_are_experiments(deployment):
    """Would catch replicates that are not the ones asked for, and records that no claim could read."""
    measure = costs.latencies(["token-top-1-dense"], SETTING)
    cells = [Cell("of 4", system(Dims(2, 2)), Params(2, 2, slot_size=4), 1)]
    for first, count in ((0, 3), (3, 2)):
        run = measure(cells, first, count, 7)["of 4"]
        np.testing.assert_array_equal(run.replicates, np.arange(first, first + count))
        for name in ("merged", "token-top-1-dense"):
            of_method = run.records[name]
            assert all(leaf.shape == (1, count) and np.all(np.isfinite(leaf)) for leaf in of_method)
            np.testing.assert_allclose(
                of_method.ratio * (run.records["merged"].serving + run.records["merged"].merging),
                of_method.serving + of_method.merging,
            )


def test_a_step_of_fine_tuning_is_of_norms_and_routers():
    """Would catch a step without a gradient through the experts, which would need no more than serving does."""
    cells = [Cell("of 4", system(Dims(2, 2)), Params(2, 2, slot_size=4), 1)]
    run = costs.step_times(["merged", "token-top-1-capacity"], SETTING)(cells, 0, 2, 7)["of 4"]
    served = costs.latencies(["token-top-1-capacity"], SETTING)(cells, 0, 2, 7)["of 4"]
    for name, step in run.records.items():
        assert step.seconds.shape == (1, 2)
        assert np.all(step.peak_bytes > served.records[name].peak_bytes)


def test_rewards_are_the_models_accuracy(deployment, data):
    """Against answers counted in NumPy; would catch requests beyond the slot's size, and tasks in another's place."""
    reward = evaluation.of_model(deployment.model, data, 2, max_slot_size=64, num_valued=5)
    dims, params = Dims(2, 2), Params(2, 2, slot_size=40)
    weights = np.float32([0.3, 0.7])

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def slot(key):
        world = reward.draw(key, dims, params)
        mix = reward.mix(world, jnp.int32(1), params)
        return mix, reward.value(world, weights), reward.serve(key, world, weights, mix, params)

    mix, values, feedback = jax.device_get(slot(ROOT))
    assert int(feedback.counts.sum()) == 40
    assert abs(float(feedback.counts[0]) - 40 * float(mix[0])) < 25
    right = answers(deployment.model, weights, data.inputs) == data.labels
    chosen = np.linspace(0, len(right) // 2 - 1, 5).astype(int)
    np.testing.assert_allclose(values, right.reshape(2, -1)[:, chosen].mean(axis=1), atol=1e-6)
    hits = np.asarray(feedback.rewards) * np.asarray(feedback.counts)
    np.testing.assert_allclose(hits, np.rint(hits), atol=1e-4)
    assert abs(hits.sum() / 40 - float(np.asarray(mix) @ right.reshape(2, -1).mean(axis=1))) < 0.5
    for wrong in (Params(2, 2, slot_size=65), Params(3, 2)):
        with pytest.raises(InvalidValueError):
            reward.draw(ROOT, Dims(3, 2), wrong)


def test_the_evaluation_is_one_labelled_table(deployment, data, monkeypatch):
    """Would catch approaches that lose their names, costs in another row, and accuracies of another method's slots."""
    monkeypatch.setattr(evaluation, "best_accuracies", lambda model, data, mixes, key: np.ones(mixes.shape[:2]))
    table = evaluation.evaluate(deployment, data, ("merged", "average"), ("uniform",), 2, 4, repeats=2, slot_size=8)
    assert list(table.approach.values) == ["average", "uniform", "best-merge"]
    assert dict(table.accuracy.sizes) == {"mix": 2, "approach": 3, "seed": 2}
    for name, values in table.data_vars.items():
        assert np.all(np.isfinite(values)), name
    assert np.all((table.accuracy >= 0) & (table.accuracy <= 1))
    np.testing.assert_allclose(table.accuracy * 4 * 8, np.rint(table.accuracy * 4 * 8), atol=1e-4)
    assert np.all(table.accuracy.sel(approach="best-merge") == 1)
    assert np.all(table.ratio.sel(approach=["uniform", "best-merge"]) == 1)
    assert np.all(table.merging.sel(approach="average") == 0)
    assert np.all(table.merging.sel(approach="uniform") > 0)
    read = evaluation.summary(table)
    np.testing.assert_allclose(read.accuracy, table.accuracy.mean("seed"))
    assert read.accuracy_error.dims == ("mix", "approach")


def test_the_best_merge_is_at_least_as_good_as_any_expert(deployment, data, monkeypatch):
    """Would catch a search that ends where it began, or that is scored by the wrong mix."""
    monkeypatch.setattr(evaluation, "SEARCHED", 8)
    monkeypatch.setattr(evaluation, "ASCENT_STEPS", 20)
    quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    for name, static in (("_candidates", 3), ("_ascend", ())):
        monkeypatch.setattr(evaluation, name, quickly(getattr(evaluation, name).__wrapped__, static_argnums=static))
    mixes = np.float32([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    (best,) = evaluation.best_accuracies(deployment.model, data, mixes[None], ROOT)
    right = answers(deployment.model, np.float32([0.5, 0.5]), data.inputs) == data.labels
    assert np.all(best >= np.asarray(mixes) @ right.reshape(2, -1).mean(axis=1) - 0.02)
    assert best[2] <= (best[0] + best[1]) / 2 + 0.05


def test_the_best_merge_for_a_mix_is_searched_once(deployment, data, monkeypatch):
    """Would catch a search for each slot of a fixed mix, which takes minutes; and the accuracy of another mix."""
    searched, values = [], np.float32([0.25, 0.5])

    def ascend(model, data, candidates, found, mix):
        searched.append(tuple(np.asarray(mix)))
        return mix @ values

    monkeypatch.setattr(evaluation, "_candidates", lambda *_: (np.eye(2), np.eye(2)))
    monkeypatch.setattr(evaluation, "_ascend", ascend)
    fixed = np.float32([[[0.75, 0.25]] * 3, [[0.5, 0.5]] * 3])
    drifting = np.float32([[[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]])
    for mixes, number in ((fixed, 2), (drifting, 5)):
        searched.clear()
        found = evaluation.best_accuracies(deployment.model, data, mixes, ROOT)
        np.testing.assert_array_equal(found, mixes @ values)
        assert len(searched) == number
