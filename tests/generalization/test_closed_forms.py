"""Closed forms of the paper: would catch a slipped constant, a natural logarithm of base 2, or a size let through."""

import math

import numpy as np
import pytest

from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.generalization import theory

from .formulas import theorem_1

SIZES = [(1, 1, 1), (2, 1, 10), (8, 3, 1000), (64, 64, 7), (512, 200, 10**9)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("form", theory.FORMS)
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


@pytest.mark.parametrize("threshold", [1.0, 0.3])
def test_the_smallest_sample_is_the_smallest(threshold):
    def bound(samples):
        return theory.theorem_1(4, 2, samples, 0.7 / math.sqrt(samples), 1.0, 0.5)

    found = theory.smallest_num_samples(bound, threshold)
    assert found == next(samples for samples in range(1, 10**5) if bound(samples) < threshold)
    assert theory.smallest_num_samples(lambda samples: 2.0) is None
    assert theory.smallest_num_samples(lambda samples: 0.5) == 1


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"num_active": 5}, "num_active=5 must be at most num_experts=4"),
        ({"num_active": 0}, "num_active=0 must be a whole number of at least 1"),
        ({"num_samples": 0}, "num_samples=0 must be a whole number of at least 1"),
        ({"num_samples": 2.5}, "num_samples=2.5"),
        ({"num_experts": "many"}, "num_experts='many' must be a number"),
        ({"delta": 0.0}, r"delta=0.0 must be in \(0, 1\)"),
        ({"delta": 1}, "delta="),
        ({"delta": math.nan}, "delta="),
        ({"rademacher": -0.1}, "rademacher=-0.1"),
        ({"natarajan": math.inf}, "natarajan=inf"),
        ({"lipschitz": math.nan}, "lipschitz=nan"),
    ],
)
def test_what_no_sparse_moe_has_is_one_line(changes, names):
    arguments = {"num_experts": 4, "num_active": 2, "num_samples": 10, "rademacher": 0.1, "natarajan": 1.0} | changes
    with pytest.raises(InvalidValueError, match=names) as failure:
        theory.theorem_1(**arguments)
    assert "\n" not in str(failure.value)


def test_other_mistakes_are_one_line_too():
    with pytest.raises(UnknownNameError, match="printed"):
        theory.theorem_1(4, 2, 10, 0.1, 1.0, form="printde")
    with pytest.raises(InvalidValueError, match="one of each per layer"):
        theory.lemma_3(10, 1.0, [1.0], [1.0, 2.0])
    with pytest.raises(InvalidValueError, match="above 0"):
        theory.lemma_3(10, 1.0, [0.0], [1.0])
