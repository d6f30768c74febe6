"""Random steps over many primitives: the engine gives what `jax.vmap` and `lax.scan` give: a batch, alone, in pieces.

The programs are those of `tests/hostile` (`steps.py`), a few of them, always the same.
"""

import pytest
from hypothesis import given, settings
from steps import UNASKED, Counts, DifferenceError, Program, check, programs

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


@pytest.mark.thorough
def test_a_difference_is_told() -> None:
    """Would catch a comparison that sees nothing: a step that is another whenever it is traced differs."""
    step = """
traced = []

def step(key, state, params):
    traced.append(key)
    return state._replace(round=state.round + 1), (jnp.int32(len(traced)),)
"""
    with pytest.raises(DifferenceError, match=r"plain=True: info\[0\] differ"):
        check(Program(step, False, 2, 1, [[0.0] * 16] * 4, []), Counts())
