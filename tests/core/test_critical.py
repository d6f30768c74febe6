"""Theorem B of docs/pages/derivations/gates.md: the drive from which on a leader stays ahead once it has paid.

Against loops that know the page alone in tests/golden/test_gates_page.py.
"""

import pytest

from moe_theory.core.critical import critical_drive, lead_after_turns
from moe_theory.core.errors import InvalidValueError


def test_few_experts_need_a_perturbation():
    """For two and three experts the lead is positive at every drive, but tiny: ahead by lambda it is later."""
    for perturbation in (1e-8, 1e-7):
        two, three = (critical_drive(number, 0, perturbation) for number in (2, 3))
        assert two == pytest.approx((4 * perturbation) ** (1 / 3), rel=1e-3)
        assert three == pytest.approx((6 * perturbation) ** (1 / 4), rel=1e-2)
    assert critical_drive(2, 0, perturbation=0) == critical_drive(3, 0, perturbation=0) == 0
    assert critical_drive(6, 0, perturbation=0) == critical_drive(6, 0)
    assert critical_drive(6, 0, perturbation=0.5) > critical_drive(6, 0.0, perturbation=0.1) > critical_drive(6, 0)
    assert critical_drive(2, 0.5, perturbation=0) > 1  # slow learners pay again


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 0.0), "at least 2"),
        ((4, 1.0), r"contraction=1.0 must be in \[0, 1\)"),
        ((4, -0.1), "contraction"),
        ((4, float("nan")), "contraction"),
        ((2, 0.0), "Give perturbation"),
        ((2, 0.5), "Give perturbation"),
        ((3, 0.0), "Give perturbation"),
        ((4, 0.0, -1.0), "perturbation=-1.0"),
        ((4, 0.0, float("inf")), "perturbation=inf"),
        ((4, 0.0, 1e9), "not between"),
    ],
)
def test_what_has_no_critical_drive_is_refused(arguments, words):
    with pytest.raises(InvalidValueError, match=words):
        critical_drive(*arguments)


def test_a_lone_expert_has_nobody_to_be_ahead_of():
    with pytest.raises(InvalidValueError, match="at least 2"):
        lead_after_turns(1, 0.5)
