"""What holds of complexities whatever the inputs, and of Natarajan dimensions whatever the class.

Hypothesis chooses shapes and seeds, NumPy draws the entries, so that examples are generic and of all scales.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_theory.generalization import complexity, corrected

FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SEEDS = st.integers(0, 2**32 - 1)
RADII = st.floats(1e-3, 1e3)
SIZES = st.integers(1, 10**12)


@st.composite
def inputs(draw: st.DrawFn, least: int = 1, most: int = 7) -> np.ndarray:
    shape = (draw(st.integers(least, most)), draw(st.integers(1, 6)))
    generator = np.random.default_rng(draw(SEEDS))
    return (
        draw(st.sampled_from([1e-3, 1.0, 50.0]))
        * generator.normal(size=shape)
        * generator.exponential(size=(shape[0], 1))
    )


@st.composite
def gates(draw: st.DrawFn, num_samples: int) -> np.ndarray:
    """Rows of the simplex, each with the same number of entries that are not 0."""
    num_experts = draw(st.integers(1, 5))
    num_active = draw(st.integers(1, num_experts))
    generator = np.random.default_rng(draw(SEEDS))
    rows = np.zeros((num_samples, num_experts))
    for row in rows:
        row[generator.permutation(num_experts)[:num_active]] = generator.dirichlet(np.ones(num_active))
    return rows


@st.composite
def classes(draw: st.DrawFn) -> np.ndarray:
    num_points, num_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(SEEDS))
    return generator.integers(0, num_labels, (draw(st.integers(1, 40)), num_points))


def one_ball(features: np.ndarray, radius: float) -> float:
    """The complexity of linear functions with weights in one ball, by enumeration."""
    return complexity.fixed_router(np.ones((len(features), 1)), features, radius).value


@FEW
@given(inputs(), RADII, RADII, st.data())
def test_complexity_is_in_the_unit_of_the_radius(
    features: np.ndarray, radius: float, factor: float, data: st.DataObject
) -> None:
    gated = data.draw(gates(len(features)))

    def value(radius: float) -> float:
        return complexity.fixed_router(gated, features, radius).value

    assert value(factor * radius) == pytest.approx(factor * value(radius), rel=1e-9)
    assert value(0.0) == 0.0


@FEW
@given(inputs(least=2), RADII)
def test_a_sample_costs_no_more_than_its_parts_on_average(features: np.ndarray, radius: float) -> None:
    """Monotone in m for every distribution: R_S <= the mean of R over the m samples that lack one of its inputs."""
    lacking = [one_ball(np.delete(features, i, axis=0), radius) for i in range(len(features))]
    assert one_ball(features, radius) <= np.mean(lacking) * (1 + 1e-12)


@FEW
@given(SIZES)
def test_constants_fall_with_the_number_of_samples(num_samples: int) -> None:
    pair, two_more = num_samples + num_samples % 2, num_samples + num_samples % 2 + 2
    assert complexity.constants(two_more) <= complexity.constants(pair) <= complexity.constants(pair - 1)
    assert complexity.constants(pair) * pair == pytest.approx(complexity.constants(pair - 1) * (pair - 1), rel=1e-13)


@FEW
@given(inputs(), SEEDS)
def test_neither_the_inputs_signs_nor_their_basis_matter(features: np.ndarray, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rotation = np.linalg.qr(generator.normal(size=(features.shape[1],) * 2))[0]
    turned = generator.choice([-1, 1], (len(features), 1)) * features @ rotation
    expected = one_ball(features, 1.0)
    assert one_ball(turned, 1.0) == pytest.approx(expected, rel=1e-9)
    bound = math.sqrt(np.sum(features**2)) / len(features)  # Jensen's, and Khintchine's inequality
    assert bound / math.sqrt(2) * (1 - 1e-12) <= expected <= bound * (1 + 1e-12)


@FEW
@given(inputs(), st.data())
def test_a_fixed_router_is_between_one_ball_and_its_bound(features: np.ndarray, data: st.DataObject) -> None:
    """Experts that are all the same are one; the gates' squares bound what the experts gain together."""
    gated = data.draw(gates(len(features)))
    value = complexity.fixed_router(gated, features, 2.0).value
    one = one_ball(features, 2.0)
    assert one * (1 - 1e-12) <= value
    square, largest = np.mean(np.sum(gated**2, axis=1)), np.max(np.linalg.norm(features, axis=1))
    bound = corrected.fixed_router_complexity(gated.shape[1], len(features), square, 2.0, largest)
    assert value <= bound * (1 + 1e-12)
    equal = np.full_like(gated, 1 / gated.shape[1])
    assert complexity.fixed_router(equal, features, 2.0).value == pytest.approx(one, rel=1e-9)
    split = np.concatenate([gated * (np.arange(len(gated)) % 2 == side)[:, None] for side in (0, 1)], axis=1)
    assert complexity.fixed_router(split, features, 2.0).value >= value * (1 - 1e-12)


def dimension_by_definition(labelings: np.ndarray) -> int:
    """Definition 3 as it stands: every set of points, every f_0 and f_1 of the class, every choice between them."""
    best = 0
    for size in range(1, labelings.shape[1] + 1):
        for points in itertools.combinations(range(labelings.shape[1]), size):
            rows = {tuple(row) for row in labelings[:, list(points)].tolist()}
            for first, second in itertools.combinations(sorted(rows), 2):
                if all(a != b for a, b in zip(first, second, strict=True)) and rows >= set(
                    itertools.product(*zip(first, second, strict=True))
                ):
                    best = size
    return best


@FEW
@given(classes(), SEEDS)
def test_natarajan_dimension_is_that_of_its_definition(labelings: np.ndarray, seed: int) -> None:
    dimension = complexity.natarajan_dimension(labelings)
    assert dimension == dimension_by_definition(labelings)
    assert complexity.growth(labelings) == len(np.unique(labelings, axis=0))
    assert 2**dimension <= complexity.growth(labelings)
    generator = np.random.default_rng(seed)
    renamed = np.stack([generator.permutation(9)[column] for column in labelings.T], axis=1)
    shuffled = renamed[:, generator.permutation(labelings.shape[1])]
    assert complexity.natarajan_dimension(shuffled) == dimension
    assert complexity.natarajan_dimension(labelings[: max(1, len(labelings) // 2)]) <= dimension


@FEW
@given(st.integers(1, 50), st.data(), st.integers(1, 100))
def test_linear_routers_have_as_many_dimensions_as_free_parameters(
    num_experts: int, data: st.DataObject, num_features: int
) -> None:
    num_active = data.draw(st.integers(1, num_experts))
    masks, whole = (
        complexity.natarajan("linear", num_experts, num_active, num_features, reading)
        for reading in ("mask-dimension", "router-dimension")
    )
    assert masks <= whole <= (num_experts - 1) * num_features
    assert (masks == 0) == (num_active == num_experts)
    assert (
        masks == complexity.natarajan("linear", num_experts, max(1, num_experts - num_active), num_features)
        or not masks
    )
