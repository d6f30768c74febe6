"""The known faults of the libraries under JAX: no program of ours has them, and a caller's own is warned of."""

import ast
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import engine, faults, programs
from moe_theory.core.errors import InvalidValueError

ROWS = 40_000
ROOT = mt.root_key(43)
on_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="faults of programs for a CPU")


@on_cpu
def test_what_programs_of_ours_are_compiled_with_avoids_the_fault() -> None:
    """Would catch an option that no longer avoids the fault."""
    avoided = [{faults.OPTION: value} for value in ("", faults.VALUE)]  # the first as a caller is told to set it
    ours = [engine.cpu_options() or {}, engine.cpu_options(is_large=True) or {}]
    assert not any(faults.is_wrong(tuple(options.items())) for options in (*avoided, *ours, faults.avoiding()))


REDUCTIONS = {
    "sum of squares": (lambda row: jnp.sum(row**2), lambda rows: np.sum(rows**2, axis=1)),
    "mean": (jnp.mean, lambda rows: np.mean(rows, axis=1)),
    "largest": (jnp.max, lambda rows: np.max(rows, axis=1)),
    "least of squares": (lambda row: jnp.min(row**2), lambda rows: np.min(rows**2, axis=1)),
    "length": (lambda row: jnp.sqrt(row @ row), lambda rows: np.sqrt(np.sum(rows**2, axis=1))),
}


@on_cpu
@pytest.mark.parametrize("name", REDUCTIONS)
def test_programs_of_ours_reduce_many_products_rightly(name: str) -> None:
    """Would catch rows that are another's, against NumPy in float64; also under vmap, and in float64."""
    reduced, expected = REDUCTIONS[name]
    for columns, dtype in ((3, np.float32), (2, np.float32), (3, np.float64)):
        rows = np.random.default_rng(columns).normal(size=(ROWS, columns)).astype(dtype)
        with jax.enable_x64(dtype == np.float64):
            eye = jnp.eye(columns, dtype=dtype)
            found = programs.jit(jax.vmap(lambda row, eye=eye: reduced(eye @ row)))(rows)
        np.testing.assert_allclose(found, expected(rows.astype(np.float64)), rtol=1e-4, atol=1e-5)


class State(NamedTuple):
    round: Any
    rows: Any
    more: Any  # of more than 1 MiB: what replicates of matrices are compiled for


def summing(size: int) -> mt.System:
    def init(key, params):
        places = jnp.arange(ROWS, dtype=jnp.float32)
        return State(jnp.int32(0), jnp.stack((places, 0 * places, 0 * places), axis=1), jnp.zeros(size))

    def step(key, state, params):
        squares = jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))(state.rows)
        return State(state.round + 1, state.rows, state.more + 1), squares

    return mt.System(init, step)


@on_cpu
@pytest.mark.parametrize("size", [1, 300_000])
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("count", [None, 2])
def test_every_kind_of_run_sums_rightly(size: int, is_plain: bool, count: int | None) -> None:
    """Would catch a kind of program of the engine's that is compiled without what avoids the fault."""
    run = mt.simulate if count is None else functools.partial(mt.simulate_batch, replicates=count)
    _, squares = run(summing(size), ROOT, params=(), num_rounds=1, plain=is_plain)
    squares = np.asarray(squares).reshape(ROWS, -1)
    np.testing.assert_array_equal(squares, np.arange(ROWS, dtype=np.float32)[:, None] ** 2 + 0 * squares)


OWN = {"core/engine.py", "core/faults.py", "core/programs.py"}  # which pass options, or ask what there are
INSIDE = {"core/random.py"}  # parts of other programs
WARNED = {"core/debug.py"}  # which can pass none, and warns of them


def test_no_program_of_ours_is_compiled_without_options() -> None:
    """Would catch a `jax.jit` of the package that keeps a known fault, outside of examples for users."""
    package = Path(mt.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name in OWN | INSIDE | WARNED:
            continue
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "jax.jit" in text else ():
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "jax.jit":
                line = text.splitlines()[node.lineno - 1]
                found += [] if "compile(faults.avoiding())" in line else [f"{name}:{node.lineno}"]
    assert not found


@on_cpu
def test_a_fault_that_no_option_avoids_stops_our_programs_and_is_told_of_others_once(monkeypatch) -> None:
    """Would catch wrong numbers without a word: in a program of ours, and inside a caller's own."""
    monkeypatch.setattr(faults, "is_wrong", lambda options: True)
    for name in ("avoiding", "warn_of_own_programs"):
        monkeypatch.setattr(faults, name, functools.cache(getattr(faults, name).__wrapped__))
    monkeypatch.setattr(faults, "OPTION", "xla_no_such_option")
    assert faults.avoiding() == {}
    with pytest.raises(InvalidValueError, match=r"gives wrong numbers where a program reduces .*another jaxlib"):
        faults.require_none(None)

    def twice() -> None:
        for _ in range(2):
            jax.eval_shape(lambda: mt.simulate(summing(1), ROOT, (), 1))

    with pytest.warns(RuntimeWarning, match="your own jax.jit, or .*, reduces .*before JAX starts") as told:
        twice()
    assert [Path(each.filename).name for each in told] == [Path(__file__).name]


def test_our_jit_is_jax_s_inside_other_programs() -> None:
    """Would catch options that JAX refuses within a program, a derivative or a loop."""
    cube = programs.jit(lambda number, power: number**power, static_argnums=1)
    assert cube(2.0, 3) == 8
    assert jax.jit(lambda number: cube(number, 3) + 1)(2.0) == 9
    assert jax.jit(lambda: cube(2.0, 3) + 1)() == 9
    assert jax.grad(lambda number: cube(number, 3))(2.0) == 12
    np.testing.assert_array_equal(jax.vmap(lambda number: cube(number, 2))(jnp.arange(3.0)), [0, 1, 4])
    np.testing.assert_array_equal(jax.lax.map(lambda number: cube(number, 2), jnp.arange(3.0)), [0, 1, 4])
