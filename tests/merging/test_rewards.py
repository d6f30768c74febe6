"""Rewards against formulas written again in NumPy, and their best weights against a numerical optimiser."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import moe_theory as mt
from moe_theory import merging
from moe_theory.core.errors import UnknownNameError
from moe_theory.merging import monitor, rewards
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback
from tests.continual.cases import loop_over, refuse

KEY = mt.root_key(3)
DIMS = Dims(max_experts=5, num_tasks=4)  # one expert is padding
PARAMS = Params(num_experts=4, max_active=4)
ACTIVE = (1, 2, 3, 4)
QUICKLY = {"xla_backend_optimization_level": 0}  # compiling is what costs


def plainly(name, world, points):
    """The family's formula in NumPy: values (n, V) at points (n, K)."""
    if name == rewards.PEAKED:
        square = ((points - world.surface.center) ** 2).sum(axis=1)
        return world.surface.heights * np.exp(-square / (2 * rewards.PEAK_WIDTH**2))[:, None]
    if name == rewards.FLAT:
        return 1 - ((points[:, None, :] - world.surface[None, :, :]) ** 2).sum(axis=2) / 2
    power = 0.5 if name == rewards.SHARES else 2
    return np.maximum(points[:, :4], 0) ** power


@pytest.fixture(scope="module", params=list(rewards.REWARDS))
def family(request):
    """Its name, a world, points of the simplex with the family's values there, mixes with its best weights."""
    reward = rewards.named(request.param)
    rng = np.random.default_rng(1)
    points = np.concatenate([np.eye(4), rng.dirichlet(np.full(4, 0.5), 60)])
    points = np.pad(points, ((0, 0), (0, 1)))
    mixes = rng.dirichlet(np.ones(4), 2)

    def everything(key, params, points, mixes):
        world = reward.draw(key, DIMS, params)

        def best(mix, max_active):
            return reward.best(world, mix, params._replace(max_active=max_active))

        of_active = jax.vmap(best, in_axes=(None, 0))
        found = jax.vmap(of_active, in_axes=(0, None))(mixes, jnp.array(ACTIVE))
        return world, jax.vmap(lambda point: reward.value(world, point))(points), found

    with jax.enable_x64(True):
        found = jax.jit(everything, compiler_options=QUICKLY)(KEY, PARAMS, points, mixes)
    world, values, best = jax.tree.map(np.asarray, found)
    return request.param, world, points, values, mixes, best


def test_values_are_the_formula_s(family):
    """Would catch a value that padding changes, or one outside [0, 1]."""
    name, world, points, values, _, _ = family
    np.testing.assert_allclose(values, plainly(name, world, points), rtol=1e-9, atol=1e-12)
    assert values.min() >= 0
    assert values.max() <= 1
    assert values.max() - values.min() > 0.2


def test_the_best_weights_are_an_optimiser_s(family):
    """The most that SLSQP finds on any B experts, from many starts: catches another's optimum, and a wrong support."""
    name, world, points, _, mixes, best = family
    for mix, by_active in zip(mixes, best, strict=True):
        for max_active, found in zip(ACTIVE, by_active, strict=True):
            assert abs(found.sum() - 1) < 1e-5
            assert found.min() >= 0
            assert np.sum(found > 0) <= max_active
            assert found[4] == 0
            value = mix @ plainly(name, world, found[None])[0]
            supports = itertools.combinations(range(4), max_active)
            rival = max(most_on(name, world, mix, list(support)) for support in supports)
            assert abs(value - rival) < 1e-5, (max_active, found)
        assert (plainly(name, world, points) @ mix).max() <= mix @ plainly(name, world, by_active[-1][None])[0] + 1e-12


def most_on(name, world, mix, support):
    """The largest psi' f* that is found on these experts."""

    def loss(inside):
        point = np.zeros(5)
        point[support] = inside
        return -float(mix @ plainly(name, world, point[None])[0])

    size = len(support)
    starts = [np.full(size, 1 / size), *(0.1 / size + 0.9 * np.eye(size))]
    constraint = {"type": "eq", "fun": lambda inside: inside.sum() - 1}
    bounds = [(1e-12, 1)] * size
    ends = [optimize.minimize(loss, start, bounds=bounds, constraints=constraint, tol=1e-12) for start in starts]
    return max(-float(end.fun) for end in ends)


def test_a_task_without_requests_shows_no_reward():
    """Would catch requests that are lost, or a reward that nobody earned."""
    values, mix = jnp.array([0.0, 0.3, 1.0]), jnp.array([0.6, 0.4, 0.0])
    params = Params(noise_scale=0.2, slot_size=300)
    show = jax.jit(jax.vmap(rewards.observed, in_axes=(0, None, None, None)), compiler_options=QUICKLY)
    seen = show(jax.random.split(KEY, 40), values, mix, params)
    shown, counts = np.asarray(seen.rewards, float), np.asarray(seen.counts)
    assert counts.dtype == np.int32
    assert np.all(counts.sum(axis=1) == 300)
    assert np.all(counts[:, 2] == 0)
    assert np.all(shown[:, 2] == 0)


def test_the_mix_drifts_as_the_formula_says():
    """Would catch a drift that is not periodic, or that moves a mix without drift."""
    world = rewards.Tasks(jnp.array([0.1, -0.4, 2.0]), jnp.array([0.0, 1.0, 4.0]))
    times = np.array([1, 7, 8, 28])
    mixes = jax.jit(jax.vmap(rewards.mix_of, in_axes=(None, 0, None)))
    for drift in (0.0, 1.5):
        found = np.asarray(mixes(world, times, Params(mix_drift=drift, mix_period=7.0)))
        logs = np.asarray(world.log_weights) + drift * np.sin(2 * np.pi * times[:, None] / 7 + np.asarray(world.phases))
        np.testing.assert_allclose(found, np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True), rtol=2e-5)
        np.testing.assert_allclose(found[1], found[3], rtol=1e-4)
        assert np.allclose(found[0], found[1], rtol=1e-5) == (drift == 0)


def test_what_a_family_cannot_be_is_refused():
    """One line each that says what is wrong."""
    refuse("reward", rewards.named, "share", kind=UnknownNameError)
    draw = rewards.named(rewards.SHARES).draw
    refuse("", draw, KEY, DIMS, PARAMS._replace(num_experts=3))
    refuse("", draw, KEY, Dims(max_experts=3, num_tasks=4), PARAMS)


NUM_TASKS, RATE = 12, 0.25
WATCHED, SLOW = Dims(num_tasks=NUM_TASKS), Params(monitor_rate=RATE)
COUNTS = np.random.default_rng(4).multinomial(40, np.random.default_rng(5).dirichlet(np.full(12, 0.4)), 25)
TRUTH = jnp.full((NUM_TASKS,), 1 / NUM_TASKS)


def played(name):
    """The estimates (T, V) before each slot, and the states after it."""
    own = monitor.MONITORS[name]

    def slot(state, counts):
        estimate = own.estimate(state, TRUTH)
        state = own.watch(state, Feedback(jnp.zeros(NUM_TASKS), counts), SLOW)
        return state, (estimate, state)

    run = jax.jit(lambda counts: jax.lax.scan(slot, own.begin(WATCHED, SLOW), counts)[1])
    return jax.tree.map(np.asarray, run(jnp.asarray(COUNTS, jnp.int32)))


def test_the_average_is_of_earlier_slots():
    """Would catch an average that looks at the slot it is for, and a first estimate that is not equal shares."""
    expected, share = [], np.full(NUM_TASKS, 1 / NUM_TASKS)
    for counts in COUNTS:
        expected.append(share)
        share = (1 - RATE) * share + RATE * counts / counts.sum()
    np.testing.assert_allclose(played(monitor.AVERAGE)[0], expected, rtol=1e-5)


WRONG = {  # parts of a reward
    "Reward.mix returned shape (5,)": {"mix": lambda world, time, params: jnp.ones(DIMS.num_tasks + 1)},
    "Reward.value returned shape ()": {"value": lambda world, weights: jnp.sum(weights)},
    "Reward.best returned shape (1,), but needs one number per expert": {"best": lambda world, mix, params: mix[:1]},
    "Reward.serve must return a merging.Feedback": {"serve": lambda *arguments: 1.0},
    "returned rewards of shape (1,)": {"serve": lambda *arguments: merging.Feedback(jnp.ones(1), jnp.ones(1))},
}


@loop_over(("words", "parts"), WRONG.items())
def test_a_reward_of_ones_own_is_refused_before_anything_is_compiled(words, parts):
    """Would catch shapes that JAX broadcasts into a regret of something else, or complains of deep inside a scan."""
    reward = rewards.named(rewards.FLAT)._replace(**parts)
    assert words in refuse("", mt.simulate, merging.system(DIMS, reward, "average"), KEY, PARAMS, 10**6)


def test_merging_is_the_weighted_average_of_trees_of_parameters():
    experts = [{"w": np.full((2, 3), float(k)), "b": [np.arange(3.0) * k]} for k in range(4)]
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    merged = merging.merge(experts, weights)
    np.testing.assert_allclose(merged["w"], np.full((2, 3), 2.0), rtol=1e-6)
    np.testing.assert_allclose(merged["b"][0], np.arange(3.0) * 2.0, rtol=1e-6)
    for wrong in ([*experts[:3], {"w": experts[0]["w"]}], {"w": np.ones((3, 2))}):
        refuse("", merging.merge, wrong, weights)
