"""What the edge-computing system refuses, in one line that names the value and the way out; its readings."""

import functools
import itertools
import math
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import edge
from moe_theory.core import random
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.edge import delays
from moe_theory.edge.algorithm import draw_pool
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL, PROPORTIONAL
from tests.continual.cases import find_unrefused, list_pairs, refuse

M, N, P, S = 3, 3, 4, 2
DIMS = edge.Dims(M, N, P, S, max_capacity=2)
ALONE = edge.Dims(M, N, P, S)
PADDED = edge.Dims(M, N, P, S, max_delay=6)
ROOT = mt.root_key(0)
PARAMS = edge.Params(num_experts=M)
SHORT = PARAMS._replace(max_transfer_delay=3, max_execution_delay=3)  # fits PADDED
POOL = edge.Pool(np.ones((N, P)), np.ones((N, P)), np.arange(N))
ONES = np.ones(M, int)
LONGEST = 2**20  # the longest delay that rounds of 32 bits allow behind a full queue


def refused(pattern, call, *arguments, **options):
    """The call must be refused in one line that starts with `pattern`."""
    with pytest.raises(InvalidValueError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    assert re.match(pattern, message), message


def arrival(**changes):
    plain = edge.Arrival(
        task=np.int32(0),
        features=np.ones((P, S)),
        truth=np.ones(P),
        transfer_delay=np.zeros(M, int),
        distance=np.zeros(M),
        perturbation=np.zeros(M),
        uniform=np.zeros(M),
    )
    return plain._replace(**changes)


def learn(dims=DIMS, params=PARAMS, execution=ONES, **changes):
    state = edge.begin(dims, params, POOL, execution)
    return jax.eval_shape(lambda: edge.learn(state, arrival(**changes), params, dims=dims))


SIZES = {"max_experts": M, "num_tasks": N, "num_features": P, "num_samples": S}
NO_SIZES = (-2, 1.5, 2.0, True, "3", None, math.nan)
SIZES_REFUSED = [
    *list_pairs(dict.fromkeys((*SIZES, "max_capacity"), (0, *NO_SIZES))),
    *(("max_delay", value) for value in (0, *NO_SIZES) if value is not None),
    *list_pairs({"num_samples": (P, P + 1), "max_waiting": NO_SIZES}),
]


def test_sizes_outside_their_range_are_refused():
    """Would catch s >= p, a size that fails later without its name, and a queue that is silently not used."""

    def dims(name, value):
        return edge.Dims(**SIZES | {name: value})

    assert not find_unrefused(SIZES_REFUSED, dims)
    unknown = [("when_busy", value) for value in ("Drop", "sooner", None, 3, ["soonest"])]
    assert not find_unrefused(unknown, dims, kind=UnknownNameError)
    for when_busy, count in (("drop", 2), ("soonest", 0)):
        refuse("max_waiting", edge.Dims, **SIZES, when_busy=when_busy, max_waiting=count)
    edge.Dims(M, N, P, P - 1)


NON_NEGATIVE = (
    "learning_rate perturbation_scale truth_scale cluster_spread signal_scale min_strength max_strength noise_scale "
    "uplink_delay fibre_delay"
).split()
DELAYS = ("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay")
REFUSED = [
    *list_pairs(dict.fromkeys(DELAYS, (-1, 1.5, 10**12))),
    *list_pairs(dict.fromkeys(NON_NEGATIVE, (-1e-3, np.float32(-2)))),
    *list_pairs(
        {
            "num_experts": (4, 0, 2.5, True, None, "x"),
            "capacity": (3, 0),
            "gate_lag": (2, -1, 0.5),
            "signal_law": (3,),
            "learning_rate": (0.0, 1e13),
            "perturbation_scale": (1e39,),
            "noise_scale": (1e20,),
            "truth_scale": (None, "x"),
            "scale_is_variance": (2,),
            "geometric_stop": (0.0, 1.5),
            "min_strength": (1.5,),
            "min_transfer_delay": (6,),  # above the largest
            "min_execution_delay": (6,),
        }
    ),
]


def test_parameters_outside_their_range_are_refused():
    """Would catch a run with such a parameter, drawn or on explicit arrivals, whatever the laws of delays."""
    state, system, on_pool = edge.begin(DIMS, PARAMS, POOL, ONES), edge.system(DIMS), edge.on_pool(DIMS, POOL, ONES)
    for run in (
        lambda params: mt.simulate(system, ROOT, params, 10**9),
        lambda params: mt.simulate_batch(system, ROOT, 2, params, 10**9),
        lambda params: mt.simulate(on_pool, ROOT, params, 10**9),
        lambda params: edge.begin(DIMS, params, POOL, ONES),
        lambda params: edge.learn(state, arrival(), params, dims=DIMS),
    ):
        assert not find_unrefused(REFUSED, lambda name, value, run=run: run(PARAMS._replace(**{name: value})))
        refuse("min_execution_delay", run, PARAMS._replace(min_execution_delay=0))  # and it is 0 too: no rounds


def test_the_bounds_of_delays_must_fit_the_padding():
    """Would catch a network whose tasks find no slot, and so are dropped though servers are idle."""
    message = (
        "max_transfer_delay=5 and max_execution_delay=5 allow a delay of 10, but arrays are padded to max_delay=6. "
        r"Lower one of them or raise Dims.max_delay\.$"
    )
    refused(message, mt.simulate, edge.system(PADDED), ROOT, PARAMS, 10**9)
    mt.core.system.check_system(edge.system(PADDED), SHORT)


def test_no_more_signals_than_features_are_orthogonal():
    """Would catch signals that are zero, under the one law that cannot serve them."""
    dims = edge.Dims(M, P + 1, P, S)
    message = rf"signal_law=1 \(orthogonal\) allows at most num_features={P} signals, not {P + 1}.*Raise num_features"
    refused(message, mt.simulate, edge.system(dims), ROOT, PARAMS._replace(signal_law=1), 9)
    mt.core.system.check_system(edge.system(dims), PARAMS._replace(signal_law=2))


ACCEPTED = [
    {"num_experts": 1},
    {"num_experts": np.int64(3), "capacity": 2},
    {"num_experts": 2.0, "capacity": 2.0, "gate_lag": 0.0},
    {name: 0.0 for name in NON_NEGATIVE if name != "learning_rate"},
    {"learning_rate": 1, "noise_scale": 0, "truth_scale": 1, "cluster_spread": 0, "signal_law": 1},
    {"min_execution_delay": 0, "min_transfer_delay": 1},
    {"max_transfer_delay": 0, "max_execution_delay": 1},
    {"max_transfer_delay": LONGEST, "max_execution_delay": LONGEST},
    {"geometric_stop": 1},
    {"scale_is_variance": np.bool_(True)},
]


def test_parameters_inside_their_range_run():
    """Would catch a parameter that is let through and then fails, or changes a type, inside the program."""
    system = edge.system(DIMS)

    def one_round(key, params):  # traced for the given kinds of number, as a run is, but not compiled
        state = system.init(key, params)
        return state, system.step(key, state, params)[0]

    for changes in ACCEPTED:
        params = PARAMS._replace(**changes)
        mt.core.system.check_system(system, params)
        before, after = jax.eval_shape(one_round, ROOT, params)
        chex.assert_trees_all_equal_shapes_and_dtypes(before, after)


NUMBERS = [
    (np.array([1, -1, 1]), rf"\[1\]=-1 must be a whole number of rounds in 0..{LONGEST}. C"),
    (np.array([1, 1, 1.5]), r"\[2\]=1.5 must be a whole number of rounds in 0"),
    (np.array([1, np.inf, 1]), r"\[1\]=inf must be a whole number"),
    (np.array(["1", "2", "3"]), " must be whole numbers of rounds, but has type <U1. Change "),
    (np.ones(2, int), r" has shape \(2,\), but must have shape \(3,\).*Change"),
    (1, r" has shape \(\), but must have shape \(3,\).*Change"),
]


def test_delays_are_whole_rounds_one_a_server():
    """Would catch a delay that JAX would cut to a whole number, wrap around in 32 bits, or broadcast."""
    for values, words in NUMBERS:
        refused(f"execution_delay{words}", edge.begin, DIMS, PARAMS, POOL, values)
        refused(f"execution_delay{words}", lambda v=values: mt.simulate(edge.on_pool(DIMS, POOL, v), ROOT, PARAMS, 9))
        refused(f"transfer_delay{words}", learn, transfer_delay=values)


def test_a_task_takes_at_least_a_round():
    """Would catch a task that is done before it came: d >= 1 in (1)."""
    none = np.array([1, 0, 1])
    message = "server 1 has a total transfer and execution delay of 0 rounds, .* takes at least 1 round. Raise its"
    refused(message, learn, execution=none)
    refused(message, lambda: mt.simulate(edge.on_pool(DIMS, POOL, none), ROOT, PARAMS, 10**9))
    learn(execution=none, transfer_delay=ONES)
    learn(execution=none, params=PARAMS._replace(num_experts=1))  # server 1 does not exist
    mt.core.system.check_system(edge.on_pool(DIMS, POOL, none), PARAMS._replace(min_transfer_delay=1))


def test_a_task_takes_no_longer_than_the_padding():
    """Would catch a task that finds no slot of a table of `max_delay` slots, and so is dropped for nothing."""
    message = "execution_delay.2.=7 must be at most max_delay=6, .*Lower execution_delay or raise Dims.max_delay"
    refused(message, edge.begin, PADDED, SHORT, POOL, np.array([1, 1, 7]))
    message = "transfer_delay.0.=7 must be at most max_delay=6, .*Lower transfer_delay or raise Dims.max_delay"
    refused(message, learn, PADDED, SHORT, transfer_delay=np.array([7, 0, 0]))
    message = "server 2 has a delay of 7 rounds, .* max_delay=6. Lower the delay or raise Dims.max_delay"
    refused(message, learn, PADDED, SHORT, [1, 1, 4], transfer_delay=np.array([0, 0, 3]))
    on_pool = edge.on_pool(PADDED, POOL, np.array([1, 1, 4]))
    refused(message, mt.simulate, on_pool, ROOT, SHORT, 10**9)
    mt.core.system.check_system(on_pool, SHORT._replace(num_experts=2))
    learn(PADDED, SHORT, [1, 1, 3], transfer_delay=np.array([0, 0, 3]))


def test_the_state_without_dims_knows_its_padding():
    """Would catch a call without dims that lets a delay through for which the state has no slot."""
    params = PARAMS._replace(max_transfer_delay=1, max_execution_delay=1)
    state = edge.begin(edge.Dims(M, N, P, S, max_delay=2), params, POOL, ONES)
    late = arrival(transfer_delay=np.array([0, 2, 0]))
    refused("server 1 has a delay of 3 rounds, .* max_delay=2", edge.learn, state, late, params)


FIELDS = {
    "task": (np.zeros(1, int), r"task has shape \(1,\), but must have shape \(\)"),
    "truth": (np.ones(P + 1), rf"truth has shape \({P + 1},\), but must have shape \({P},\)"),
    "transfer_delay": (np.ones((M, 1), int), rf"transfer_delay has shape \({M}, 1\), but must have shape \({M},\)"),
    "distance": (np.ones(1), rf"distance has shape \(1,\), but must have shape \({M},\)"),
    "perturbation": (0.0, rf"perturbation has shape \(\), but must have shape \({M},\)"),
    "uniform": (np.ones(M + 1), rf"uniform has shape \({M + 1},\), but must have shape \({M},\)"),
    "targets": (np.ones(S + 1), rf"targets has shape \({S + 1},\), but must have shape \({S},\)"),
}


def test_every_array_of_an_arrival_must_fit():
    """Would catch arrays that JAX would broadcast to the servers or features."""
    assert {*FIELDS, "features"} == set(edge.Arrival._fields)
    state = edge.begin(DIMS, PARAMS, POOL, ONES)
    wrong = [
        (arrival(**{name: value}), f"{words}.*Change the arrival's {name}") for name, (value, words) in FIELDS.items()
    ]
    for shape in ((P,), (P + 1, S), (1, P, S), (P, 1), (P, P)):
        wrong.append((arrival(features=np.ones(shape)), r"features has shape \(.*\), but must have shape \(4, [s2]\)"))
    for brought, words in wrong:
        refused(words, edge.learn, state, brought, PARAMS, dims=DIMS)


def test_without_dims_samples_may_vary_but_not_reach_the_features():
    """Would catch s >= p on explicit arrivals, and a refusal of fewer samples in some rounds."""
    state = edge.begin(edge.Dims(M, N, P, S), PARAMS, POOL, ONES)
    message = f"num_samples={P} must be below num_features={P}"
    refused(message, edge.learn, state, arrival(features=np.ones((P, P))), PARAMS)
    jax.eval_shape(lambda: edge.learn(state, arrival(features=np.ones((P, 3))), PARAMS))


@pytest.mark.parametrize(
    "dims",
    [
        DIMS,
        edge.Dims(M, N, P, S, when_busy="soonest", max_waiting=1),
    ],
    ids=["capacity", "soonest"],
)
def test_a_state_that_needs_its_dims_says_so(dims):
    """Would catch servers that silently hold one task, or errors that leave out a server's second task."""
    state = edge.begin(dims, PARAMS, POOL, ONES)
    message = "servers of this state hold several tasks. Pass the dims that `begin` received"
    refused(message, edge.learn, state, arrival(), PARAMS)
    refused(message, edge.generalization_error_flushed, state)
    jax.eval_shape(lambda: edge.generalization_error_flushed(state, dims))


def test_the_dims_of_a_round_are_those_of_its_start():
    """Would catch another queue, capacity or padding than that of the state, where the shapes happen to agree."""
    short = PARAMS._replace(max_transfer_delay=1, max_execution_delay=2)
    variants = [
        edge.Dims(M, N, P, S, max_delay=3),
        edge.Dims(M, N, P, S, max_delay=3, max_capacity=2),
        edge.Dims(M, N, P, S, when_busy="soonest", max_waiting=1),
        edge.Dims(M, N, P, S, when_busy="soonest", max_waiting=2),
        edge.Dims(M, N + 1, P, S),
    ]
    for one, other in itertools.permutations(variants[:4], 2):
        state = edge.begin(one, short, POOL, ONES)
        refused("the state was made with other dims", edge.learn, state, arrival(), short, dims=other)
    refused("the state was made", edge.learn, edge.begin(ALONE, short, POOL, ONES), arrival(), short, dims=variants[4])


def test_a_pool_and_positions_must_fit_the_dims():
    """Would catch a pool or a map of other sizes, broadcast or cut."""
    for wrong in (
        POOL._replace(truths=np.ones((P, N))),
        POOL._replace(signals=np.ones((N, P + 1))),
        POOL._replace(clusters=np.arange(N + 1)),
    ):
        message = rf"a pool with truths .* does not fit num_tasks={N} and num_features={P}\. Change the pool"
        refused(message, edge.begin, DIMS, PARAMS, wrong, ONES)
        refused(message, lambda wrong=wrong: mt.simulate(edge.on_pool(DIMS, wrong, ONES), ROOT, PARAMS, 10**9))
    message = rf"positions has shape \(2, {M}\), but must have shape \({M}, 2\)\. Change positions"
    refused(message, edge.begin, DIMS, PARAMS, POOL, ONES, np.ones((2, M)))


def test_an_execution_has_no_distance():
    """Would catch execution delays made of distances from a server that is not there."""
    message = "by_distance is only for transfers, .*Choose another distribution"
    refused(message, lambda: mt.simulate(edge.system(DIMS, execution=delays.by_distance), ROOT, PARAMS, 10**9))


def test_traced_values_pass():
    """Would catch a check that looks at a value which a compiled program does not know."""
    state = jax.tree.map(jnp.asarray, edge.begin(DIMS, PARAMS, POOL, ONES))
    wild = edge.Params(*(jnp.asarray(value) for value in PARAMS._replace(num_experts=99, gate_lag=7, capacity=-1)))
    late = arrival(transfer_delay=np.full(M, -5))
    as_arrays = jax.tree.map(jnp.asarray, late)
    jax.jit(lambda state, arrival, params: edge.learn(state, arrival, params, dims=DIMS)).lower(state, as_arrays, wild)
    jax.jit(lambda delay, params: edge.begin(PADDED, params, POOL, delay)).lower(jnp.full(M, 99), wild)
    jax.jit(edge.on_pool(DIMS, POOL, np.full(M, 9)).init).lower(ROOT, wild)


def test_a_policy_is_a_function_of_scores():
    """Would catch a name taken for a policy, scores of another shape, NaN that loses every task or goes unseen."""
    name: Any = "adaptive"
    refused(r"policy='adaptive' must be a function .* policies\.adaptive", edge.system, DIMS, name)
    tall = edge.system(DIMS, lambda outputs, *_: outputs[:, None])
    message = r"the router returned scores of shape \(3, 1\), not one per expert: \(3,\)"
    refused(message, mt.simulate, tall, ROOT, PARAMS, 2)
    state, info = mt.simulate(edge.system(ALONE, lambda outputs, *_: outputs * np.nan), ROOT, PARAMS, 3)
    assert int(state.dropped) == 0
    assert np.all(np.isnan(info.generalization_error))


def test_a_law_of_delays_is_clipped_and_gives_whole_rounds():
    """Would catch a user's law whose delays outgrow the arrays, end before they begin, or are cut to whole numbers."""
    params = PARAMS._replace(max_transfer_delay=2, max_execution_delay=3)
    network = edge.system(ALONE, transfer=lambda trip, params: jnp.where(trip.uniform < 0.5, -7, 90))
    state, info = jax.device_get(mt.simulate(network, ROOT, params, 40))
    served = info.expert >= 0
    assert set(info.delay[served] - state.execution_delay[info.expert[served]]) == {0, 2}
    halves = edge.system(DIMS, transfer=lambda trip, params: trip.uniform * 2)
    refused("a distribution of delays returned .* must return whole rounds", mt.simulate, halves, ROOT, params, 2)


@pytest.mark.parametrize("change", [{"task": 3}, {"task": -1}, {"truth": np.full(P, np.nan)}], ids=str)
def test_an_arrival_is_of_the_pool_and_finite(change):
    """Would catch a kind beyond the pool's, or missing numbers, that would show as an error of 0."""
    refused("task=.* must be a whole number in 0..2|truth must be finite", learn, **change)


@pytest.mark.parametrize("name", ["scaled-signal", "orthogonal-signal"])
def test_tuned_readings_have_a_gate_drive_of_one(name):
    """Would catch a scale tuned to other features, experts or parameters than those of Fig. 3."""
    params = edge.reading(name).params()
    assert params.num_experts == 50
    assert abs(edge.gate_drive(params, 15) - 1) < 1e-12
    assert abs(edge.gate_drive(params._replace(num_experts=10), 15) - 5) < 1e-12


def drawn_means(params, dims, count):
    """E|w|, E|v|^2 and E[beta^2] over drawn pools and arrivals without noise, which hide nothing."""
    keys = random.replicate_keys(mt.root_key(5), np.arange(count, dtype=np.uint32))
    values = edge.Params(*(np.asarray(value) for value in params._replace(noise_scale=0.0)))
    lengths, squares, strengths = draws(dims)(keys, values)
    return tuple(float(np.mean(np.asarray(part, np.float64))) for part in (lengths, squares, strengths))


@functools.cache
def draws(dims):
    """Program for |w|, |v|^2 and beta^2 of an arrival at each key."""

    def one(key, params):
        pool_key, arrival_key = jax.random.split(key)
        pool = draw_pool(pool_key, dims, params)
        positions = jnp.asarray(edge.delays.even_map(dims.max_experts), jnp.float32)
        arrival = edge.draw(arrival_key, dims, pool, positions, params, edge.delays.uniform)
        column = jnp.sum(arrival.features, axis=1)  # beta v
        own = pool.signals[arrival.task]
        signal = jnp.where(params.signal_law == PROPORTIONAL, params.signal_scale * arrival.truth, own)
        square = jnp.sum(signal**2)
        return jnp.sqrt(jnp.sum(arrival.truth**2)), square, jnp.sum(column**2) / square

    # Here running is what costs.
    return jax.jit(jax.vmap(one, in_axes=(0, None)), compiler_options={"xla_backend_optimization_level": 1})


CHANGES = {
    "default": {},
    "strengths": {"min_strength": 0.25, "max_strength": 2.0, "learning_rate": 0.1},
    "variance": {"scale_is_variance": True},
}
QUICK = [("sibling", "default"), ("orthogonal-signal", "variance"), ("independent-signal", "strengths")]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(*pair, marks=[pytest.mark.thorough] * (pair not in QUICK))
        for pair in itertools.product(edge.READINGS, CHANGES)
    ],
)
def test_the_gate_drive_is_eta_times_the_means_over_the_draws(name, change):
    """Would catch a wrong mean or power in kappa = eta E|w| E|v|^2 E[beta^2] / M, by drawing all three.

    Relative deviations are below .2, .4 and .9 a draw, so the product of the means of 20 000 draws is off by 6 %, eight
    standard errors, with a chance below 1e-14.
    """
    params = edge.reading(name).params(**CHANGES[change])
    length, square, strength = drawn_means(params, edge.Dims(3, 2, 15, 1), 20_000)
    drive = params.learning_rate * length * square * strength / params.num_experts
    assert abs(edge.gate_drive(params, 15) / drive - 1) < 0.06


@pytest.mark.parametrize("num_features", [3, 15])
def test_the_mean_square_of_a_bounded_signal(num_features):
    """Would catch a wrong density in the quadrature of E|z|^2 / |z|_inf^2, by drawing z; eight standard errors."""
    z = np.random.default_rng(num_features).normal(size=(100_000, num_features))
    ratio = np.sum(z**2, axis=1) / np.max(z**2, axis=1)
    params = edge.Params(signal_law=INDEPENDENT, num_experts=1, learning_rate=1.0, cluster_spread=0.0)
    orthogonal = params._replace(signal_law=ORTHOGONAL)  # |v| = 1: the other factors alone
    measured = edge.gate_drive(params, num_features) / edge.gate_drive(orthogonal, num_features)
    assert abs(measured - ratio.mean()) < 8 * ratio.std() / math.sqrt(len(ratio))


def test_readings_choose_the_law_that_they_are_called_after():
    """Would catch names that changed places, and a bound |v|_inf = 1 that is not one."""
    laws = {name: edge.reading(name).params().signal_law for name in edge.READINGS}
    assert laws == {
        "sibling": PROPORTIONAL,
        "scaled-signal": PROPORTIONAL,
        "orthogonal-signal": ORTHOGONAL,
        "independent-signal": INDEPENDENT,
    }
    independent = edge.reading("independent-signal").params()
    assert (independent.signal_scale, independent.min_strength, independent.max_strength) == (1, 0, 1)
    assert edge.reading("sibling").params().signal_scale == 1


def test_defaults_are_those_of_figure_3():
    """Would catch a default that drifts from sigma_0 = 0.6, eta = 0.2, spread sigma_0^2 / 12^.5 and d_u = 10."""
    params = edge.Params()
    assert (params.num_experts, params.learning_rate, params.gate_lag, params.capacity) == (50, 0.2, 1, 1)
    assert params.truth_scale == 0.6
    assert abs(12 * params.cluster_spread**2 - 0.6**4) < 1e-12  # uniform on an interval of width sigma_0^2
    assert params.max_transfer_delay + params.max_execution_delay == 10
    assert params.min_transfer_delay + params.min_execution_delay == 1
