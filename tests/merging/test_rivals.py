"""Plain policies: where their weights lie, a bandit against the same in NumPy, and that those who learn do."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import InvalidParamsError, UnknownNameError
from moe_theory.merging import policies, rewards, weights
from moe_theory.merging.params import Dims, Params, check_params
from moe_theory.merging.rewards import Feedback
from moe_theory.merging.system import system

KEY = mt.root_key(8)
DIMS = Dims(max_experts=5, num_tasks=3)
PARAMS = Params(num_experts=3, max_active=2)
QUICKLY = {"xla_backend_optimization_level": 0}  # compiling is what costs
PLAIN = (policies.UNIFORM, policies.AVERAGE, policies.MIX, policies.BEST_EXPERT, policies.GRADIENT)
MIXES = np.random.default_rng(2).dirichlet(np.ones(3), 400)


def played(name, params=PARAMS):
    """Picks of as many slots as there are mixes, where a task's reward is the weight of the second expert."""
    policy = policies.named(name, DIMS)

    def slot(memory, now):
        key, mix, time = now
        choose_key, learn_key = jax.random.split(key)
        pick = policy.choose(choose_key, memory, mix, time, params)
        feedback = Feedback(jnp.full(3, pick.weights[1]), jnp.array([3, 0, 1], jnp.int32))
        return policy.learn(learn_key, memory, pick, mix, feedback, time, params), pick

    def run(key, mixes):
        keys = jax.random.split(key, len(mixes) + 1)
        start = policy.begin(keys[0], DIMS, params)
        return jax.lax.scan(slot, start, (keys[1:], mixes, jnp.arange(1, len(mixes) + 1)))[1]

    return jax.tree.map(np.asarray, jax.jit(run, compiler_options=QUICKLY)(KEY, jnp.asarray(MIXES, jnp.float32)))


@pytest.fixture(scope="module")
def picks():
    return {name: played(name) for name in PLAIN}


@pytest.mark.parametrize("name", PLAIN)
def test_weights_are_feasible(picks, name):
    """Would catch weights off the simplex, of more than B experts, or of experts that are padding."""
    for point in picks[name].weights:
        weights.check_weights(point, max_active=2)
    assert np.all(picks[name].weights[:, 3:] == 0)
    assert np.all(picks[name].num_candidates == (3 if name == policies.BEST_EXPERT else 1))


def test_policies_that_learn_nothing_are_what_they_say(picks):
    """Would catch equal weights over padding, a mix that is not cut to the largest, and a law with a favourite."""
    np.testing.assert_array_equal(picks[policies.AVERAGE].weights, np.tile([0.5, 0.5, 0, 0, 0], (400, 1)))
    kept = np.where(MIXES.min(axis=1, keepdims=True) == MIXES, 0, MIXES)
    kept /= kept.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(picks[policies.MIX].weights[:, :3], kept, atol=1e-6)
    drawn = picks[policies.UNIFORM].weights
    assert np.all(np.abs(drawn.mean(axis=0)[:3] - 1 / 3) < 6 * drawn.std(axis=0)[:3] / 20)


def test_the_bandit_of_experts_is_ucb1(picks):
    """Would catch another bonus, a padded expert that is tried, and rewards that are credited to another."""
    tries, sums, expected = np.zeros(3), np.zeros(3), []
    for time in range(1, 401):
        bounds = np.where(tries > 0, sums / np.maximum(tries, 1), np.inf)
        bounds += np.sqrt(2 * np.log(time) / np.maximum(tries, 1))
        index = int(np.argmax(bounds))
        expected.append(index)
        tries[index] += 1
        sums[index] += index == 1
    np.testing.assert_array_equal(picks[policies.BEST_EXPERT].candidate, expected)
    assert np.mean(np.array(expected)[-100:] == 1) > 0.8


def test_the_gradient_learns(picks):
    """Would catch a step along the wrong sign or of noise that was not the pick's."""
    of_second = picks[policies.GRADIENT].weights[:, 1]
    assert of_second[:20].mean() < 0.6
    assert of_second[-50:].mean() > 0.9


def slots(own, params):
    """The last state and the infos of four slots."""
    start = own.init(KEY, params)
    return jax.lax.scan(lambda state, key: own.step(key, state, params), start, jax.random.split(KEY, 4))


def test_every_policy_meets_the_same_world():
    """Would catch worlds, mixes, requests or noise that depend on who chooses: comparisons are by common draws."""
    params = Params(num_experts=3, max_active=3, mix_drift=1.0)
    runs = {}
    for name in (policies.AVERAGE, policies.GRADIENT):
        state, info = jax.jit(functools.partial(slots, system(DIMS, rewards.FLAT, name)), compiler_options=QUICKLY)(
            params
        )
        noise = info.feedback.rewards - jax.vmap(rewards.flat_value, (None, 0))(state.world, info.pick.weights)
        shown = jnp.where(info.feedback.counts > 0, noise, 0)
        runs[name] = jax.tree.map(np.asarray, (state.world, info.mix, info.feedback.counts, shown))
        value = [
            mix @ (1 - np.sum((np.asarray(state.world.surface) - point) ** 2, axis=1) / 2)
            for mix, point in zip(np.asarray(info.mix), np.asarray(info.pick.weights), strict=True)
        ]
        np.testing.assert_allclose(info.value, value, rtol=1e-5)
        best = np.asarray(info.mix) @ np.asarray(state.world.surface)
        lost = ((np.asarray(info.pick.weights) - best) ** 2).sum(axis=1) / 2
        np.testing.assert_allclose(info.regret, lost, atol=1e-6)
        np.testing.assert_allclose(info.cumulative_regret, np.cumsum(lost), atol=4e-6)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), *runs.values())


def test_names_are_looked_up_once():
    """Would catch a policy that is built anew, and so compiled anew, for every call."""
    assert policies.named(policies.MIX, DIMS) is policies.named(policies.MIX, Dims(max_experts=5, num_tasks=3))
    assert policies.named(policies.TANBR, DIMS) is policies.named(policies.TANBR, DIMS)
    with pytest.raises(UnknownNameError, match="Did you mean 'tanbr'"):
        policies.named("tambr", DIMS)
    with pytest.raises(UnknownNameError, match="Did you mean 'diagonal'"):
        policies.named(policies.MIX, DIMS, "diagnoal")
    with pytest.raises(UnknownNameError, match="unknown monitor"):
        system(DIMS, monitor="none")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (Params(num_experts=1), "num_experts=1 must be a whole number of at least 2"),
        (Params(num_experts=3, max_active=4), r"max_active=4 must be at most num_experts=3: .* \(1b\)"),
        (Params(num_experts=4, max_active=4, warm_start=True), "warm_start needs as many experts as tasks"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(InvalidParamsError, match=message):
        check_params(DIMS, params)


def test_a_policy_that_needs_an_expert_for_each_task_says_so():
    with pytest.raises(InvalidParamsError, match="policy 'mix' needs an expert for each task: num_experts=4"):
        policies._MIX.begin(KEY, DIMS, Params(num_experts=4, max_active=4))


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([0.5, 0.6], r"weights sum to 1.1, but must sum to 1 \(1a\)"),
        ([1.5, -0.5], r"weights\[1\]=-0.5 must not be negative"),
        ([1.0, np.nan], r"weights\[1\]=nan must not be negative"),
        ([[1.0]], r"weights of shape \(1, 1\)"),
        (["x"], "one real number for each expert"),
        ([0.5, 0.3, 0.2], r"weights use 3 experts, but must use at most max_active=2 \(1b\)"),
    ],
)
def test_weights_off_the_simplex_are_refused(point, message):
    """One line that names the value, the bound and the equation."""
    with pytest.raises(InvalidParamsError, match=message) as failure:
        weights.check_weights(point, max_active=2)
    assert len(str(failure.value).splitlines()) == 1
