"""What the continual system refuses, in words that name the value and the way out; its readings; an own loss."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.core.random import root_key
from moe_theory.core.tasks import PROPORTIONAL
from tests.continual.cases import find_unrefused, list_pairs, refuse

DIMS = continual.Dims(max_experts=3, num_tasks=3, num_features=4, num_samples=2, max_active=2)
ROOT = mt.root_key(0)


SIZES = {"max_experts": 3, "num_tasks": 3, "num_features": 4, "num_samples": 2}


NO_SIZES = (0, -2, 1.5, 2.0, True, "3", None, math.nan)


def test_sizes_outside_their_range_are_refused():
    """Would catch s >= d, empty ranks of top-k routing, and a size that fails later without its name."""
    wrong = dict.fromkeys(SIZES, NO_SIZES) | {"num_samples": (4, 5, *NO_SIZES), "max_active": (4, *NO_SIZES)}
    assert not find_unrefused(list_pairs(wrong), lambda name, value: continual.Dims(**SIZES | {name: value}))
    assert continual.Dims(**SIZES | {"num_samples": 3, "max_active": 3}).max_active == 3


NON_NEGATIVE = (
    "learning_rate balance_weight perturbation_scale termination_threshold truth_scale signal_scale min_strength "
    "max_strength noise_scale cluster_spread"
).split()
SWITCHES = ("terminate", "accumulate_flags", "scale_is_variance")
SQUARED = ("noise_scale", "truth_scale", "signal_scale", "cluster_spread")  # float32 must hold the square
REFUSED = [
    *list_pairs(dict.fromkeys(NON_NEGATIVE, (-1e-3, np.float32(-2)))),
    *list_pairs(dict.fromkeys(SQUARED, (1e-39, 1e-20, 1e20, 1e30))),
    *list_pairs(dict.fromkeys(SWITCHES, (2, -1, 0.5))),
    *list_pairs(
        {
            "num_experts": (4, 0, -1, 2.5, True),
            "num_active": (0, 3),
            "num_clusters": (0, 1.5, 2**31),
            "learning_rate": (0.0, jnp.float32(0), 1e13, None, "0.5", 1j),
            "locality_power": (0.0, -1.0),
            "min_strength": (1.5,),  # above the largest
            "perturbation_scale": (1e39,),
            "balance_weight": (1e-39,),
        }
    ),
]


def test_parameters_outside_their_range_are_refused():
    """Would catch a run with such a parameter, alone, in a batch or on a pool, and a message without its name."""
    params, pool = continual.Params(num_experts=3), continual.Pool(jnp.zeros((3, 4)), jnp.zeros((3, 4)), jnp.arange(3))
    system, on_pool = continual.system(DIMS), continual.on_pool(DIMS, pool)
    for run in (
        lambda name, value: mt.simulate(system, ROOT, params._replace(**{name: value}), 10**9),
        lambda name, value: mt.simulate_batch(system, ROOT, 2, params._replace(**{name: value}), 10**9),
        lambda name, value: mt.simulate(on_pool, ROOT, params._replace(**{name: value}), 10**9),
    ):
        assert not find_unrefused(REFUSED, run)
    refuse("num_active", mt.simulate, system, ROOT, params._replace(num_active=2, num_experts=1), 10**9)


ACCEPTED = [
    {"num_experts": 1},
    {"num_experts": np.int64(3), "num_active": 2},
    {"num_experts": 2.0},
    {"num_clusters": 3.0},
    {"num_clusters": 10**6},
    {name: 0.0 for name in NON_NEGATIVE if name != "learning_rate"},
    {"learning_rate": 1, "locality_power": 2, "noise_scale": 0, "truth_scale": 1, "cluster_spread": 0},
    {"learning_rate": 1e-30},
    {name: np.bool_(True) for name in SWITCHES},
    *[{name: value} for name in SWITCHES for value in (1, 0.0)],
]


def test_parameters_inside_their_range_run():
    """Would catch a parameter that is let through and then fails, or changes a type, inside the program."""
    system = continual.system(DIMS)

    def one_round(key, params):  # traced for the given kinds of number, as a run is, but not compiled
        state = system.init(key, params)
        return state, system.step(key, state, params)[0]

    for changes in ACCEPTED:
        params = continual.Params(num_experts=3)._replace(**changes)
        jax.eval_shape(lambda key, params=params: system.init(key, params), ROOT)
        before, after = jax.eval_shape(one_round, ROOT, params)
        types = [jax.tree.map(lambda leaf: leaf.dtype, state) for state in (before, after)]
        assert types[0] == types[1], changes


def test_a_pool_must_fit_the_dims():
    """Would catch a pool of other sizes, broadcast or cut."""
    fits = continual.Pool(jnp.zeros((3, 4)), jnp.zeros((3, 4)), jnp.arange(3))
    continual.on_pool(DIMS, fits)
    for wrong in (
        fits._replace(truths=jnp.zeros((4, 3))),
        fits._replace(signals=jnp.zeros((3, 5))),
        fits._replace(clusters=jnp.arange(4)),
    ):
        refuse("", continual.on_pool, DIMS, wrong)


def test_defaults_are_those_of_figure_2():
    """Would catch a default that drifts from sigma_0 = 0.4: Gamma = sigma_0^1.25, spread sigma_0^1.5, c = 1/sigma_0."""
    params = continual.Params()
    assert (params.num_experts, params.num_active, params.learning_rate, params.balance_weight) == (10, 1, 0.5, 0.5)
    assert abs(math.log(params.termination_threshold) / math.log(0.4) - 1.25) < 1e-12
    assert abs(math.log(params.cluster_spread) / math.log(0.4) - 1.5) < 1e-12
    assert abs(params.signal_scale * 0.4 - 1) < 1e-12
    assert params.truth_scale == 0.4


@pytest.mark.parametrize("name", continual.READINGS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_experts": 4, "learning_rate": 0.1, "min_strength": 0.25, "max_strength": 2.0},
        {"scale_is_variance": True, "truth_scale": 0.3},
    ],
    ids=["default", "scales", "variance"],
)
def test_the_gate_drive_is_eta_times_the_means_over_the_draws(name, changes):
    """Would catch a wrong mean or power in kappa = eta E|w| E|v|^2 E[beta^2] / M, by drawing all three.

    The means of 20 000 draws are off by less than 1% but for one chance in 10^9.
    """
    params = continual.reading(name).params(**changes)
    rng = np.random.default_rng(0)
    deviation = params.truth_scale**0.5 if params.scale_is_variance else params.truth_scale
    d = 10
    truths = deviation * rng.normal(size=(20_000, d)) + params.cluster_spread * rng.normal(size=(20_000, d))
    apart = deviation * rng.normal(size=(20_000, d))
    signals = params.signal_scale * (truths if params.signal_law == PROPORTIONAL else apart)
    strength = rng.uniform(params.min_strength, params.max_strength, 200_000)
    means = np.mean(np.linalg.norm(truths, axis=1)) * np.mean(np.sum(signals**2, axis=1)) * np.mean(strength**2)
    drive = continual.gate_drive(params, d)
    assert drive > 0
    assert abs(drive / (params.learning_rate * means / params.num_experts) - 1) < 0.04


@pytest.mark.parametrize(("name", "num_clusters"), [("unit-signal", 3), ("unit-signal", 9), ("independent-signal", 9)])
def test_the_gate_drive_is_that_of_drawn_pools(name, num_clusters):
    """With K >= N a pool has no spread inside a cluster: the drive was 1.64 times too large there."""
    params = continual.reading(name).params(num_clusters=num_clusters)
    dims = continual.Dims(max_experts=10, num_tasks=6, num_features=10, num_samples=6)
    pool = drawn_pools(dims)(jax.random.split(mt.root_key(1), 4096), params)
    truths, signals = (np.asarray(each, float) for each in (pool.truths, pool.signals))
    means = np.mean(np.linalg.norm(truths, axis=2)) * np.mean(np.sum(signals**2, axis=2))
    expected = params.learning_rate * means / params.num_experts
    assert continual.gate_drive(params, 10, num_tasks=6) == pytest.approx(expected, rel=0.02)


@functools.cache
def drawn_pools(dims):
    system = continual.system(dims)
    return jax.jit(jax.vmap(lambda key, params: system.init(key, params).pool, in_axes=(0, None)))


def test_learn_and_begin_refuse_what_does_not_fit():
    """Would catch an extension that silently trains fewer experts, and shapes that JAX would broadcast."""
    dims = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
    pool = continual.Pool(np.ones((2, 4)), np.ones((2, 4)), np.arange(2))
    params = continual.Params(num_experts=3)
    state = continual.begin(dims, params, pool)
    arrival = continual.Arrival(np.int32(0), np.ones((4, 2), np.float32))
    many, tall = (continual.Arrival(0, np.ones(shape)) for shape in ((4, 5), (5, 2)))
    for argument, brought, choices in (
        ("num_active", arrival, {"num_active": 2}),
        ("num_experts", arrival, {"num_experts": 9}),
        ("num_samples", many, {}),
        ("features", tall, {}),
    ):
        refuse(argument, continual.learn, state, brought, np.zeros(3), params._replace(**choices))
    refuse("", continual.begin, dims, params, pool._replace(truths=np.ones((3, 4))))
    refuse("num_experts", continual.begin, dims, params._replace(num_experts=0), pool)


FEW_DIMS = continual.Dims(max_experts=4, num_tasks=2, num_features=5, num_samples=2)
PARAMS = continual.Params(num_experts=3, balance_weight=2.0, terminate=False)
POOL = continual.Pool(np.eye(5)[:2], np.eye(5)[:2], np.zeros(2, np.int32))


def nothing(visits, time, params):
    return jnp.zeros(visits.shape)


@pytest.mark.parametrize("make", [continual.system, lambda dims, **own: continual.on_pool(dims, POOL, **own)])
def test_a_loss_that_is_always_zero_is_a_weight_of_zero(make):
    own, paper = (jax.jit(system.step) for system in (make(FEW_DIMS, auxiliary=nothing), make(FEW_DIMS)))
    ours = theirs = continual.begin(FEW_DIMS, PARAMS, POOL)
    for time in range(4):
        key = jax.random.fold_in(root_key(0), time)
        ours, _ = own(key, ours, PARAMS)
        theirs, _ = paper(key, theirs, PARAMS._replace(balance_weight=0.0))
    np.testing.assert_allclose(ours.gates, theirs.gates, rtol=1e-5, atol=1e-7)
    assert np.abs(ours.gates).max() > 0.01
    with_the_paper_s, _ = paper(key, theirs, PARAMS)
    assert np.abs(with_the_paper_s.gates - own(key, theirs, PARAMS)[0].gates).max() > 0.01


def test_a_loss_is_that_of_the_expert_that_was_chosen():
    state = continual.begin(FEW_DIMS, PARAMS, POOL)
    features, noise = np.random.default_rng(0).normal(size=(5, 2)), np.array([0.0, 0.2, 0.1, 9.0])
    arrival = continual.Arrival(0, features)
    learn = jax.jit(continual.learn, static_argnames=("auxiliary",))
    free, _ = learn(state, arrival, noise, PARAMS, auxiliary=nothing)
    costly, info = learn(state, arrival, noise, PARAMS, auxiliary=lambda visits, time, params: 5.0 + visits)
    assert info.expert == 1  # of the three that exist
    # The gates begin at zero, so that pi = 1/3: a cost of 6 at one expert moves them by eta pi (1{m} - pi) 6.
    shares = np.array([-1 / 9, 2 / 9, -1 / 9, 0.0]) * 6 * PARAMS.learning_rate
    np.testing.assert_allclose(free.gates - costly.gates, shares[:, None] * features.sum(axis=1), rtol=1e-4, atol=1e-6)


# What tests lean on: a helper that hides a failure hides it everywhere.
