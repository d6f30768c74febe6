"""The three counterexamples: bounds by hand, and frequencies of gaps."""

import numpy as np
import pytest
from scipy import stats

import moe_theory as mt
from moe_theory.generalization import counterexamples
from tests.continual.cases import find_unrefused, list_pairs, refuse

from .formulas import theorem_1

ROOT = mt.root_key(5)
DELTA = 0.05


def printed_bound(example, dimension):
    """Eq. (23) with C = 1/2."""
    sizes = (example.num_experts, example.num_active, example.num_samples)
    return theorem_1(*sizes, example.rademacher, dimension, 0.5, example.delta)


@pytest.fixture(scope="module")
def examples():
    return {
        "fixed_router": counterexamples.fixed_router(ROOT),
        "learned_router": counterexamples.learned_router(ROOT, num_samples=128_000, num_draws=3),
        "dense_router": counterexamples.dense_router(ROOT),
    }


EXAMPLES = pytest.mark.parametrize("name", ["fixed_router", "learned_router", "dense_router"])


@EXAMPLES
def test_each_refutes_the_theorem(name, examples):
    """Would catch a gap that does not beat the bound, and a frequency or interval that is not of that event."""
    example = examples[name]
    exceeded = sum(gap > example.bound for gap in example.gap)
    ends = stats.binomtest(exceeded, len(example.gap)).proportion_ci(0.95, method="exact")
    assert example.frequency == exceeded / len(example.gap)
    np.testing.assert_allclose(example.interval, (ends.low, ends.high), rtol=1e-9)
    assert example.refutes
    assert example.interval[0] > DELTA == example.delta
    assert np.all(example.gap <= 0.5)


@EXAMPLES
def test_bounds_are_the_theorems_under_both_readings(name, examples):
    """Would catch C = 1, a wrong d_N or R_m(H), and a finite bound for a class without a finite d_N."""
    example = examples[name]
    m = example.num_samples
    dimensions = {
        "fixed_router": (1, 1),  # granted: a class of one router has 0
        "learned_router": ((example.num_experts - 1) * 2,) * 2,
        "dense_router": (0, np.nan),
    }[name]
    signs = np.arange(m + 1) if m <= 1000 else np.zeros(1)
    constants = stats.binom.pmf(signs, m, 0.5) @ np.abs(2 * signs - m) / m
    capacity = 1 / np.sqrt(example.num_experts) if name == "learned_router" else constants
    np.testing.assert_allclose(example.rademacher, capacity, rtol=1e-9)
    for reading, dimension in zip(("mask-dimension", "router-dimension"), dimensions, strict=True):
        np.testing.assert_equal(example.natarajan[reading], float(dimension))
        np.testing.assert_allclose(example.bounds[reading], printed_bound(example, dimension), rtol=1e-9)
    assert example.bound == example.bounds["mask-dimension"]


def test_sizes_out_of_range_are_named_in_a_line():
    """Would catch a function that runs, or fails inside JAX, on sizes that no sample or MoE has."""
    wrong = {"num_samples": (0,), "num_experts": (0,), "num_draws": (0,), "delta": (0.0, [0.1, 0.2])}
    assert not find_unrefused(
        list_pairs(wrong), lambda name, value: counterexamples.fixed_router(ROOT, **{name: value})
    )
    refuse("num_experts", counterexamples.learned_router, ROOT, num_experts=1.5)
    refuse("delta", counterexamples.learned_router, ROOT, delta=1.0)
    refuse("num_samples", counterexamples.dense_router, ROOT, num_samples=-3)


def test_a_frequency_refutes_only_where_its_lower_limit_is_above_delta():
    """5 of 40 samples exceed: the interval is from 0.042 to 0.27, so that 0.05 lies inside."""
    gap = np.where(np.arange(40) < 5, 1.0, 0.0)
    found = counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.05)
    assert found.frequency == found.frequencies["mask-dimension"] == 0.125
    assert found.interval[0] < 0.05 < found.interval[1]
    assert not found.refutes
    assert counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.04).refutes
