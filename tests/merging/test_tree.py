"""Boxes, the simplex and candidates against linear programs, NumPy and closed laws.

Trees that grow are looked at in tests/properties and tests/golden.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from moe_theory.core.errors import InvalidValueError
from moe_theory.merging import tree as trees
from moe_theory.merging.params import (
    FILLED_POINT,
    LINE_POINT,
    RANDOM_POINT,
)

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
    return jax.jit(jax.vmap(trees.feasible_point, in_axes=(0, 0, None, 0)))


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
    keys = jax.random.split(jax.random.key(3), (40, 105))
    lower, upper = np.zeros((105, K), np.float32), np.tile(np.array([1, 1, 0, 0], np.float32), (105, 1))
    points = [np.asarray(place(lower, upper, jnp.asarray(RANDOM_POINT), row)) for row in keys]
    share = np.mean(np.concatenate(points)[:, 0] <= 0.25)
    assert abs(share - 1 / 12) < 5.2 * np.sqrt(11 / 144 / keys.size)


def test_a_random_point_needs_a_key():
    with pytest.raises(InvalidValueError, match="needs a key"):
        trees.feasible_point(jnp.zeros(2), jnp.ones(2), RANDOM_POINT)


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
