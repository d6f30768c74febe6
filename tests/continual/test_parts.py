"""Parts of one's own in both algorithms: what arrives, where it goes, what an expert learns of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge
from tests.continual.cases import refuse

DIMS = continual.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3)
PARAMS = continual.Params(num_experts=4)
EDGE_DIMS = edge.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3, max_delay=6)
EDGE_PARAMS = edge.Params(num_experts=4, max_execution_delay=2, max_transfer_delay=3)
NUM_ROUNDS = 30
UNIT_POOL = continual.Pool(np.eye(3, 8), np.eye(3, 8), np.arange(3))


def drifting(key, dims, state, params):
    moving, drawing = jax.random.split(key)
    moves = 0.2 * jax.random.normal(moving, state.pool.truths.shape)
    pool = state.pool._replace(truths=state.pool.truths + moves)
    return pool, *continual.draw(drawing, dims, pool, params)


def ridge(models, arrival, params):
    features = arrival.features
    gram = features.T @ features + 0.1 * jnp.eye(features.shape[1])
    return jnp.linalg.solve(gram, (continual.targets_of(arrival) - models @ features).T).T @ features.T


def history(state, info):
    return state.experts, info, state.pool


def test_metrics_of_a_stream_of_ones_own_are_their_definitions():
    with jax.enable_x64(True):
        system = continual.system(DIMS, stream=drifting)
        _, (experts, info, pool) = mt.simulate(system, mt.root_key(0), PARAMS, NUM_ROUNDS, observe=history)
    truths = pool.truths[np.arange(NUM_ROUNDS), info.task]  # of each arrival, in its own round
    errors = np.square(experts[:, info.expert] - truths).sum(axis=2)  # (t, tau)
    for t in range(1, NUM_ROUNDS):
        np.testing.assert_allclose(info.generalization_error[t], errors[t, : t + 1].mean(), rtol=1e-10)
        forgotten = errors[t, :t] - np.diag(errors)[:t]
        np.testing.assert_allclose(info.forgetting[t], forgotten.mean(), rtol=1e-9, atol=1e-12)


def test_learn_fits_targets_of_an_arrival():
    """Errors are to the truth."""
    features, targets = np.random.default_rng(0).normal(size=(8, 3)), np.array([1.0, -2.0, 5.0])
    with jax.enable_x64(True):
        state, info = learn_in_double(features, continual.minimum_norm, targets)
    model = np.asarray(state.experts[0])
    np.testing.assert_allclose(model, features @ np.linalg.solve(features.T @ features, targets), rtol=1e-10)
    np.testing.assert_allclose(info.error, np.square(model - np.eye(3, 8)[1]).sum(), rtol=1e-12)


def learn_in_double(features, fit, targets=None):
    """The state and info of the first expert's first round, by an arrival of the second task."""
    state = continual.begin(DIMS, PARAMS, UNIT_POOL)
    learn = jax.jit(continual.learn, static_argnames="fit")
    return learn(state, continual.Arrival(1, features, targets=targets), np.zeros(4), PARAMS, fit=fit)


def test_learn_with_a_fit_of_ones_own():
    features = np.random.default_rng(2).normal(size=(8, 3))
    with jax.enable_x64(True):
        state, info = learn_in_double(features, ridge)
    gram = features.T @ features + 0.1 * np.eye(3)
    np.testing.assert_allclose(state.experts[0], features @ np.linalg.solve(gram, features.T[:, 1]), rtol=1e-10)
    np.testing.assert_allclose(info.update_norm, np.linalg.norm(state.experts[0]), rtol=1e-12)


@pytest.mark.thorough
def test_servers_have_the_same_parts():
    """Would catch a charge at routing, a charge for a move that is not over, or kinds of the wrong servers."""

    def stream(key, dims, state, params):
        pool = state.pool._replace(truths=state.pool.truths + 1.0)
        return pool, edge.draw(key, dims, pool, state.positions, params, edge.delays.uniform)

    def none(models, arrival, params):
        return jnp.zeros_like(models)

    def observe(state, info):
        return info, state.pool.truths

    system = edge.system(EDGE_DIMS, stream=stream, fit=none, locality=COUNTED)
    params = EDGE_PARAMS._replace(gate_lag=0)
    state, (info, truths) = mt.simulate_batch(system, mt.root_key(0), 8, params, 40, observe=observe)
    assert not state.experts.any()  # nobody learned anything
    np.testing.assert_allclose(np.diff(truths, axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(  # the error of a model that stays 0 is the mean square of the truths as they came
        info.generalization_error[-1] * (state.visits.sum(axis=0)),
        np.where(info.expert >= 0, np.square(info.truth).sum(axis=1), 0).sum(axis=0),
        rtol=1e-4,
    )
    done = np.zeros((4, 3, 8), int)  # each task is charged for when a server completes it
    lanes = np.arange(8)
    for start in range(40):
        ends = start + info.delay[start]
        is_done = (info.expert[start] >= 0) & (ends < 40)
        np.add.at(done, (info.expert[start][is_done], info.task[start][is_done], lanes[is_done]), 1)
    np.testing.assert_array_equal(state.memory, done)


def test_servers_fit_targets_of_an_arrivals_own():
    features, targets = np.random.default_rng(0).normal(size=(8, 3)), np.array([1.0, -2.0, 5.0])
    zeros, learn = np.zeros((3, 4)), jax.jit(edge.learn)
    with jax.enable_x64(True):
        state = edge.begin(EDGE_DIMS, EDGE_PARAMS, UNIT_POOL, execution_delay=np.array([1, 1, 1, 1]))
        arrival = edge.Arrival(0, features, np.eye(8)[0], np.array([0, 0, 0, 0]), *zeros, targets=targets)
        state, info = learn(state, arrival, EDGE_PARAMS)
        state, _ = learn(state, arrival, EDGE_PARAMS)  # the first task is completed as this round begins
    np.testing.assert_allclose(features.T @ np.asarray(state.experts)[int(info.expert)], targets, rtol=1e-10)


def short(outputs, perturbation, state, arrival, params):
    return outputs[:2]


def flat(models, arrival, params):
    return models[0]


def other_pool(key, dims, state, params):
    pool, *rest = continual.stationary(key, dims, state, params)
    return pool._replace(truths=pool.truths[:2]), *rest


def alone(key, dims, state, params):
    return continual.draw(key, dims, state.pool, params)


def of_nothing(key, dims, state, params):
    pool, arrival, perturbation = continual.stationary(key, dims, state, params)
    return pool, arrival._replace(targets=continual.targets_of(arrival)), perturbation


SEVERAL = edge.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3, max_delay=6, max_capacity=2)


def test_parts_that_do_not_fit_are_refused_before_anything_is_compiled():
    for words, parts in {
        "the router returned scores of shape (2,), not one per expert: (4,)": {"router": short},
        "the fit returned changes of shape (8,), not one per model: (1, 8)": {"fit": flat},
        "a pool with truths of shape (2, 8)": {"stream": other_pool},
        "a tuple of length 3: (pool, arrival, perturbation)": {"stream": alone},
        "neither targets nor": {"stream": of_nothing},
    }.items():
        assert words in refuse("", mt.simulate, continual.system(DIMS, **parts), mt.root_key(0), PARAMS, 2)
    state = continual.begin(DIMS, PARAMS, UNIT_POOL)
    arrival = continual.Arrival(0, np.ones((8, 3)), targets=np.ones(2))
    refuse("targets", continual.learn, state, arrival, np.zeros(4), PARAMS)
    for parts in ({"fit": lambda models, arrival, params: models}, {"locality": COUNTED}):
        refuse("", mt.simulate, edge.system(SEVERAL, **parts), mt.root_key(0), EDGE_PARAMS, 2)


def counted(move, memory, arrival, params):
    """Charges a move in full the first time that its expert meets the task, and half of it later."""
    is_kind = jnp.arange(memory.shape[1]) == arrival.task[..., None]
    met = jnp.sum(jnp.where(is_kind, memory, 0), axis=-1) > 0
    return move.costs * jnp.where(met, 0.5, 1.0), memory + (move.learned[:, None] & is_kind)


COUNTED = continual.Locality(counted, lambda dims: jnp.zeros((dims.max_experts, dims.num_tasks), jnp.int32))


@pytest.fixture(scope="module")
def counted_run():
    """The last states and the infos of 64 replicates."""
    return mt.simulate_batch(continual.system(DIMS, locality=COUNTED), mt.root_key(0), 64, PARAMS, NUM_ROUNDS)


def test_a_locality_remembers_what_it_has_seen_of_its_own_replicate_alone(counted_run):
    """Would catch a memory that replicates share, or that outlives a run."""
    states, info = counted_run
    met = np.zeros((4, 3, 64), int)
    for expert, task in zip(info.expert, info.task, strict=True):
        met[expert, task, np.arange(64)] += 1
    np.testing.assert_array_equal(states.memory, met)
    again, _ = mt.simulate_batch(continual.system(DIMS, locality=COUNTED), mt.root_key(0), 64, PARAMS, NUM_ROUNDS)
    np.testing.assert_array_equal(again.memory, met)


def test_a_locality_that_does_not_fit_is_refused():
    def costing(costs, memory=lambda memory: memory):
        return continual.Locality(
            lambda move, before, arrival, params: (costs(move), memory(before)), lambda dims: jnp.zeros(4)
        )

    is_missing = continual.Locality(lambda move, memory, arrival, params: move.costs)
    refused = {
        "costs of shape (2,), not one per expert: (4,)": costing(lambda move: move.costs[:2]),
        "memory of float32 (2,) in place of float32 (4,)": costing(lambda move: move.costs, lambda memory: memory[:2]),
        "memory of bool (4,) in place of float32 (4,)": costing(lambda move: move.costs, lambda memory: memory > 0),
        "(costs, memory), a tuple of length 2": is_missing,
    }
    for words, locality in refused.items():
        assert words in refuse("", mt.simulate, continual.system(DIMS, locality=locality), mt.root_key(0), PARAMS, 2)
    refuse("", mt.simulate, edge.system(EDGE_DIMS, locality=is_missing), mt.root_key(0), EDGE_PARAMS, 2)
    for module, dims in ((continual, DIMS), (edge, EDGE_DIMS)):
        refuse("locality", module.system, dims, locality=counted)


LOST = continual.Locality(lambda move, memory, arrival, params: (move.costs * jnp.nan, memory))


def test_a_cost_that_is_no_number_is_seen_where_it_is_not_known(drawn):
    state, arrival, perturbation = drawn
    learn = jax.jit(lambda *parts: continual.learn(*parts, locality=LOST))
    for _ in range(3):
        state, info = learn(state, arrival, perturbation, PARAMS._replace(terminate=False))
    assert np.isnan(info.generalization_error)


def test_router_key(counted_run):
    """Would catch a router's key that repeats over rounds or replicates, or that moves the draws of the others."""

    def chance(gate_outputs, perturbation, state, arrival, params, key):
        return jax.random.uniform(key, gate_outputs.shape)

    _, info = mt.simulate_batch(continual.system(DIMS, router=chance), mt.root_key(0), 64, PARAMS, NUM_ROUNDS)
    np.testing.assert_array_equal(info.task, counted_run[1].task)
    shares = np.bincount(np.ravel(info.expert), minlength=4) / info.expert.size
    assert abs(shares - 0.25).max() < 6 * (0.25 * 0.75 / info.expert.size) ** 0.5
    assert all(len(set(row.tolist())) > 1 for row in [*info.expert, *info.expert.T])


@pytest.mark.thorough
def test_router_key_of_servers():
    def policy(gate_outputs, state, arrival, params, key):
        return jax.random.uniform(key, gate_outputs.shape)

    plain, by_chance = (
        mt.simulate_batch(system, mt.root_key(2), 64, EDGE_PARAMS, NUM_ROUNDS)[1]
        for system in (edge.system(EDGE_DIMS), edge.system(EDGE_DIMS, policy))
    )
    np.testing.assert_array_equal(by_chance.task, plain.task)
    assert len(set(np.ravel(by_chance.expert).tolist()) - {-1}) == 4


@pytest.fixture(scope="module")
def drawn():
    """A state, and what arrives in its first round."""
    system = continual.system(DIMS)

    @jax.jit
    def draw(key):
        state = system.init(key, PARAMS)
        return state, *continual.draw(mt.root_key(1), DIMS, state.pool, PARAMS)

    return draw(mt.root_key(0))


def test_learn_a_task_outside_the_pool_and_features_with_nan(drawn):
    """Would catch an invalid task whose error is 0, the best there is."""
    state, arrival, perturbation = drawn
    learn = jax.jit(continual.learn)
    broken = [(name, arrival._replace(**{name: value})) for name, value in (
        ("task", np.int32(3)), ("task", np.int32(-1)), ("task", np.float32(1.5)),
        ("features", arrival.features.at[0, 0].set(np.nan)), ("features", 1e20 * arrival.features),
    )]  # fmt: skip
    for name, wrong in broken:
        refuse(name, continual.learn, state, wrong, perturbation, PARAMS)
        _, info = learn(state, wrong, perturbation, PARAMS)
        shown = [info.error, info.generalization_error, info.forgetting if name == "task" else np.nan]
        assert np.isnan(shown).all(), wrong
