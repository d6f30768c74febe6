"""Closed forms of the paper, and the bounds that hold, piece by piece."""

import itertools
import math

import numpy as np
import pytest

from moe_theory.core.errors import UnknownNameError
from moe_theory.generalization import corrected, model, theory
from tests.continual.cases import loop_over, refuse

from .formulas import log_network_patterns, theorem_1


@loop_over(("experts", "samples"), [(1, 5), (2, 4), (3, 4), (5, 3)])
def test_the_complexity_of_cells_is_that_of_all_cells_and_signs(experts, samples):
    total = 0.0
    for cells in itertools.product(range(experts), repeat=samples):
        for signs in itertools.product((-1, 1), repeat=samples):
            sums = np.zeros(experts)
            np.add.at(sums, list(cells), signs)
            total += np.abs(sums).sum()
    exact = total / samples / (2 * experts) ** samples
    assert corrected.cells_complexity(experts, samples) == pytest.approx(exact, rel=1e-12)
    assert exact <= corrected.product_complexity(experts, samples) + 1e-12


def test_no_mask_varies_where_all_are_active():
    np.testing.assert_array_equal(corrected.log_mask_patterns(np.array([1, 4, 9]), np.array([1, 4, 9]), 50, 3), 0)


def test_few_samples_have_all_masks_at_most():
    assert corrected.log_mask_patterns(6, 2, 1, 40) == pytest.approx(math.log(15))


def test_a_bound_is_the_sum_of_its_terms():
    ours = corrected.uniform(0.1, 7.0, 400, 0.5, 0.02)
    assert ours == pytest.approx(0.1 + 2 * math.sqrt(7 / 800) + math.sqrt(math.log(100) / 800), rel=1e-12)
    every = corrected.bounds(4, 1, 400, 3, lipschitz=model.LIPSCHITZ)
    assert every.best == min(every.product, every.lipschitz, every.covering)
    assert math.isnan(corrected.bounds(4, 2, 400, 3).product)


def test_edges_of_the_bounds_that_hold():
    assert corrected.fixed_router_complexity(50, 10, 1.0, 2.0) == 2.0  # outputs are within B c
    assert corrected.fixed_router_complexity(8, 100, 0.5) == pytest.approx(0.2)
    assert corrected.lipschitz_complexity(8, 1, 100) == corrected.product_complexity(8, 100)
    assert corrected.product_complexity(4, 100, 2.0, 3.0) == pytest.approx(1.2)
    nothing = corrected.covering(4, 2, 100, 3, expert_norm=0.0)
    assert nothing == pytest.approx(np.sqrt(np.log(40) / 200))
    assert corrected.tail(50, 0.2) == pytest.approx(np.exp(-2))
    assert theory.tail_printed(50, 0.2) == pytest.approx(np.exp(-4))
    assert theory.ghost_factor(50, 0.2) == pytest.approx(1 - 2 * np.exp(-1))


@loop_over("widths", [(), (3,), (2, 3)])
@loop_over(("experts", "active", "samples"), [(3, 1, 8), (4, 2, 8), (8, 2, 10**6)])
def test_patterns_of_networks_are_the_sum_over_layers(experts, active, samples, widths):
    expected = log_network_patterns(experts, active, samples, 2, widths)
    assert corrected.log_network_patterns(experts, active, samples, 2, widths) == pytest.approx(expected)


SIZES = [(1, 1, 1), (2, 1, 10), (8, 3, 1000), (64, 64, 7), (512, 200, 10**9)]


@loop_over("sizes", SIZES)
@loop_over("form", theory.FORMS)
def test_theorem_1_is_its_formula(sizes, form):
    ours = theory.theorem_1(*sizes, 0.03, 5.0, 0.5, 0.01, form=form)
    assert isinstance(ours, float)
    assert ours == pytest.approx(
        theorem_1(*sizes, 0.03, 5.0, 0.5, 0.01, math.log(math.comb(*sizes[:2])) if form == "binomial" else None),
        rel=1e-9,
    )


def test_sizes_may_be_arrays():
    samples = np.array([10, 100, 1000])
    together = theory.theorem_1(8, 2, samples, 1 / np.sqrt(samples), 3.0)
    alone = [theory.theorem_1(8, 2, int(count), 1 / math.sqrt(count), 3.0) for count in samples]
    np.testing.assert_allclose(together, alone, rtol=1e-14)


def test_corollary_4_plugs_in_both_lemmas():
    ours = theory.corollary_4(
        4, 2, 10**7, feature_norm=3.0, operator_norms=[2.0, 0.5], row_norms=[4.0, 0.5], num_parameters=20
    )
    capacity = 3 / math.sqrt(10**7) * 2 * 0.5 * ((4 / 2) ** (2 / 3) + 1) ** 1.5
    assert ours == pytest.approx(theorem_1(4, 2, 10**7, capacity, 4 * 20**2), rel=1e-12)


def test_masks_are_counted():
    for experts in range(1, 12):
        for active in range(1, experts + 1):
            count = math.log(math.comb(experts, active))
            assert theory.log_masks(experts, active) == pytest.approx(count, abs=1e-12)
            assert count <= theory.log_masks(experts, active, "printed") + 1e-12
            assert theory.sparsity_term(experts, active) ** 2 == pytest.approx(
                active * (1 + math.log(experts / active))
            )
    assert theory.equation_16(6, 2, 50, 3.0) == pytest.approx(math.log(math.comb(6, 2) ** 6 * 100**3))
    assert theory.lemma_6(50, 4, 3.0) == pytest.approx(math.log(50**3 * 4**6))


@loop_over("threshold", [1.0, 0.3])
def test_the_smallest_sample_is_the_smallest(threshold):
    def bound(samples):
        return theory.theorem_1(4, 2, samples, 0.7 / math.sqrt(samples), 1.0, 0.5)

    found = theory.smallest_num_samples(bound, threshold)
    assert found == next(samples for samples in range(1, 10**5) if bound(samples) < threshold)
    assert theory.smallest_num_samples(lambda samples: 2.0) is None
    assert theory.smallest_num_samples(lambda samples: 0.5) == 1


def test_other_mistakes_are_one_line_too():
    refuse("form", theory.theorem_1, 4, 2, 10, 0.1, 1.0, form="printde", kind=UnknownNameError)
    refuse("row_norms", theory.lemma_3, 10, 1.0, [1.0], [1.0, 2.0])
