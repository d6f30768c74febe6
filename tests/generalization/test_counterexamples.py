"""The counterexample of a fixed router: its bound by hand, and the frequency of gaps above it."""

import numpy as np
import pytest
from scipy import stats

import moe_theory as mt
from moe_theory.generalization import counterexamples
from tests.continual.cases import find_unrefused, list_pairs

from .formulas import theorem_1

ROOT = mt.root_key(5)
DELTA = 0.05


@pytest.fixture(scope="module")
def example():
    return counterexamples.fixed_router(ROOT)


def test_it_refutes_the_theorem(example):
    """Would catch a gap that does not beat the bound, and a frequency or interval that is not of that event."""
    exceeded = sum(gap > example.bound for gap in example.gap)
    ends = stats.binomtest(exceeded, len(example.gap)).proportion_ci(0.95, method="exact")
    assert example.frequency == exceeded / len(example.gap)
    np.testing.assert_allclose(example.interval, (ends.low, ends.high), rtol=1e-9)
    assert example.refutes
    assert example.interval[0] > DELTA == example.delta
    assert np.all(example.gap <= 0.5)


def test_the_bound_is_the_theorem_s(example):
    """Would catch C = 1, a wrong d_N or R_m(H)."""
    signs = np.arange(501)
    capacity = stats.binom.pmf(signs, 500, 0.5) @ np.abs(2 * signs - 500) / 500
    np.testing.assert_allclose(example.rademacher, capacity, rtol=1e-9)
    np.testing.assert_allclose(example.bound, theorem_1(5000, 1, 500, capacity, 1, 0.5, DELTA), rtol=1e-9)


def test_sizes_out_of_range_are_named_in_a_line():
    """Would catch a function that runs, or fails inside JAX, on sizes that no sample or MoE has."""
    wrong = {"num_samples": (0,), "num_experts": (0,), "num_draws": (0,), "delta": (0.0, [0.1, 0.2])}
    assert not find_unrefused(
        list_pairs(wrong), lambda name, value: counterexamples.fixed_router(ROOT, **{name: value})
    )
