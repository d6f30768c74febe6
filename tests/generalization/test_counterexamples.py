"""The three counterexamples: bounds by hand, gaps from the f that each returns, and brute force at small size."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import moe_theory as mt
from moe_theory.core.errors import MoeTheoryError
from moe_theory.generalization import counterexamples
from moe_theory.generalization.counterexamples import Counterexample

from .formulas import theorem_1

ROOT = mt.root_key(5)
DELTA = 0.05


def risk(labels: Any, outputs: Any) -> float:
    """L_S with the ramp loss, one sample after the other."""
    losses = [min(max((1 - label * output) / 2, 0.0), 1.0) for label, output in zip(labels, outputs, strict=True)]
    return float(np.mean(losses))


def printed_bound(example: Counterexample, dimension: float) -> float:
    """Eq. (23) with C = 1/2."""
    sizes = (example.num_experts, example.num_active, example.num_samples)
    return theorem_1(*sizes, example.rademacher, dimension, 0.5, example.delta)


def cells_outputs(instance: dict[str, np.ndarray]) -> np.ndarray:
    return instance["experts"][np.floor(instance["inputs"] * len(instance["experts"])).astype(int)]


def lines_outputs(instance: dict[str, np.ndarray]) -> np.ndarray:
    """Each input's expert has the highest logit, of equal ones the first."""
    logits = np.outer(instance["coordinate"], instance["slopes"]) + instance["intercepts"]
    return instance["labels"] * instance["margins"][np.argmax(logits, axis=1)]


def dense_outputs(instance: dict[str, np.ndarray]) -> np.ndarray:
    return special.softmax(instance["logits"], axis=1) @ instance["experts"]


@pytest.fixture(scope="module")
def examples() -> dict[str, Counterexample]:
    return {
        "fixed_router": counterexamples.fixed_router(ROOT),
        "learned_router": counterexamples.learned_router(ROOT, num_samples=128_000, num_draws=3),
        "dense_router": counterexamples.dense_router(ROOT),
    }


OUTPUTS: dict[str, Callable[[dict[str, np.ndarray]], np.ndarray]] = {
    "fixed_router": cells_outputs,
    "learned_router": lines_outputs,
    "dense_router": dense_outputs,
}
EXAMPLES = pytest.mark.parametrize("name", list(OUTPUTS))


@EXAMPLES
def test_each_refutes_the_theorem(name: str, examples: dict[str, Counterexample]) -> None:
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
def test_bounds_are_the_theorems_under_both_readings(name: str, examples: dict[str, Counterexample]) -> None:
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


@EXAMPLES
def test_the_instance_has_the_first_gap(name: str, examples: dict[str, Counterexample]) -> None:
    """Would catch an instance of another draw, and an f that does not have the gap that is said of it."""
    example = examples[name]
    outputs = OUTPUTS[name](example.instance)
    assert abs(abs(risk(example.instance["labels"], outputs) - example.true_risk) - example.gap[0]) < 1e-5


def test_the_functions_are_of_their_classes(examples: dict[str, Counterexample]) -> None:
    """Would catch experts or routers that are larger than the class that the bound is of."""
    assert set(examples["fixed_router"].instance["experts"]) == {-1.0, 1.0}
    learned = examples["learned_router"]
    instance = learned.instance
    logits = np.outer(instance["coordinate"], instance["slopes"]) + instance["intercepts"]
    counts = np.bincount(np.argmax(logits, axis=1), minlength=learned.num_experts)
    assert np.all(counts * instance["margins"] ** 2 <= learned.num_samples / learned.num_experts * (1 + 1e-12))


@functools.cache
def small(name: str) -> Counterexample:
    sizes: dict[str, dict[str, int]] = {
        "fixed_router": {"num_samples": 4, "num_experts": 2},
        "learned_router": {"num_samples": 6, "num_experts": 3, "num_draws": 3},
        "dense_router": {"num_samples": 6},
    }
    return getattr(counterexamples, name)(ROOT, **sizes[name])


@EXAMPLES
def test_the_true_risk_is_one_half_over_all_labelings(name: str) -> None:
    """Would catch a loss that does not add up to 1 over both labels, so that labels would not integrate to 1/2."""
    example = small(name)
    outputs = OUTPUTS[name](example.instance)
    every = [risk(labels, outputs) for labels in itertools.product([-1.0, 1.0], repeat=len(outputs))]
    assert abs(np.mean(every) - example.true_risk) < 1e-12


@pytest.mark.parametrize("num_experts", [1, 2, 5, 7, 12])
def test_lines_cut_a_sample_evenly(num_experts: int) -> None:
    """Would catch lines that cross in the wrong order or place."""
    coordinate = np.random.default_rng(num_experts).random(10)
    slopes, intercepts, counts = counterexamples.quantile_lines(coordinate, num_experts)
    chosen = [int(np.argmax(slopes * z + intercepts)) for z in coordinate]
    np.testing.assert_array_equal(np.bincount(chosen, minlength=num_experts), counts)
    assert max(counts) - min(counts) <= 1


def test_more_draws_begin_with_the_same_ones() -> None:
    """Would catch draws that depend on how many there are."""
    few, many = (counterexamples.fixed_router(ROOT, 4, 2, num_draws=count).gap for count in (70, 200))
    np.testing.assert_array_equal(few, many[:70])


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("fixed_router", {"num_samples": 0}),
        ("fixed_router", {"num_experts": 0}),
        ("fixed_router", {"num_draws": 0}),
        ("fixed_router", {"delta": 0.0}),
        ("fixed_router", {"delta": [0.1, 0.2]}),
        ("learned_router", {"num_experts": 1.5}),
        ("learned_router", {"delta": 1.0}),
        ("dense_router", {"num_samples": -3}),
    ],
)
def test_sizes_out_of_range_are_named_in_a_line(name: str, sizes: dict[str, Any]) -> None:
    """Would catch a function that runs, or fails inside JAX, on sizes that no sample or MoE has."""
    with pytest.raises(MoeTheoryError, match=f"^{next(iter(sizes))}=") as error:
        getattr(counterexamples, name)(ROOT, **sizes)
    assert "\n" not in str(error.value)


def test_a_frequency_refutes_only_where_its_lower_limit_is_above_delta():
    """5 of 40 samples exceed: the interval is from 0.042 to 0.27, so that 0.05 lies inside."""
    gap = np.where(np.arange(40) < 5, 1.0, 0.0)
    found = counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.05, {})
    assert found.frequency == found.frequencies["mask-dimension"] == 0.125
    assert found.interval[0] < 0.05 < found.interval[1]
    assert not found.refutes
    assert counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.04, {}).refutes
