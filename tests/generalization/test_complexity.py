"""Complexities against loops over signs and Monte Carlo, and dimensions of routers as they are proved."""

import itertools
import math

import numpy as np
import pytest

from moe_theory.core.errors import UnknownNameError
from moe_theory.generalization import complexity, theory
from tests.continual.cases import loop_over, refuse

ERRORS = 5.5  # standard errors that many draws may be off by


@loop_over("num_samples", range(1, 12))
def test_constants_are_the_mean_length_of_a_walk(num_samples):
    mean = np.mean([abs(sum(signs)) / num_samples for signs in itertools.product((-1, 1), repeat=num_samples)])
    assert complexity.constants(num_samples) == pytest.approx(mean, rel=1e-14)


@loop_over("num_samples", [150, 199, 200, 201, 1001, 5000])
def test_constants_of_many_samples_are_whole_number_arithmetic(num_samples):
    half = -(-num_samples // 2)
    expected = 2 * half * math.comb(2 * half, half) / 4**half / num_samples
    assert complexity.constants(num_samples) == pytest.approx(expected, rel=1e-14)


@loop_over("num_samples", [10**6, 10**9 + 1, 10**12])
def test_constants_keep_their_digits_at_any_size(num_samples):
    """Gamma(n + 1/2) / Gamma(n) lies between the roots of n - 1/4 and n - 1/4 + 1/(32n) + O(1/n^2)."""
    half = -(-num_samples // 2)
    low, high = (2 * math.sqrt((half - 0.25 + more / half) / math.pi) / num_samples for more in (0, 1 / 16))
    assert low * (1 - 1e-15) <= complexity.constants(num_samples) <= high * (1 + 1e-15)


def test_a_sample_of_nothing_has_no_complexity():
    refuse("num_samples", complexity.constants, 0)


def test_lemma_3_is_above_what_networks_of_its_class_reach():
    """One hidden unit along +-sum_i sigma_i x_i has the norms allowed, and its best sign is a lower estimate."""
    generator = np.random.default_rng(8)
    first, second = generator.normal(size=(5, 3)), generator.normal(size=5)
    features = generator.normal(size=(40, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    norms, rows = np.array([np.linalg.norm(first, 2), np.linalg.norm(second)]), np.linalg.norm(first, axis=1).sum()
    scale = np.prod(norms)

    def lower(signs):
        directions = signs @ features
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        hidden = np.stack([np.maximum(side * directions @ features.T, 0) for side in (1, -1)])
        return scale * np.max(np.abs(np.sum(hidden * signs, axis=2)), axis=0) / 40

    reached = lower(generator.choice([-1.0, 1.0], (2000, 40)))
    most = np.mean(reached) + ERRORS * np.std(reached) / math.sqrt(len(reached))
    bound = theory.lemma_3(40, 1.0, norms, [rows, norms[1]])
    assert bound == pytest.approx(scale / math.sqrt(40) * ((rows / norms[0]) ** (2 / 3) + 1) ** 1.5, rel=1e-12)
    assert 0.2 * scale / math.sqrt(40) < most < bound


NAMES = ("mask-dimension", "router-dimension")


@loop_over(
    ("num_experts", "num_active", "num_features", "masks", "outputs"),
    [(2, 1, 3, 3, 3), (3, 1, 5, 10, 10), (4, 2, 2, 6, 6), (3, 3, 4, 0, 4)],
)
def test_natarajan_of_linear_routers_is_what_is_proved(num_experts, num_active, num_features, masks, outputs):
    sizes = (num_experts, num_active, num_features)
    assert [complexity.natarajan("linear", *sizes, reading) for reading in NAMES] == [masks, outputs]


@loop_over("reading", NAMES)
@loop_over("router", ["fixed", "linear", "network", "free"])
def test_one_expert_shatters_nothing(router, reading):
    assert complexity.natarajan(router, 1, 1, 5, reading) == 0


def test_one_mask_shatters_nothing_and_one_router_neither():
    assert [complexity.natarajan(router, 3, 3, 5, num_parameters=9) for router in ("linear", "network", "free")] == [
        0
    ] * 3
    assert [complexity.natarajan("fixed", 3, 2, 5, reading) for reading in NAMES] == [0, 0]


def test_networks_have_lemma_2():
    for active, reading in ((1, NAMES[0]), (4, NAMES[1])):
        assert complexity.natarajan("network", 4, active, 5, reading, num_parameters=30) == 4 * 30**2


def test_a_reading_that_the_class_does_not_have_is_one_clear_line():
    for argument, sizes in (
        ("reading", ("free", 3, 2, 5)),
        ("reading", ("free", 3, 3, 5, "router-dimension")),
        ("num_parameters", ("network", 3, 2, 5)),  # without a number of parameters
        ("num_parameters", ("network", 3, 2, 5, "mask-dimension", 0)),
        ("num_active", ("linear", 2, 3, 5)),
        ("num_active", ("linear", 2, 0, 5)),
        ("num_features", ("linear", 2, 1, 0)),
    ):
        refuse(argument, complexity.natarajan, *sizes)
    nearest = refuse("router", complexity.natarajan, "linaer", 2, 1, 2, kind=UnknownNameError)
    assert "Did you mean 'linear'" in nearest
    refuse("reading", complexity.natarajan, "free", 2, 1, 2, "mask", kind=UnknownNameError)
