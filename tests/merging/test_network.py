"""The reward network against JAX and NumPy, and the tree of boxes against linear programs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import moe_theory as mt
from moe_theory.core.errors import UnknownNameError
from moe_theory.merging import network, uncertainty
from moe_theory.merging import tree as trees
from moe_theory.merging.network import check_rewards
from moe_theory.merging.params import (
    FILLED_POINT,
    LINE_POINT,
    RANDOM_POINT,
    Dims,
    Params,
)
from moe_theory.merging.rewards import Feedback
from tests.continual.cases import loop_over, refuse

KEY = mt.root_key(4)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw = quickly(network.draw, static_argnums=1)
outputs = quickly(network.outputs)


@loop_over("num_hidden", [1, 2])
def test_factors_are_those_of_the_gradient_by_jax(num_hidden):
    """Would catch a wrong factor, layer or unit, and kernels that are not inner products of these gradients."""
    dims = Dims(4, 3, width=6, num_hidden=num_hidden)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        weights = draw(KEY, dims)
        points, mix = rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(3))

        def value(weights, point):
            return jnp.sum(mix * network.outputs(weights, point[None])[0])

        @quickly
        def both(weights, points, mix):
            values, factors = network.factors(weights, points, mix)
            expected = jax.vmap(jax.value_and_grad(value), in_axes=(None, 0))(weights, points)
            parts = network.gradient(factors), network.kernel(factors, jax.tree.map(lambda leaf: leaf[:2], factors))
            return values, *parts, network.squared_length(factors), expected

        values, gradients, kernel, lengths, (expected_values, expected) = both(weights, points, mix)
    flat = np.concatenate([np.asarray(layer).reshape(5, -1) for layer in expected.layers], axis=1)
    assert flat.shape == (5, dims.num_parameters)
    np.testing.assert_allclose(values, expected_values, rtol=1e-12)
    np.testing.assert_allclose(gradients, flat, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel, flat @ flat[:2].T, rtol=1e-12)
    np.testing.assert_allclose(lengths, np.sum(flat**2, axis=1), rtol=1e-12)


@loop_over("num_hidden", [1, 2])
def test_a_network_begins_at_zero(num_hidden):
    """Guards f(x, theta_0) = 0, which (11) needs. Would catch halves that do not cancel."""
    dims = Dims(4, 3, width=6, num_hidden=num_hidden)
    with jax.enable_x64(True):
        weights = draw(KEY, dims)
        values = outputs(weights, np.random.default_rng(0).dirichlet(np.ones(4), 50))
    assert all(np.any(np.asarray(layer)) for layer in weights.layers)
    np.testing.assert_allclose(values, 0, atol=1e-12)


def test_padding_changes_no_weight():
    """Would catch an expert whose column depends on how many there is room for."""
    weights, fewer = (draw(KEY, Dims(number, 3, width=20, num_hidden=2)) for number in (20, 8))
    np.testing.assert_array_equal(fewer.layers[0], weights.layers[0][:, :8])
    np.testing.assert_array_equal(fewer.layers[2], weights.layers[2])


DIMS = Dims(3, 2, 14, width=4, num_steps=5)
record = quickly(network.record)


def begin(dims=DIMS):
    blank = jax.eval_shape(lambda: network.empty_history(dims))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), blank)


def test_an_absent_task_or_an_unusable_reward_leaves_no_trace():
    """Would catch an absent task's 0 learned as a reward, and a NaN that poisons the means or goes uncounted."""
    point, rewards = np.asarray([0.5, 0.5, 0.0], np.float32), np.float32([0.3, 0.8])
    once = record(begin(), jnp.int32(0), point, Feedback(rewards, np.int32([4, 4])))
    absent = record(once, jnp.int32(0), point, Feedback(np.float32([0.5, 9.0]), np.int32([4, 0])))
    np.testing.assert_array_equal(absent.counts[0], [2, 1])
    np.testing.assert_allclose(absent.means[0], [0.4, 0.8], rtol=1e-6)
    for bad in (np.nan, np.inf):
        unusable = record(once, jnp.int32(0), point, Feedback(np.float32([0.5, bad]), np.int32([4, 4])))
        assert unusable.unusable == 1
        for name in ("points", "counts", "means", "num_arms"):
            np.testing.assert_array_equal(getattr(unusable, name), getattr(absent, name))


def test_rewards_that_teach_nothing_are_refused():
    """Would catch a bad reward that is learned from without a word."""
    for argument, words, rewards, counts in (
        ("rewards", "rewards[1]=nan of 2 requests must be a finite number", [0.5, np.nan], [3, 2]),
        ("rewards", "rewards[0]=inf", [np.inf, 0.5], [3, 2]),
        ("counts", "counts=[3, -2] must be whole numbers", [0.5, 0.5], [3, -2]),
        ("counts", "must be whole numbers", [0.5, 0.5], [3.0, 2.0]),
        ("rewards", "shape (1,) and counts has shape (2,)", [0.5], [3, 2]),
    ):
        assert words in refuse(argument, check_rewards, Feedback(np.asarray(rewards), np.asarray(counts)))


REGULARIZED = Params(regularization=0.7)
TILE = uncertainty.SLOTS_A_TILE
LOOKED_AT = [0, 1, 30, TILE - 2, TILE - 1, TILE, TILE + 1, TILE + 40]
CANDIDATES = 5
QUICKLY = {"xla_backend_optimization_level": 0}


def slots(dims, count):
    """Factors of each slot's gradient (count, ...), and of candidates that no slot changes (C, ...).

    Drawn at random: neither of them need be a network's.
    """
    rng = np.random.default_rng(dims.width)
    dtype = np.dtype(jnp.result_type(float))

    def factors(size):
        lengths = (
            (*[dims.width] * dims.num_hidden, dims.num_tasks),
            (dims.max_experts, *[dims.width] * dims.num_hidden),
        )
        outer = [rng.standard_normal((size, n)).astype(dtype) for n in lengths[0]]
        return network.Factors(tuple(outer), tuple(rng.uniform(size=(size, n)).astype(dtype) for n in lengths[1]))

    return factors(count), factors(CANDIDATES)


def written(factors):
    """The gradients in full, layer by layer and row by row."""
    pairs = zip(*(map(np.float64, part) for part in factors), strict=True)
    return np.concatenate([np.einsum("ci,cj->cij", *pair).reshape(len(pair[0]), -1) for pair in pairs], axis=1)


def carried(form, seen, candidates):
    """Squared norms of the candidates and log det after each slot, and the last memory."""

    @functools.partial(jax.jit, compiler_options=QUICKLY)
    def run(seen, candidates):
        def slot(memory, factors):
            norm = None if form.measure is None else form.measure(memory, factors, REGULARIZED)
            memory = form.add(memory, factors, norm, REGULARIZED)
            return memory, (form.squared_norms(memory, candidates, REGULARIZED), form.log_det(memory, REGULARIZED))

        return jax.lax.scan(slot, form.begin(REGULARIZED), seen)

    memory, records = run(seen, candidates)
    return *(np.asarray(record, np.float64) for record in records), memory


def written_out(dims, seen, candidates, looked_at):
    """The same of some of the slots by np.linalg, from the gradients themselves."""
    rows, wanted = (written(factors) for factors in (seen, candidates))
    squares, log_dets = [], []
    for place in looked_at:
        before = rows[: place + 1]
        Z = REGULARIZED.regularization * np.eye(dims.num_parameters) + before.T @ before / dims.width
        squares.append(np.sum(wanted * np.linalg.solve(Z, wanted.T).T, axis=1) / dims.width)
        log_dets.append(np.linalg.slogdet(Z / REGULARIZED.regularization)[1])
    return np.array(squares), np.array(log_dets)


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
def test_exact_forms_are_the_inverse_written_out(x64):
    """Would catch a constant, a row of L^-1, a tile or a determinant; single precision is good to 1e-4, really 5e-6."""
    count = LOOKED_AT[-1] + 1
    dims = Dims(4, 3, count, width=16)
    with jax.enable_x64(x64):
        seen, candidates = slots(dims, count)
        squares, log_dets = written_out(dims, seen, candidates, LOOKED_AT)
        for name in (uncertainty.DUAL, uncertainty.FULL):
            actual, actual_log_dets, _ = carried(uncertainty.named(name, dims), seen, candidates)
            np.testing.assert_allclose(actual[LOOKED_AT], squares, rtol=1e-9 if x64 else 1e-4)
            np.testing.assert_allclose(actual_log_dets[LOOKED_AT], log_dets, rtol=1e-9 if x64 else 1e-5)


def test_the_diagonal_form_is_the_diagonal_of_z():
    """Would catch squares of sums for sums of squares, a layer that is transposed, and a determinant of all of Z."""
    dims = Dims(4, 3, 30, width=6, num_hidden=2)
    with jax.enable_x64(True):
        seen, candidates = slots(dims, 30)
        actual, log_dets, _ = carried(uncertainty.named("diagonal", dims), seen, candidates)
        rows, wanted = (written(factors) for factors in (seen, candidates))
    diagonals = REGULARIZED.regularization + np.cumsum(rows**2, axis=0) / dims.width
    squares = [np.sum(wanted**2 / diagonal, axis=1) / dims.width for diagonal in diagonals]
    np.testing.assert_allclose(actual, squares, rtol=1e-12)
    np.testing.assert_allclose(log_dets, np.sum(np.log(diagonals / REGULARIZED.regularization), axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", uncertainty.UNCERTAINTIES)
def test_the_best_candidate_is_found_with_few_norms(name):
    """Would catch a bound that is too low, a norm of another candidate or that `add` cannot use, and too many.

    Candidates move a little from slot to slot, as they do when a network learns; one is drawn anew every five slots,
    one is not wanted.
    """
    num_slots = uncertainty.SLOTS_A_FLUSH + 8
    dims, count, params = Dims(4, 3, num_slots, width=6), 12, Params(regularization=0.7, exploration=0.5)
    form, rng = uncertainty.named(name, dims), np.random.default_rng(1)
    wanted = np.arange(count) != 3

    @functools.partial(jax.jit, compiler_options=QUICKLY)
    def slot(memory, before, factors, values):
        place, norm, found = uncertainty.best(form, memory, before, factors, values, wanted, params)
        all_norms = jnp.sqrt(form.squared_norms(memory, factors, params))
        bounds = [] if before is None else [uncertainty.upper_bounds(before, factors, params)]
        if before is not None and before.along is not None:
            bounds.append(jax.vmap(lambda *row: uncertainty.closer_bound(*row, params))(before, factors))
        one = jax.tree.map(lambda leaf: leaf[place], factors)
        return form.add(memory, one, found.measured, params), found.judged, (bounds, place, norm, all_norms)

    with jax.enable_x64(True):
        factors = jax.tree.map(lambda leaf: np.asarray(leaf)[np.arange(count) % CANDIDATES], slots(dims, 1)[1])
        memory, before, measured = form.begin(params), uncertainty.empty_cache(form, dims, count, params), []
        for time in range(num_slots):
            factors = jax.tree.map(lambda leaf: leaf + 0.01 * rng.standard_normal(leaf.shape), factors)
            if time % 5 == 0:
                jax.tree.map(lambda leaf: leaf.__setitem__(7, rng.standard_normal(leaf.shape[1:])), factors)
            values = rng.uniform(0, 0.5, count)
            memory, judged, shown = slot(memory, before, factors, values)
            bounds, place, norm, all_norms = jax.tree.map(np.asarray, shown)
            assert place == np.argmax(np.where(wanted, values + 0.5 * all_norms, -np.inf))
            np.testing.assert_allclose(norm, all_norms[place], rtol=1e-9)
            assert all(np.all(bound >= all_norms - 1e-12) for bound in bounds)
            if judged is None:
                continue
            if len(bounds) == 2:
                assert np.all(bounds[1] <= bounds[0] + 1e-12)
            is_new = np.asarray(judged.squared_norms != before.squared_norms)
            assert is_new[place]
            assert not is_new[3]
            np.testing.assert_allclose(np.sqrt(judged.squared_norms)[is_new], all_norms[is_new], rtol=1e-9)
            before, measured = judged, [*measured, is_new.sum()]
    assert not measured or np.mean(measured[1:]) < count / 2


@loop_over("name", ["diagonal", "full"])
def test_bounds_of_a_network_that_has_diverged_end_the_search(name):
    """Would catch a search without end, or one that passes over what is no number."""
    dims = Dims(4, 3, 40, width=6)
    form, factors = uncertainty.named(name, dims), jax.tree.map(jnp.asarray, slots(dims, 1)[1])
    search = quickly(functools.partial(uncertainty.best, form))
    arguments = form.begin(REGULARIZED), uncertainty.empty_cache(form, dims, CANDIDATES, REGULARIZED), factors
    for values, expected in (([0, 1, np.nan, np.inf, 2], 2), ([-np.inf] * CANDIDATES, 0)):
        found, _, _ = search(*arguments, jnp.asarray(values), jnp.asarray([True] * CANDIDATES), REGULARIZED)
        assert found == expected


def test_exact_is_the_cheaper_form_and_unknown_forms_are_refused():
    """Would catch p^2 numbers for a run of few slots, and a name that falls back to another form."""
    for max_rounds, kind in ((1024, uncertainty.Full), (1023, uncertainty.Dual)):
        form = uncertainty.named("exact", Dims(max_rounds=max_rounds))
        assert type(jax.eval_shape(form.begin, REGULARIZED)) is kind
    refuse("uncertainty", uncertainty.named, "exakt", Dims(), kind=UnknownNameError)


K = 4
RULES = (LINE_POINT, FILLED_POINT, RANDOM_POINT)


def random_boxes(seed, number, parts=8):
    """Boxes with corners on a grid, so that sums are exact; some of them have sides without length."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, parts + 1, (number, 2, K)), axis=1) / parts
    ends[:, 1] = np.where(rng.random((number, K)) < 0.15, ends[:, 0], ends[:, 1])
    return ends[:, 0], ends[:, 1]


def feasible_boxes(seed, number):
    lower, upper = random_boxes(seed, 40 * number)
    lower[:, :2] /= 4
    keep = trees.is_feasible(lower, upper)
    assert keep.sum() >= number
    corners = np.eye(K)  # and exactly the corners of the simplex, and all of the cube
    return (
        np.concatenate([lower[keep][:number], corners, np.zeros((1, K))]).astype(np.float32),
        np.concatenate([upper[keep][:number], corners, np.ones((1, K))]).astype(np.float32),
    )


@pytest.fixture(scope="module")
def place():
    def point(lower, upper, rule, key):
        return trees.feasible_point(lower, upper, rule, jax.random.uniform(key, lower.shape))

    return jax.jit(jax.vmap(point, in_axes=(0, 0, None, 0)))


def program(lower, upper, objective=None):
    objective = np.zeros(K) if objective is None else objective
    bounds = list(zip(lower, upper, strict=True))
    return optimize.linprog(objective, A_eq=np.ones((1, K)), b_eq=[1.0], bounds=bounds)


def test_a_box_is_feasible_exactly_when_a_linear_program_is():
    lower, upper = random_boxes(1, 60)
    solved = [program(*box).status == 0 for box in zip(lower, upper, strict=True)]
    np.testing.assert_array_equal(trees.is_feasible(lower, upper), solved)
    assert 0 < sum(solved) < len(solved)


def test_tightened_sides_end_where_linear_programs_do():
    lower, upper = feasible_boxes(2, 8)
    tight_lower, tight_upper = trees.tightened(lower, upper)
    for row, box in enumerate(zip(lower, upper, strict=True)):
        for k, unit in enumerate(np.eye(K)):
            assert tight_lower[row, k] == pytest.approx(program(*box, unit).fun, abs=1e-7)
            assert tight_upper[row, k] == pytest.approx(-program(*box, -unit).fun, abs=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_points_are_on_the_simplex_and_in_their_box(rule, place):
    """Also where a side has no length, and where the box is a point: would catch a division of 0 by 0."""
    lower, upper = feasible_boxes(3, 100)
    points = np.asarray(place(lower, upper, jnp.asarray(rule), jax.random.split(jax.random.key(1), len(lower))))
    np.testing.assert_allclose(points.sum(1), 1, atol=5e-7)
    assert np.all(points >= lower - 2e-7)
    assert np.all(points <= upper + 2e-7)


def test_the_line_and_the_level_are_what_they_are_said_to_be(place):
    """The level by bisection in double precision, and as what no other point of the box is nearer to 1/K than."""
    lower, upper = feasible_boxes(4, 100)
    keys = jax.random.split(jax.random.key(2), len(lower))
    lines, filled = (np.asarray(place(lower, upper, jnp.asarray(rule), keys)) for rule in (LINE_POINT, FILLED_POINT))
    for low, high, line, fill in zip(lower.astype(float), upper.astype(float), lines, filled, strict=True):
        if low.sum() < high.sum():
            share = (1 - low.sum()) / (high.sum() - low.sum())
            np.testing.assert_allclose(line, low + share * (high - low), atol=1e-6)
            level = optimize.bisect(lambda at, low=low, high=high: np.clip(at, low, high).sum() - 1, 0, 1)
            np.testing.assert_allclose(fill, np.clip(level, low, high), atol=1e-6)
        assert np.sum((fill - 1 / K) ** 2) <= np.sum((line - 1 / K) ** 2) + 1e-6


def test_random_points_have_the_law_that_is_written_down(place):
    """P(x_1 <= 1/4) = 1/12 in the unit square, by hand, where a uniform law on the simplex has 1/4; 5 deviations."""
    keys = jax.random.split(jax.random.key(3), 4200)
    lower, upper = np.zeros((4200, K), np.float32), np.tile(np.array([1, 1, 0, 0], np.float32), (4200, 1))
    points = np.asarray(place(lower, upper, jnp.asarray(RANDOM_POINT), keys))
    assert abs(np.mean(points[:, 0] <= 0.25) - 1 / 12) < 5.2 * np.sqrt(11 / 144 / 4200)


def test_truncation_keeps_the_largest_and_of_equal_ones_the_first():
    rng = np.random.default_rng(5)
    points = rng.integers(0, 5, (40, K)).astype(np.float32) + np.float32(0.5)
    points /= points.sum(1, keepdims=True)
    for kept in range(1, K + 1):
        found = np.asarray(jax.vmap(trees.truncated, in_axes=(0, None))(points, kept))
        expected = np.zeros_like(points)
        for row, point in enumerate(points):
            best = np.argsort(-point, kind="stable")[:kept]
            expected[row, best] = point[best] / point[best].sum()
        np.testing.assert_allclose(found, expected, atol=2e-7)
