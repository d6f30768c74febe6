"""Random steps over many primitives: the engine gives what `jax.vmap` and `lax.scan` give: a batch, alone, in pieces.

The programs are those of `tests/hostile` (`steps.py`), a few of them, always the same.
"""

import pytest
from hypothesis import given, settings
from steps import UNASKED, Counts, DifferenceError, Program, check, programs

from moe_theory.core import rewriting

pytestmark = pytest.mark.usefixtures("much_room")

FEWEST = 80  # primitives that the programs must reach


@pytest.mark.thorough
def test_random_steps_are_the_same_however_they_run() -> None:
    """Would catch a rule of the engine, or a move ahead, that is wrong for some primitive, type, mode or mixture."""
    counts = Counts()

    @settings(derandomize=True, deadline=None, max_examples=4, suppress_health_check=UNASKED)
    @given(programs())
    def check_all(program: Program) -> None:
        check(program, counts)

    check_all()
    assert len(counts.primitives) >= FEWEST
    assert 0 < counts.wide < counts.programs
    assert counts.untold < counts.comparisons / 10


def one_operation(expression: str) -> Program:
    """A program of a single operation, without rounding."""
    step = f"""
def step(key, state, params):
    return state._replace(round=state.round + 1), ({expression},)
"""
    return Program(step, False, 2, 1, [[0.0] * 16] * 4, [])


def test_a_fault_of_the_engine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a comparison that sees nothing: with a rule that picks the wrong row, a program of it differs."""
    program = one_operation("lax.dynamic_index_in_dim(state.n, state.w % 4, 0)")
    check(program, Counts())
    monkeypatch.setitem(rewriting._RULES, "dynamic_slice", lambda equation, operands: lambda array, *starts: array[:1])
    with pytest.raises(DifferenceError, match=r"plain=True: info\[0\] differ"):
        check(program, Counts())
