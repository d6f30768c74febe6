"""The plain engine: catches a JAX that cannot be rewritten and is not noticed, or that ends in an error."""

import chex
import jax
import pytest

import moe_theory as mt
from moe_theory.core import engine

from .test_blocks import begin, walk

SYSTEM = mt.System(begin, walk)  # every paper's system runs by both engines in tests/contract/test_systems.py


@pytest.fixture
def later_jax(monkeypatch):
    """A JAX that is newer than any that was tested."""
    monkeypatch.setattr(engine, "_UNTESTED", (0, 0))
    engine.can_rewrite.cache_clear()
    yield monkeypatch
    engine.can_rewrite.cache_clear()


def run(**options):
    return mt.simulate_batch(SYSTEM, mt.root_key(5), 3, 0.5, num_rounds=5, record_every=2, **options)


def test_records_and_resumed_runs_agree():
    """Would catch a record of another round, or a resumed run that starts anew, in either engine."""
    chex.assert_trees_all_close(run(), run(plain=True), rtol=1e-4, atol=1e-5)
    half, _ = run(plain=True)
    ends = [run(plain=plain, state=half)[0] for plain in (False, True)]
    assert ends[0].round.tolist() == [10, 10, 10]
    chex.assert_trees_all_close(*ends, rtol=1e-4, atol=1e-5)


def test_a_later_jax_is_tried_and_used(later_jax):
    """Would catch a small run that never agrees, so that every later JAX is slow."""
    assert engine.can_rewrite()


def broken(*arguments):
    raise AttributeError("no such equation")


def test_a_jax_that_is_not_understood_runs_plainly(later_jax):
    """Would catch an error out of the rewriting in place of a slower run, or no word about it."""
    later_jax.setattr(engine, "split_step", broken)
    with pytest.warns(RuntimeWarning, match=r"cannot rewrite programs of jax .*no such equation.*Use a jax below 0.0"):
        assert not engine.can_rewrite()
    later_jax.setattr(engine, "_run", broken)
    state, info = run()
    chex.assert_trees_all_equal((state, info), run(plain=True))


def test_wrong_numbers_are_noticed(later_jax):
    """Would catch a rewriting that is wrong without an error."""
    later_jax.setattr(engine, "step_key", lambda key, time: jax.random.fold_in(key, time + 1))
    with pytest.warns(RuntimeWarning, match="its results differ"):
        assert not engine.can_rewrite()
