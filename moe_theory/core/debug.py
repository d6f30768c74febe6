"""Assertions of `debug=True` in every round of a run.

Numbers in the state and the info must be in their field's range. They must be finite, unless their field is
`Undefined`. Array indices must be in bounds.
"""

import functools
import logging
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp

from moe_theory.core import faults, vmap
from moe_theory.core.constraints import Undefined, Within, constraints_of, is_known
from moe_theory.core.errors import InvalidValueError, MoeTheoryError

_ERRORS = chex.ChexifyChecks.user | chex.ChexifyChecks.index
_MESSAGE = re.compile(r"Custom message: (.*)\. \[failed at", re.DOTALL)
_TOLERANCE = 1e-5  # how far rounding may move a value out of a range, relative to the range's ends
_EXIT_WARNING = "chexify assertion statuses were not inspected"  # chex logs it although we waited for the checks


def run(
    system: Any,
    keys: jax.Array,
    state: Any,
    params: Any,
    num_rounds: int,
    record_every: int,
    observe: Callable[[Any, Any], Any],
    reduce: Callable[[Any], Any] | None,
    is_batch: bool,
) -> tuple[Any, Any]:
    """Return `vmap.run` of these arguments, with assertions in every round."""
    if not is_known((jax.random.key_data(keys), state, params)):
        raise InvalidValueError(
            "debug=True raises errors, which is impossible inside your own jax.jit. Call it outside.", argument="debug"
        )
    faults.warn_of_own_programs()  # chex passes no options to the compiler, so the fault is not avoided
    if not is_batch:  # assertions run on a batch of one
        keys, state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], (keys, state))
    run_program = _program(system, num_rounds, record_every, observe)
    try:
        end_state, records = run_program(keys, state, params)
    except (AssertionError, ValueError) as failure:
        if isinstance(failure, MoeTheoryError):  # raised by the system, not by an assertion
            raise
        message = _MESSAGE.search(str(failure))  # of `_assert_all`
        fault = message[1] if message else str(failure).strip()
        raise InvalidValueError(f"{fault}. Lower num_rounds to see earlier rounds.") from None
    # `jax.lax.map` puts the replicate axis first.
    end_state, records = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (end_state, records))
    if not is_batch:
        return jax.tree.map(lambda leaf: leaf[..., 0], (end_state, records))
    if reduce is not None:
        records = jax.vmap(lambda record: jax.tree.map(reduce, record))(records)
    return end_state, records


@functools.lru_cache(16)
def _program(system: Any, num_rounds: int, record_every: int, observe: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    logging.getLogger("absl").addFilter(_is_not_exit_warning)  # adding it again has no effect

    def run_all(keys: Any, state: Any, params: Any) -> Any:
        def run_one(replicate: Any) -> Any:
            key, start = replicate
            arguments = (_with_assertions(system), key, start, params, num_rounds, record_every, observe)
            return vmap.run(*arguments, reduce=None, is_batch=False)

        states = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), state)  # the replicate axis first
        return jax.lax.map(run_one, (keys, states))

    return chex.chexify(jax.jit(run_all), async_check=False, errors=_ERRORS)


def _is_not_exit_warning(record: logging.LogRecord) -> bool:
    return _EXIT_WARNING not in record.getMessage()


def _with_assertions(system: Any) -> Any:
    def init(key: Any, params: Any) -> Any:
        state = system.init(key, params)
        _assert_values("state", state, state.round)
        return state

    def step(key: Any, state: Any, params: Any) -> Any:
        result = system.step(key, state, params)
        if isinstance(result, tuple) and len(result) == 2:  # the engine refuses other results
            _assert_values("state", result[0], result[0].round)
            _assert_values("info", result[1], result[0].round)
        return result

    return SimpleNamespace(init=init, step=step)


def _assert_values(name: str, tree: Any, round: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if not hasattr(leaf, "dtype") or jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            continue
        constraints = _constraints_at(tree, path)
        where = name + jax.tree_util.keystr(path)
        is_real = jnp.issubdtype(leaf.dtype, jnp.inexact)
        if is_real and not any(isinstance(constraint, Undefined) for constraint in constraints):
            _assert_all(jnp.isfinite(leaf), round, leaf, where, "where it must be finite")
        for constraint in constraints:
            if isinstance(constraint, Within):
                tolerance = _TOLERANCE if is_real else 0
                low = constraint.low - tolerance * max(1, abs(constraint.low))
                high = constraint.high + tolerance * max(1, abs(constraint.high))
                is_inside = ~((leaf < low) | (leaf > high))  # true for NaN, which the assertion above reports
                _assert_all(is_inside, round, leaf, where, f"outside [{constraint.low:g}, {constraint.high:g}]")


def _constraints_at(tree: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    constraints: tuple[Any, ...] = ()
    for key in path:
        if not isinstance(key, jax.tree_util.GetAttrKey):
            break
        constraints = constraints_of(type(tree)).get(key.name, ())
        tree = getattr(tree, key.name)
    return constraints


def _assert_all(are_right: Any, round: Any, leaf: Any, path: str, words: str) -> None:
    first_wrong = jnp.ravel(leaf)[jnp.argmin(are_right.ravel())]
    chex.assert_trees_all_equal(
        jnp.all(are_right),
        jnp.array(True),
        custom_message=f"round {{}}: {path} has {{}}, {words}",  # chex fills the braces when the run has failed
        custom_message_format_vars=[round, first_wrong],
    )
