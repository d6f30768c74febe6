"""Parts of one's own in both algorithms: what arrives, where it goes, what an expert learns of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError

DIMS = continual.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3)
PARAMS = continual.Params(num_experts=4)
EDGE_DIMS = edge.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3, max_delay=6)
EDGE_PARAMS = edge.Params(num_experts=4, max_execution_delay=2, max_transfer_delay=3)
NUM_ROUNDS = 30


def drifting(key, dims, state, params):
    moving, drawing = jax.random.split(key)
    moves = 0.2 * jax.random.normal(moving, state.pool.truths.shape)
    pool = state.pool._replace(truths=state.pool.truths + moves)
    return pool, *continual.draw(drawing, dims, pool, params)


def with_noisy_targets(key, dims, state, params):
    pool, arrival, perturbation = continual.stationary(key, dims, state, params)
    truth = jnp.sum(jnp.where(jnp.arange(3)[:, None] == arrival.task, pool.truths, 0), axis=0)
    noise = jax.random.normal(jax.random.fold_in(key, 1), (dims.num_samples,))
    return pool, arrival._replace(targets=continual.targets_of(arrival._replace(truth=truth)) + noise), perturbation


def ridge(models, arrival, params):
    features = arrival.features
    gram = features.T @ features + 0.1 * jnp.eye(features.shape[1])
    return jnp.linalg.solve(gram, (continual.targets_of(arrival) - models @ features).T).T @ features.T


def to_the_last(outputs, perturbation, state, arrival, params):
    return jnp.arange(outputs.shape[0]) + 0 * outputs


def history(state, info):
    return state.experts, info, state.pool


@pytest.mark.parametrize("stream", [drifting, with_noisy_targets])
def test_metrics_of_a_stream_of_ones_own_are_their_definitions(stream):
    with jax.enable_x64(True):
        system = continual.system(DIMS, stream=stream)
        _, (experts, info, pool) = mt.simulate(system, mt.root_key(0), PARAMS, NUM_ROUNDS, observe=history)
    truths = pool.truths[np.arange(NUM_ROUNDS), info.task]  # of each arrival, in its own round
    errors = np.square(experts[:, info.expert] - truths).sum(axis=2)  # (t, tau)
    for t in range(1, NUM_ROUNDS):
        np.testing.assert_allclose(info.generalization_error[t], errors[t, : t + 1].mean(), rtol=1e-10)
        forgotten = errors[t, :t] - np.diag(errors)[:t]
        np.testing.assert_allclose(info.forgetting[t], forgotten.mean(), rtol=1e-9, atol=1e-12)


def test_an_expert_fits_the_targets_that_an_arrival_brings_and_errors_are_to_the_truth():
    with jax.enable_x64(True):
        pool = continual.Pool(np.eye(3, 8), np.eye(3, 8), np.arange(3))
        state = continual.begin(DIMS, PARAMS, pool)
        features, targets = np.random.default_rng(0).normal(size=(8, 3)), np.array([1.0, -2.0, 5.0])
        arrival = continual.Arrival(1, features, targets=targets)
        state, info = continual.learn(state, arrival, np.zeros(4), PARAMS)
        model = np.asarray(state.experts[0])
        np.testing.assert_allclose(features.T @ model, targets, rtol=1e-12)
        np.testing.assert_allclose(model, features @ np.linalg.solve(features.T @ features, targets), rtol=1e-10)
        np.testing.assert_allclose(info.error, np.square(model - pool.truths[1]).sum(), rtol=1e-12)


@pytest.mark.parametrize("rank", [3, 2])
def test_targets_of_the_truth_change_nothing_even_where_samples_depend_on_each_other(rank):
    generator = np.random.default_rng(1)
    features = generator.normal(size=(8, rank)) @ generator.normal(size=(rank, 3))
    truth, models = generator.normal(size=8), generator.normal(size=(2, 8))
    with jax.enable_x64(True):
        arrival = continual.Arrival(0, features, truth)
        own = arrival._replace(targets=features.T @ truth)
        expected, found = (np.asarray(continual.minimum_norm(models, each, PARAMS)) for each in (arrival, own))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_a_fit_of_ones_own_moves_the_expert():
    generator = np.random.default_rng(2)
    features, truths = generator.normal(size=(8, 3)), generator.normal(size=(3, 8))
    with jax.enable_x64(True):
        state = continual.begin(DIMS, PARAMS, continual.Pool(truths, truths, np.arange(3)))
        state, info = continual.learn(state, continual.Arrival(2, features), np.zeros(4), PARAMS, fit=ridge)
    gram = features.T @ features + 0.1 * np.eye(3)
    np.testing.assert_allclose(state.experts[0], features @ np.linalg.solve(gram, features.T @ truths[2]), rtol=1e-10)
    np.testing.assert_allclose(info.update_norm, np.linalg.norm(state.experts[0]), rtol=1e-12)


def test_a_router_of_ones_own_decides_who_learns():
    state, info = mt.simulate_batch(continual.system(DIMS, router=to_the_last), mt.root_key(0), 8, PARAMS, 5)
    assert (info.expert == 3).all()
    assert (state.visits[3] == 5).all()


def test_servers_have_the_same_parts():
    def stream(key, dims, state, params):
        pool = state.pool._replace(truths=state.pool.truths + 1.0)
        return pool, edge.draw(key, dims, pool, state.positions, params, edge.delays.uniform)

    def none(models, arrival, params):
        return jnp.zeros_like(models)

    system = edge.system(EDGE_DIMS, stream=stream, fit=none)
    state, info = mt.simulate_batch(system, mt.root_key(0), 8, EDGE_PARAMS, 20)
    assert not state.experts.any()  # nobody learned anything
    start = mt.simulate(edge.system(EDGE_DIMS), mt.root_key(0), EDGE_PARAMS, 1)[0].pool.truths  # which stays
    moved = mt.simulate(system, mt.root_key(0), EDGE_PARAMS, 20)[0].pool.truths
    np.testing.assert_allclose(moved, start + 20.0, rtol=1e-5)
    np.testing.assert_allclose(  # the error of a model that stays 0 is the mean square of the truths as they came
        info.generalization_error[-1] * (state.visits.sum(axis=0)),
        np.where(info.expert >= 0, np.square(info.truth).sum(axis=1), 0).sum(axis=0),
        rtol=1e-4,
    )


def test_servers_fit_targets_of_an_arrivals_own():
    pool = edge.Pool(np.eye(3, 8), np.eye(3, 8), np.arange(3))
    features, targets = np.random.default_rng(0).normal(size=(8, 3)), np.array([1.0, -2.0, 5.0])
    zeros = np.zeros((3, 4))
    with jax.enable_x64(True):
        state = edge.begin(EDGE_DIMS, EDGE_PARAMS, pool, execution_delay=np.array([1, 1, 1, 1]))
        arrival = edge.Arrival(0, features, np.eye(8)[0], np.array([0, 0, 0, 0]), *zeros, targets=targets)
        state, info = edge.learn(state, arrival, EDGE_PARAMS)
        state, _ = edge.learn(state, arrival, EDGE_PARAMS)  # the first task is completed as this round begins
    np.testing.assert_allclose(features.T @ np.asarray(state.experts)[int(info.expert)], targets, rtol=1e-10)


def test_parts_that_do_not_fit_are_refused_before_anything_is_compiled():
    def short(outputs, perturbation, state, arrival, params):
        return outputs[:2]

    def flat(models, arrival, params):
        return models[0]

    def other_pool(key, dims, state, params):
        pool, *rest = continual.stationary(key, dims, state, params)
        return pool._replace(truths=pool.truths[:2]), *rest

    for parts, error, words in (
        ({"router": short}, InvalidParamsError, r"the router gave scores of shape \(2,\), not one an expert: \(4,\)"),
        ({"fit": flat}, InvalidParamsError, r"the fit gave changes of shape \(8,\), not one a model: \(1, 8\)"),
        ({"stream": other_pool}, InvalidDimsError, r"a pool of truths \(2, 8\)"),
    ):
        with pytest.raises(error, match=words):
            mt.simulate(continual.system(DIMS, **parts), mt.root_key(0), PARAMS, 2)

    def alone(key, dims, state, params):
        return continual.draw(key, dims, state.pool, params)

    def of_nothing(key, dims, state, params):
        pool, arrival, perturbation = continual.stationary(key, dims, state, params)
        return pool, arrival._replace(targets=continual.targets_of(arrival)), perturbation

    for stream, words in (
        (alone, r"\(pool, arrival, perturbation\), a tuple of 3"),
        (of_nothing, "neither targets nor"),
    ):
        with pytest.raises(InvalidParamsError, match=words):
            mt.simulate(continual.system(DIMS, stream=stream), mt.root_key(0), PARAMS, 2)
    state = continual.begin(DIMS, PARAMS, continual.Pool(np.eye(3, 8), np.eye(3, 8), np.arange(3)))
    with pytest.raises(InvalidDimsError, match=r"targets of shape \(2,\) must be \(3,\)"):
        continual.learn(state, continual.Arrival(0, np.ones((8, 3)), targets=np.ones(2)), np.zeros(4), PARAMS)
    several = edge.Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=3, max_delay=6, max_capacity=2)
    with pytest.raises(InvalidParamsError, match="leave out fit and targets"):
        mt.simulate(edge.system(several, fit=lambda models, arrival, params: models), mt.root_key(0), EDGE_PARAMS, 2)
