"""A replicate's draws depend on its name alone."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge

ROOT = mt.root_key(7)
DIMS = continual.Dims(max_experts=10, num_tasks=6, num_features=10, num_samples=6)  # Fig. 2 (Appendix A.2)
PARAMS = continual.Params(min_strength=0.25, max_strength=1.5, noise_scale=0.3, num_clusters=6)
NUM_ROUNDS = 12
REPLICATE = 3
assert_same = functools.partial(chex.assert_trees_all_equal, strict=True)  # dtypes and shapes too


EDGE_DIMS = edge.Dims(max_experts=10, num_tasks=6, num_features=5, num_samples=3)
EDGE_PARAMS = edge.Params(num_experts=10, min_strength=0.25, cluster_spread=0.5, uplink_delay=8.0)
LAWS = (edge.delays.uniform, edge.delays.geometric, edge.delays.by_distance)


@functools.cache
def drawing(dims: Any = DIMS) -> mt.System:
    """The system without learning, and without servers: a round shows what it draws, that of `edge` under each law of
    delays, of which none executes by distance."""
    if isinstance(dims, edge.Dims):
        starts = [edge.system(dims, execution=law).init for law in LAWS[:2]]

        def init(key, params):
            states = [start(key, params) for start in starts]
            return states[0]._replace(execution_delay=jnp.stack([state.execution_delay for state in states]))

        def draw(key, state, params):
            return tuple(edge.draw(key, dims, state.pool, state.positions, params, law) for law in LAWS)

    else:
        init = continual.system(dims).init

        def draw(key, state, params):
            return continual.draw(key, dims, state.pool, params)

    return mt.System(init, lambda key, state, params: (state._replace(round=state.round + 1), draw(key, state, params)))


def shown(run: Any) -> Any:
    """All that replicates draw: the pool, the execution delays of servers, and in every round."""
    state, drawn = jax.device_get(run)
    return state.pool, getattr(state, "execution_delay", None), drawn


def params_of(dims: Any) -> Any:
    return EDGE_PARAMS if isinstance(dims, edge.Dims) else PARAMS


@functools.cache
def alone(dims: Any = DIMS) -> Any:
    return shown(mt.simulate(drawing(dims), jax.random.fold_in(ROOT, REPLICATE), params_of(dims), NUM_ROUNDS))


@functools.cache
def many(dims: Any = DIMS) -> Any:
    return shown(mt.simulate_batch(drawing(dims), ROOT, names(dims), params_of(dims), NUM_ROUNDS))


def names(dims: Any = DIMS) -> np.ndarray:
    """512 or 64 replicates, in no order."""
    return np.random.default_rng(0).permutation(64 if isinstance(dims, edge.Dims) else 512)


def at(place: int, batch: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[..., place], batch)


@pytest.mark.parametrize(
    "dims", [pytest.param(DIMS, id="continual"), pytest.param(EDGE_DIMS, id="edge", marks=pytest.mark.thorough)]
)
def test_a_replicate_draws_the_same_alone_and_in_a_batch(dims: Any) -> None:
    """Would catch draws that hang on the batch or on how it was compiled; to the bit."""
    assert_same(at(int(np.flatnonzero(names(dims) == REPLICATE)[0]), many(dims)), alone(dims))


@pytest.mark.thorough
@pytest.mark.usefixtures("compiled_for_users")
@pytest.mark.parametrize("dims", [DIMS, EDGE_DIMS], ids=["continual", "edge"])
def test_draws_are_the_same_however_users_programs_round(dims: Any) -> None:
    """Would catch draws that hang on the place in a batch, and sums that XLA joins in one batch and not in another,
    when it optimises in full; to the bit."""
    expected = alone.__wrapped__(dims)
    for place in (0, 4, 6):
        batch = np.insert(np.delete(np.arange(20, 27), place), place, REPLICATE)
        run = mt.simulate_batch(drawing(dims), ROOT, batch, params_of(dims), NUM_ROUNDS)
        assert_same(at(place, shown(run)), expected)


@pytest.mark.thorough
def test_padding_to_more_experts_changes_no_draw() -> None:
    """Would catch a sweep over M that compares different tasks: common random numbers are the point of padding."""
    pool, _, (arrivals, perturbation) = alone(continual.Dims(20, 6, 10, 6))
    assert perturbation.shape == (NUM_ROUNDS, 20)
    assert_same((pool, None, (arrivals, perturbation[:, :10])), alone())
    assert len(np.unique(perturbation)) == perturbation.size


def test_the_system_learns_from_these_draws() -> None:
    """Would catch a system that draws otherwise than `draw`, which the tests here look at."""
    state, info = mt.simulate(continual.system(DIMS), jax.random.fold_in(ROOT, REPLICATE), PARAMS, NUM_ROUNDS)
    pool, _, (arrivals, perturbation) = alone()
    np.testing.assert_array_equal(info.task, arrivals.task)
    assert_same(jax.device_get(state.pool), pool)
    assert info.expert[0] == np.argmax(perturbation[0])  # at gates of zero the perturbation decides


@pytest.mark.parametrize("low", [0.0, 0.7])
def test_equal_ends_give_a_constant_strength_and_no_noise_means_none(low: float) -> None:
    """Would catch a strength that is drawn although its interval is a point; noise columns then are exactly zero."""
    pool = continual.Pool(jnp.eye(3, 4), 2 * jnp.eye(3, 4), jnp.arange(3))
    params = PARAMS._replace(min_strength=low, max_strength=low, noise_scale=0.0)
    dims = continual.Dims(2, 3, 4, 3)
    draw = jax.jit(jax.vmap(lambda key: continual.draw(key, dims, pool, params)))
    arrival, _ = draw(jax.random.split(ROOT, 50))
    total = np.asarray(arrival.features).sum(axis=2)
    np.testing.assert_array_equal(total, np.float32(low) * 2 * np.eye(3, 4, dtype=np.float32)[arrival.task])
    assert np.count_nonzero(arrival.features) == (50 if low else 0)


@pytest.mark.thorough
def test_padding_a_network_changes_no_draw() -> None:
    """Would catch a sweep over M that compares different tasks, or other delays of the servers that stay."""
    pool, execution_delay, padded = alone(edge.Dims(20, 6, 5, 3))
    per_server = ("transfer_delay", "distance", "perturbation", "uniform")
    assert [drawn.uniform.shape for drawn in padded] == [(NUM_ROUNDS, 20)] * 3
    cut = tuple(drawn._replace(**{name: getattr(drawn, name)[:, :10] for name in per_server}) for drawn in padded)
    assert_same((pool, execution_delay[:, :10], cut), alone(EDGE_DIMS))
