"""Assertions of `debug=True` in every round of a run.

Numbers of state and info must be finite unless their field is `Undefined`, and in their field's range. Indices of an
array must be inside it.
"""

import functools
import logging
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp

from moe_theory.core import faults, vmap
from moe_theory.core.constraints import Undefined, Within, is_known, stated
from moe_theory.core.errors import InvalidValueError, MoeTheoryError

_ERRORS = chex.ChexifyChecks.user | chex.ChexifyChecks.index
_MESSAGE = re.compile(r"Custom message: (.*)\. \[failed at", re.DOTALL)
_ROOM = 1e-5  # by which rounding may leave a range, relative to its ends
_HANGING = "chexify assertion statuses were not inspected"  # chex says so at exit, of checks that have been waited for


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
    """Return `vmap.run` of these arguments, with assertions in every round.

    Raises: InvalidValueError that names the round and the field, except inside a caller's own program.
    """
    if not is_known((jax.random.key_data(keys), state, params)):
        raise InvalidValueError(
            "debug=True raises what it finds, which a program of yours cannot: call it outside.", argument="debug"
        )
    faults.warn_of_own_programs()  # chex passes no options to the compiler, so this run may round differently
    if not is_batch:
        keys, state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], (keys, state))
    try:
        end, records = _asserted(system, num_rounds, record_every, observe)(keys, state, params)
    except (AssertionError, ValueError) as failure:
        if isinstance(failure, MoeTheoryError):  # of the system, not of its numbers
            raise
        custom = _MESSAGE.search(str(failure))
        fault = custom[1] if custom else str(failure).strip()
        raise InvalidValueError(f"{fault}. Lower num_rounds to see what comes before it.") from None
    end, records = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (end, records))
    if not is_batch:
        return jax.tree.map(lambda leaf: leaf[..., 0], (end, records))
    if reduce is not None:
        records = jax.vmap(lambda record: jax.tree.map(reduce, record))(records)
    return end, records


@functools.lru_cache(16)
def _asserted(
    system: Any, num_rounds: int, record_every: int, observe: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """Return runs of replicates, one by one."""
    absl = logging.getLogger("absl")
    if _is_news not in absl.filters:
        absl.addFilter(_is_news)

    def run(keys: Any, state: Any, params: Any) -> Any:
        def alone(replicate: Any) -> Any:
            key, start = replicate
            arguments = (_asserting(system), key, start, params, num_rounds, record_every, observe)
            return vmap.run(*arguments, None, False)  # no reduction, and no batch

        return jax.lax.map(alone, (keys, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), state)))

    return chex.chexify(jax.jit(run), async_check=False, errors=_ERRORS)


def _is_news(record: logging.LogRecord) -> bool:
    return _HANGING not in record.getMessage()


def _asserting(system: Any) -> Any:

    def init(key: Any, params: Any) -> Any:
        state = system.init(key, params)
        _assert_values(state=state)
        return state

    def step(key: Any, state: Any, params: Any) -> Any:
        result = system.step(key, state, params)
        if isinstance(result, tuple) and len(result) == 2:  # the engine refuses what is not
            _assert_values(state=result[0], info=result[1])
        return result

    return SimpleNamespace(init=init, step=step)


def _assert_values(**trees: Any) -> None:
    namespace = SimpleNamespace(**trees)
    for path, leaf, stated_of_it in _leaves(namespace):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not any(
            isinstance(constraint, Undefined) for constraint in stated_of_it
        ):
            _assert_all(jnp.isfinite(leaf), namespace, leaf, path, "where it must be finite")
        for constraint in stated_of_it:
            if isinstance(constraint, Within):
                room = _ROOM if jnp.issubdtype(leaf.dtype, jnp.inexact) else 0
                low = constraint.low - room * max(1, abs(constraint.low))
                high = constraint.high + room * max(1, abs(constraint.high))
                is_inside = ~((leaf < low) | (leaf > high))  # true for NaN, which the assertion above reports
                _assert_all(is_inside, namespace, leaf, path, f"outside [{constraint.low:g}, {constraint.high:g}]")


def _assert_all(are_right: Any, namespace: Any, leaf: Any, path: str, words: str) -> None:
    chex.assert_trees_all_equal(
        jnp.all(are_right),
        jnp.array(True),
        custom_message=f"round {{}}: {path} has {{}}, {words}",
        custom_message_format_vars=[namespace.state.round, leaf.ravel()[jnp.argmin(are_right.ravel())]],
    )


def _leaves(tree: Any, path: str = "", beside: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    fields: dict[str, Any] = {}
    if isinstance(tree, SimpleNamespace):
        fields = vars(tree)
    elif hasattr(tree, "_asdict"):
        fields = tree._asdict()
    stated_by_name = stated(type(tree)) if isinstance(tree, tuple) else {}
    for name, part in fields.items():
        yield from _leaves(part, f"{path}.{name}".lstrip("."), stated_by_name.get(name, ()))
    if fields:
        return
    for inner, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if hasattr(leaf, "dtype") and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            yield path + jax.tree_util.keystr(inner), jnp.asarray(leaf), beside
