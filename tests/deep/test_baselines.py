"""What is done against forgetting: catches images that are not replayed, importance that is not that of the weights, a
penalty that does not hold them, and a baseline that is not the locality loss's."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import deep
from moe_theory.core import baseline
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import baselines, datasets, networks, presets, tasks, training

LABELS = np.arange(90) % 3
FEATURES = (np.random.default_rng(0).normal(size=(90, 5)) + 2 * np.eye(5)[LABELS]).astype(np.float32)
DATA = datasets.from_arrays("features", FEATURES, LABELS, FEATURES[:15], LABELS[:15])
DIMS = deep.Dims(1, 3, 6, num_samples=10, num_tests=6, num_epochs=20, batch_size=5, num_kept=4, consolidates=True)
ALONE = dataclasses.replace(DIMS, num_kept=0, consolidates=False)
PARAMS = deep.reading("class-incremental").params(num_experts=1, num_rounds=6)


def run_of(dims, params):
    return mt.simulate(deep.continual.system(dims, DATA, (0, 1, 2)), mt.root_key(0), params, 6)


def test_room_alone_changes_nothing():
    _, with_room = run_of(DIMS, PARAMS)
    _, without = run_of(ALONE, PARAMS)
    np.testing.assert_allclose(with_room.generalization_error, without.generalization_error, rtol=1e-4)


def test_an_expert_keeps_the_newest_images_of_each_class():
    system = deep.continual.system(DIMS, DATA, (0, 1, 2))
    key, state = mt.root_key(0), None
    state, _ = mt.simulate(system, key, PARAMS, 2)
    assert (np.asarray(state.kept.rows[0, 1:]) == baselines.NO_IMAGE).all()
    before = np.asarray(state.kept.rows[0, 0])
    state, _ = mt.simulate(system, key, PARAMS, 4, state=state)
    rows, labels = np.asarray(state.kept.rows[0]), np.asarray(state.pool.train.labels)
    assert (labels[rows] == np.arange(3)[:, None]).all()
    np.testing.assert_array_equal(rows[0], before)


def test_replay_remembers_what_came_first():
    """In as many rounds a network without it has forgotten the first class."""
    _, forgets = run_of(DIMS, PARAMS)
    _, replays = run_of(DIMS, PARAMS._replace(replay_weight=1.0))
    assert forgets.class_accuracies[-1, 0] < 0.4
    assert replays.class_accuracies[-1, 0] > forgets.class_accuracies[-1, 0] + 0.3


def test_kept_images_are_weighed_by_how_many_there_are():
    kept = baselines.Kept(jnp.array([[4, 7], [baselines.NO_IMAGE] * 2]), ())
    found = baselines.replayed(kept, jnp.array([1.0, 2.0, 50.0, 50.0]), PARAMS._replace(replay_weight=3.0))
    assert float(found) == pytest.approx(3 * 1.5)


def test_importance_is_the_fisher_information_of_what_is_predicted():
    """Of logistic regression p (1 - p) x^2 whatever the labels are, summed over two tasks, at the weights after each;
    among classes the same for K = 2. Would catch squared gradients on the labels, which vanish once these are learned.
    """
    rng, params = np.random.default_rng(1), deep.Params(num_experts=1)
    expected, kept = np.zeros(5), baselines.nothing_kept(DIMS, jnp.zeros((1, 5)))
    kept = networks.expert(kept, jnp.int32(0))
    for task in range(2):
        weights, inputs = rng.normal(size=5), rng.normal(size=(10, 5))
        chances = 1 / (1 + np.exp(-inputs @ weights))
        expected += np.mean((chances * (1 - chances))[:, None] * inputs**2, axis=0)

        def entropies_of(parameters, place, inputs=inputs, task=task):
            among = params._replace(multi_class=task == 1)  # then of two classes, whose outputs are o and 0
            outputs = jnp.append(jnp.asarray(inputs)[place] @ parameters, 0.0)
            return training.answer_entropies(outputs, jnp.int32(task), among)

        weights = jnp.asarray(weights, jnp.float32)
        kept = baselines.updated(kept, jnp.int32(task), jnp.arange(10), entropies_of, weights, DIMS)
    np.testing.assert_allclose(kept.importance, expected, rtol=1e-4)


def test_the_penalty_holds_the_weights_that_matter():
    """And stays where explicit steps diverge: a free weight moves as before, a held one hardly."""
    kept = baselines.Kept(jnp.zeros((3, 4), jnp.int32), {"a": jnp.array([2.0, 0.0])})
    before, now = {"a": jnp.zeros(2)}, {"a": jnp.array([0.5, 0.5])}
    held = baselines.held(kept, now, before, 0.1, PARAMS._replace(ewc_strength=10.0))
    np.testing.assert_allclose(held["a"], [0.5 / 3, 0.5])  # w + rate lambda F (w - 0) = 0.5 there
    free, _ = run_of(DIMS, PARAMS)
    held, info = run_of(DIMS, PARAMS._replace(ewc_strength=1e6))
    assert np.isfinite(info.generalization_error).all()
    assert not np.array_equal(free.experts.params[0].kernel, held.experts.params[0].kernel)


def test_what_has_no_room_is_refused():
    for changes, named in (
        ({"replay_weight": 1.0}, "num_kept"),
        ({"ewc_strength": 1.0}, "consolidates"),
        ({"baseline_weight": 1.0}, "compares"),
    ):
        with pytest.raises(InvalidValueError, match=named):
            run_of(ALONE, PARAMS._replace(**changes))
    with pytest.raises(InvalidValueError, match="num_kept=11"):
        dataclasses.replace(DIMS, num_kept=11)


def test_the_preset_compares_them_with_experts():
    of = presets.preset("baselines-small")
    own = ["M = 1", "M = 4", "M = 4, no termination", "M = 1, replay", "M = 1, EWC", "M = 4, baseline"]
    assert list(of.cells()) == own
    pool = tasks.pool_of(datasets.load(of.data), of.classes)
    assert len(pool.train.counts) == of.dims.num_classes


@pytest.mark.parametrize(
    "paper",
    [pytest.param(deep.continual, id="continual"), pytest.param(deep.edge, id="edge", marks=pytest.mark.thorough)],
)
def test_the_baseline_of_a_preset_is_that_of_the_part(paper):
    """Would catch room that changes the printed run, and a weight that is another baseline than `locality=`."""
    dims = dataclasses.replace(ALONE, max_experts=3)
    params = deep.Params(num_experts=3, num_rounds=6, terminate=False, max_execution_delay=2, min_execution_delay=1)

    def gates(dims, weight, **parts):
        system = paper.system(dims, DATA, (0, 1, 2), **parts)
        return mt.simulate(system, mt.root_key(0), params._replace(baseline_weight=weight), 6)[0].gates

    room = dataclasses.replace(dims, compares=True)
    printed, against = gates(dims, 0.0), gates(dims, 0.0, locality=baseline.repaired)
    np.testing.assert_allclose(gates(room, 0.0), printed, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gates(room, 1.0), against, rtol=1e-5, atol=1e-7)
    assert abs(printed - against).max() > 1e-4
