"""What holds of complexities whatever the inputs, and of linear routers' Natarajan dimensions whatever the sizes.

Hypothesis chooses shapes and seeds, NumPy draws the entries, so that examples are generic and of all scales.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_theory.generalization import complexity, corrected

FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 10**12)


@st.composite
def inputs(draw: st.DrawFn) -> np.ndarray:
    shape = (draw(st.integers(1, 7)), draw(st.integers(1, 6)))
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


def fixed_router(gates: np.ndarray, features: np.ndarray) -> float:
    """The complexity of linear experts in the unit ball behind a given router, over all signs."""
    signs = np.array(list(itertools.product((-1, 1), repeat=len(features))))
    sums = np.einsum("sm,mj,md->sjd", signs, gates, features)
    return float(np.mean(np.sum(np.linalg.norm(sums, axis=2), axis=1))) / len(features)


@FEW
@given(SIZES)
def test_constants_fall_with_the_number_of_samples(num_samples: int) -> None:
    pair, two_more = num_samples + num_samples % 2, num_samples + num_samples % 2 + 2
    assert complexity.constants(two_more) <= complexity.constants(pair) <= complexity.constants(pair - 1)
    assert complexity.constants(pair) * pair == pytest.approx(complexity.constants(pair - 1) * (pair - 1), rel=1e-13)


@FEW
@given(inputs(), st.data())
def test_a_fixed_router_is_below_its_bound(features: np.ndarray, data: st.DataObject) -> None:
    """The gates' squares bound what the experts gain together."""
    gated = data.draw(gates(len(features)))
    square, largest = np.mean(np.sum(gated**2, axis=1)), np.max(np.linalg.norm(features, axis=1))
    bound = corrected.fixed_router_complexity(gated.shape[1], len(features), square, 1.0, largest)
    assert fixed_router(gated, features) <= bound * (1 + 1e-12)


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
