"""Tanbr and its rivals, what they choose, learn and refuse; and merging for a stream of one's own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import merging
from moe_theory.core.errors import DeclarationError, UnknownNameError
from moe_theory.merging import network, policies
from moe_theory.merging.online import checked_feedback, merge_online
from moe_theory.merging.params import Dims, Params, check_params
from moe_theory.merging.policies import _random_weights, named
from moe_theory.merging.rewards import Feedback
from moe_theory.merging.system import system
from tests.continual.cases import loop_over, refuse

KEY = mt.root_key(8)
DIMS = Dims(4, 3, 16, max_leaves=8, width=8, num_steps=2, num_candidates=6)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw = quickly(_random_weights, static_argnums=1)
outputs = quickly(network.outputs)
written = quickly(lambda weights, points, mix: network.gradient(network.factors(weights, points, mix)[1]))
PARAMS = Params(num_experts=4, max_active=3, split_constant=0.3)


@functools.cache
def compiled(policy, dims=DIMS):
    """Programs of a policy's parts: begin(key, params), choose and learn."""
    begin = quickly(lambda key, params: policy.begin(key, dims, params))
    return begin, quickly(policy.choose), quickly(policy.learn)


def test_a_warm_start_picks_the_mix_first_and_then_where_its_bound_is_largest():
    """Would catch a warm start that pulls a leaf, is played for ever or never again, or shares an arm."""
    warm, last = policies.WARM_SLOTS, 24
    dims = Dims(4, 4, last, max_leaves=8, width=8, num_steps=2)
    begin, choose, learn = compiled(named("tanbr", dims), dims)
    params = Params(num_experts=4, max_active=3, warm_start=True, smoothness=0.01)
    memory = jax.device_get(begin(KEY, params))
    rng, mixes = np.random.default_rng(0), []
    for time in range(1, last + 1):
        mix = rng.dirichlet(np.ones(4)).astype(np.float32)
        pick = jax.device_get(choose(KEY, memory, mix, time, params))
        leaves = int(np.sum(memory.tree.active))
        assert pick.num_candidates == leaves + 1
        assert time > warm or pick.candidate == dims.max_leaves
        is_warm = int(pick.candidate) == dims.max_leaves
        if is_warm:
            kept = np.where(mix > mix.min(), mix, 0)
            np.testing.assert_allclose(pick.weights, kept / kept.sum(), rtol=1e-6)
            assert pick.depth == 0
            mixes.append(time)
        pulls, arms = np.sum(memory.tree.count), memory.learner.history.num_arms
        # Weights like the mix pay in the first slots only.
        reward = np.float32(is_warm == (time <= warm + 2))
        feedback = Feedback(np.full(4, reward), np.ones(4, np.int32))
        memory = jax.device_get(learn(KEY, memory, pick, mix, feedback, time, params))
        assert memory.learner.history.num_arms == arms + 1 if is_warm else True
        assert np.sum(memory.tree.count) == pulls if is_warm else True
    assert set(range(1, warm + 1)) <= set(mixes)
    assert warm < len(mixes) < last


@pytest.mark.parametrize("form", ["dual", pytest.param("full", marks=pytest.mark.thorough)])
def test_a_pick_may_be_learned_from_late(form):
    """Would catch what was found at choosing being used after other slots have changed Z."""
    begin, choose, learn = compiled(named("tanbr", DIMS, form))
    memory, mix = begin(KEY, PARAMS), np.ones(3, np.float32) / 3
    feedback = Feedback(np.float32([0.2, 0.5, 0.9]), np.ones(3, np.int32))
    early = choose(KEY, memory, mix, 1, PARAMS)
    for time in (2, 3):
        memory = learn(KEY, memory, choose(KEY, memory, mix, time, PARAMS), mix, feedback, time, PARAMS)
    late, anew = (learn(KEY, memory, pick, mix, feedback, 1, PARAMS) for pick in (early, early._replace(found=None)))
    jax.tree.map(lambda *pair: np.testing.assert_allclose(*pair, rtol=1e-5), late.learner, anew.learner)


def test_slots_beyond_the_memory_and_bad_rewards_are_refused_or_shown():
    """Would catch a run that goes on without learning and looks as if it had, and a NaN that is learned from."""
    policy = named("tanbr", DIMS, "dual")
    begin, choose, _ = compiled(policy)
    memory = begin(KEY, PARAMS)
    mix = np.ones(3, np.float32) / 3
    assert "slot 17 must be at most max_rounds=16" in refuse("", policy.choose, KEY, memory, mix, 17, PARAMS)
    picks = [choose(KEY, memory, mix, time, PARAMS) for time in (16, 17)]
    for pick, is_known in zip(picks, (True, False), strict=True):
        assert np.isfinite(pick.bonus) == np.isfinite(pick.prediction) == is_known
    bad = Feedback(np.float32([0.5, np.nan, 0.5]), np.ones(3, np.int32))
    assert "rewards[1]=nan" in refuse("rewards", policy.learn, KEY, memory, picks[0], mix, bad, 1, PARAMS)


def test_nucbs_candidates_are_the_same_whatever_the_padding():
    """Would catch draws that depend on padding, and weights of more than B experts; their law is in test_laws.py."""
    dims, wider = Dims(4, 2, num_candidates=500), Dims(6, 2, num_candidates=500)
    points = np.asarray(draw(KEY, dims, Params(num_experts=4, max_active=4)), np.float64)
    padded = np.asarray(draw(KEY, wider, Params(num_experts=4, max_active=4)))
    np.testing.assert_array_equal(padded[:, :4], points.astype(np.float32))
    few = np.asarray(draw(KEY, dims, Params(num_experts=4, max_active=2)))
    assert np.all(np.sum(few > 0, axis=1) == 2)
    np.testing.assert_array_equal(np.argmax(few, axis=1), np.argmax(points, axis=1))


def test_nucb_picks_the_largest_bound_and_remembers_each_slot():
    """Would catch another candidate, a slot that shares an arm, and a mix that is not what bounds are computed for."""
    begin, choose, learn = compiled(named("nucb", DIMS))
    memory = jax.device_get(begin(KEY, PARAMS))
    rng, tried = np.random.default_rng(1), []
    for time in range(1, 6):
        key, mix = jax.random.fold_in(KEY, time), rng.dirichlet(np.ones(3)).astype(np.float32)
        pick = jax.device_get(choose(key, memory, mix, time, PARAMS))
        candidates = np.asarray(draw(key, DIMS, PARAMS))
        g = np.asarray(written(memory.weights, candidates, mix))
        seen = [np.asarray(written(weights, x[None], psi))[0] for weights, x, psi in tried]
        Z = PARAMS.regularization * np.eye(DIMS.num_parameters) + sum((np.outer(row, row) / 8 for row in seen), 0.0)
        widths = np.sqrt(np.sum(g @ np.linalg.inv(Z) * g, axis=1) / 8)
        bounds = np.asarray(outputs(memory.weights, candidates)) @ mix + PARAMS.exploration * widths
        assert pick.candidate == np.argmax(bounds)
        assert abs(pick.prediction + pick.bonus - bounds.max()) < 1e-4
        np.testing.assert_allclose(pick.weights, candidates[pick.candidate], rtol=1e-6)
        tried.append((memory.weights, pick.weights, mix))
        feedback = Feedback(np.ones(3, np.float32), np.ones(3, np.int32))
        memory = jax.device_get(learn(key, memory, pick, mix, feedback, time, PARAMS))
    assert memory.history.num_arms == 5
    np.testing.assert_array_equal(memory.history.points[:5], [x for _, x, _ in tried])


FOUR = Dims(max_experts=5, num_tasks=3)
RIVAL_PARAMS = Params(num_experts=3, max_active=2)
QUICKLY = {"xla_backend_optimization_level": 0}  # compiling is what costs
PLAIN = (policies.UNIFORM, policies.AVERAGE, policies.MIX, policies.BEST_EXPERT, policies.GRADIENT)
MIXES = np.random.default_rng(2).dirichlet(np.ones(3), 400)


def played(name, params=RIVAL_PARAMS):
    """Picks of as many slots as there are mixes, where a task's reward is the weight of the second expert."""
    policy = policies.named(name, FOUR)

    def slot(memory, now):
        key, mix, time = now
        choose_key, learn_key = jax.random.split(key)
        pick = policy.choose(choose_key, memory, mix, time, params)
        feedback = Feedback(jnp.full(3, pick.weights[1]), jnp.array([3, 0, 1], jnp.int32))
        return policy.learn(learn_key, memory, pick, mix, feedback, time, params), pick

    def run(key, mixes):
        keys = jax.random.split(key, len(mixes) + 1)
        start = policy.begin(keys[0], FOUR, params)
        return jax.lax.scan(slot, start, (keys[1:], mixes, jnp.arange(1, len(mixes) + 1)))[1]

    return jax.tree.map(np.asarray, jax.jit(run, compiler_options=QUICKLY)(KEY, jnp.asarray(MIXES, jnp.float32)))


@pytest.fixture(scope="module")
def picks():
    return {name: played(name) for name in PLAIN}


@pytest.mark.parametrize("name", PLAIN)
def test_weights_are_feasible(picks, name):
    """Would catch weights off the simplex, of more than B experts, or of experts that are padding."""
    points = picks[name].weights
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-5)
    assert np.all(points >= 0)
    assert np.all(np.sum(points > 0, axis=1) <= 2)
    assert np.all(picks[name].weights[:, 3:] == 0)
    assert np.all(picks[name].num_candidates == (3 if name == policies.BEST_EXPERT else 1))


def test_policies_that_learn_nothing_are_what_they_say(picks):
    """Would catch equal weights over padding, and a mix that is not cut to the largest."""
    np.testing.assert_array_equal(picks[policies.AVERAGE].weights, np.tile([0.5, 0.5, 0, 0, 0], (400, 1)))
    kept = np.where(MIXES.min(axis=1, keepdims=True) == MIXES, 0, MIXES)
    kept /= kept.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(picks[policies.MIX].weights[:, :3], kept, atol=1e-6)


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


def test_names_are_looked_up_once():
    """Would catch a policy that is built anew, and so compiled anew, for every call."""
    assert policies.named(policies.MIX, FOUR) is policies.named(policies.MIX, Dims(max_experts=5, num_tasks=3))
    assert policies.named(policies.TANBR, FOUR) is policies.named(policies.TANBR, FOUR)
    assert named("nucb", Dims(), "diagonal") is named("nucb", Dims(), "diagonal")
    assert named("tanbr", Dims()) != named("tanbr", Dims(), "diagonal")
    refuse("policy", policies.named, "tambr", FOUR, kind=UnknownNameError)
    refuse("uncertainty", policies.named, policies.MIX, FOUR, "diagnoal", kind=UnknownNameError)
    refuse("monitor", system, FOUR, monitor="none", kind=UnknownNameError)


class Corner:
    """A stream of two tasks whose reward is the weight of one expert; it remembers what it was asked."""

    num_experts, num_tasks = 3, 2

    def __init__(self, num_slots):
        self.num_slots, self.asked = num_slots, []

    def slots(self):
        return iter(range(self.num_slots))

    def serve(self, slot, weights):
        self.asked.append((slot, weights))
        return Feedback(np.array([weights[1], 0.5]), np.array([3, 0 if slot % 2 else 1]))


def test_slots_are_served_once_and_in_order():
    stream = Corner(12)
    rows = list(merge_online(stream, policies.UNIFORM, 9))
    assert [slot for slot, _ in stream.asked] == list(range(9))
    assert [row.slot for row in rows] == list(range(1, 10))
    for row, (slot, served) in zip(rows, stream.asked, strict=True):
        np.testing.assert_allclose(row.weights, served, atol=1e-6)
        assert served.sum() == pytest.approx(1)
        counts = np.array([3, 0 if slot % 2 else 1])
        assert row.reward == pytest.approx((3 * served[1] + 0.5 * counts[1]) / counts.sum())
    assert rows[-1].mean_reward == pytest.approx(np.mean([row.reward for row in rows]))
    # The monitor knows a slot's counts from the next one on.
    np.testing.assert_allclose(rows[0].estimated_mix, 0.5)
    np.testing.assert_allclose(rows[1].estimated_mix, 0.9 * 0.5 + 0.1 * np.array([0.75, 0.25]), atol=1e-6)


def test_a_stream_that_ends_early_ends_the_run():
    assert len(list(merge_online(Corner(4), policies.AVERAGE, 100))) == 4


def test_a_policy_learns_from_what_is_served():
    rows = list(merge_online(Corner(60), policies.BEST_EXPERT, 60))
    assert [int(np.argmax(row.weights)) for row in rows[:3]] == [0, 1, 2]
    assert np.mean([row.weights[1] for row in rows[30:]]) > 0.5


@pytest.mark.parametrize(
    "names", [[policies.AVERAGE, policies.BEST_EXPERT], pytest.param(None, marks=pytest.mark.thorough)]
)
def test_compare_on_the_same_slots(names):
    opened = []

    def open_stream():
        opened.append(Corner(5))
        return opened[-1]

    found = merging.compare(open_stream, names, num_slots=4)
    assert found.keys() == set(names or policies.POLICIES.keys() - {policies.MIX})  # three experts, two tasks
    served = [stream.asked for stream in opened if stream.asked]
    assert [[slot for slot, _ in asked] for asked in served] == [[0, 1, 2, 3]] * len(found)
    for rows, asked in zip(found.values(), served, strict=True):
        np.testing.assert_allclose([row.weights for row in rows], [weights for _, weights in asked], atol=1e-6)


def test_policies_that_cannot_be_compared_are_refused():
    refuse("policy", merging.compare, lambda: Corner(3), ["tanber"], kind=UnknownNameError)
    refuse("max_active", merging.compare, lambda: Corner(3), max_active=4)
    refuse("", merging.compare, lambda: Corner(0), ["average"], kind=DeclarationError)


def test_parameters_that_make_no_sense_are_refused():
    wrong = {"num_experts": {"num_experts": 1}, "max_active": {"num_experts": 3, "max_active": 4}}
    wrong["warm_start"] = {"num_experts": 4, "max_active": 4, "warm_start": True}  # as many experts as tasks
    for argument, choices in wrong.items():
        refuse(argument, check_params, FOUR, Params(**choices))
    refuse("", policies.named("mix", FOUR).begin, KEY, FOUR, Params(num_experts=4, max_active=4))


def test_rewards_that_are_none_are_refused():
    """One line that names the value and the bound."""
    for words, served in {
        "reward of task 1 is NaN": ([0.5, np.nan], [1, 1]),
        "reward of task 1 is 1.5": ([0.5, 1.5], [1, 1]),
        "shape (1,), but must have shape (2,)": ([0.5], [1]),
        "not all 0": ([0.5, 0.5], [0, 0]),
        "must return": 0.5,
    }.items():
        assert words in refuse("", checked_feedback, served, 2, 7)


def test_a_task_without_requests_may_have_any_reward():
    np.testing.assert_array_equal(checked_feedback(([np.nan, 0.25], [0, 4]), 2, 1).rewards, [0, 0.25])


def test_what_cannot_be_run_is_refused_before_the_first_slot():
    stream = Corner(3)
    refuse("policy", merge_online, stream, "tanber", 3, kind=UnknownNameError)
    refuse("smoothness_ratio", merge_online, stream, policies.AVERAGE, 3, Params(smoothness_ratio=1.0))
    assert stream.asked == []


def test_sums_of_experts_that_do_not_fit_or_are_not_finite_are_refused():
    ones = np.ones(2)
    for parts, shares in (([], []), ([ones], [0.5, 0.5]), ([ones, np.ones(3)], [0.5, 0.5])):
        refuse("", merging.weighted_sum, parts, shares)
    refuse("", merging.weighted_sum, [ones, np.array([1.0, np.nan])], np.array([0.5, 0.5]))


def test_an_expert_of_weight_0_is_not_read():
    total = merging.weighted_sum([np.ones(2), np.array([1.0, np.nan])], np.array([1.0, 0.0]))
    np.testing.assert_array_equal(total, [1, 1])


def test_a_policy_of_one_s_own_goes_by_its_name(monkeypatch):
    average = policies.POLICIES["average"]
    monkeypatch.setitem(policies.POLICIES, "mine", lambda dims, uncertainty: average(dims, uncertainty))
    mine, theirs = (list(merge_online(Corner(3), name, 3)) for name in ("mine", "average"))
    assert [row.reward for row in mine] == [row.reward for row in theirs]


@loop_over("name", ["tanbr", "nucb", "best-expert", "gradient"])
def test_learn_empty_slot(name):
    """Would catch a policy that a slot or a task without requests ruins."""
    begin, choose, learn = compiled(policies.named(name, DIMS, "dual"))
    begun, mix = begin(KEY, PARAMS), np.ones(3, np.float32) / 3
    for shown, counts in (([0.0, 0.0, 0.0], [0, 0, 0]), ([np.nan, 0.5, 0.5], [0, 3, 1])):
        memory = begun
        for slot in range(1, 7):
            pick = choose(KEY, memory, mix, slot, PARAMS)
            feedback = Feedback(np.float32([0.5] * 3), np.ones(3, np.int32))
            if slot == 3:
                feedback = Feedback(np.float32(shown), np.int32(counts))
            memory = learn(KEY, memory, pick, mix, feedback, slot, PARAMS)
        assert float(pick.weights.sum()) == pytest.approx(1, abs=1e-4), counts
