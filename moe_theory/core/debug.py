"""What `debug=True` asserts of every round of a run, and which round, replicate and field break it first.

The step is run as it is, by `core/vmap.py`, with chex's value assertions in its program: numbers of state and info are
finite unless their field is `Undefined`, within the range that stands beside the field, and what indexes an array does
so inside it. A step's own assertions by chex are among them; elsewhere `chex.disable_asserts()` leaves these out.
"""

import functools
import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core import faults, vmap
from moe_theory.core.constraints import IndexOf, Undefined, Within, is_known, stated
from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.core.random import step_key

_ERRORS = chex.ChexifyChecks.user | chex.ChexifyChecks.index
_MESSAGE = re.compile(r"Custom message: (.*)\. \[failed at", re.DOTALL)
_ROOM = 1e-5  # by which rounding may leave a range, relative to its ends
_HANGING = "chexify assertion statuses were not inspected"  # chex says so at exit, of checks that have been waited for


def run(
    system: Any,
    keys: Any,
    names: np.ndarray,
    state: Any,
    params: Any,
    num_rounds: int,
    record_every: int,
    observe: Callable[[Any, Any], Any],
    reduce: Callable[[Any], Any] | None,
    is_batch: bool,
) -> tuple[Any, Any]:
    """`vmap.run` of these, or the first fault. Replicates are called by `names`. Raises: InvalidValueError that names
    the round, the replicate and the field; InvalidValueError inside a caller's own program, where nothing can be
    raised.
    """
    if not is_known((jax.random.key_data(keys), state, params)):
        raise InvalidValueError(
            "debug=True raises what it finds, which a program of yours cannot: call it outside.", argument="debug"
        )
    faults.warn_of_own_programs()  # chex takes no options of the compiler
    keys, state = (keys, state) if is_batch else jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], (keys, state))
    try:
        end, records = _whole(system, num_rounds, record_every, observe)(keys, state, params)
    except (AssertionError, ValueError) as failure:
        if isinstance(failure, MoeTheoryError):  # of the system, not of its numbers
            raise
        said = _said(failure)
    else:
        end, records = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (end, records))
        if not is_batch:
            return jax.tree.map(lambda leaf: leaf[..., 0], (end, records))
        return end, records if reduce is None else jax.vmap(lambda record: jax.tree.map(reduce, record))(records)
    walk, places = _walk(system), np.arange(len(names))

    def fault(rounds: int, places: np.ndarray) -> str | None:
        """What is wrong in the first rounds of these replicates, or of some of them in the others' places."""
        try:
            walk(rounds, keys[places], jax.tree.map(lambda leaf: leaf[..., places], state), params)
        except (AssertionError, ValueError) as failure:
            return _said(failure)
        return None

    if fault(num_rounds, places) is None:
        raise InvalidValueError(f"in what `observe` records: {said}")
    # What is wrong stays so with more rounds, and with more replicates.
    rounds = bisect_left(range(num_rounds), True, key=lambda rounds: fault(rounds, places) is not None)
    last = bisect_left(places[:-1], True, key=lambda last: fault(rounds, np.minimum(places, last)) is not None)
    said = fault(rounds, np.full_like(places, last)) or said
    begun = 0 if state is None else int(np.max(state.round))
    where = f"round {begun + rounds}" if rounds else "the start, before round 1"
    raise InvalidValueError(f"{where}, replicate {names[last]}: {said}")


def _said(failure: Exception) -> str:
    custom = _MESSAGE.search(str(failure))
    return custom[1] if custom else str(failure).strip()


@functools.lru_cache(16)
def _whole(system: Any, num_rounds: int, record_every: int, observe: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Runs of replicates, one after the other: chex asserts nothing in a loop whose length depends on the replicate."""

    def run(one: Any, params: Any) -> Any:
        return vmap.run(_asserting(system), *one, params, num_rounds, record_every, observe, None, False)

    return _program(lambda keys, state, params: _in_turn(run, keys, state, params))


@functools.lru_cache(16)
def _walk(system: Any) -> Callable[..., Any]:
    """The same for any number of rounds, without records."""
    asserting = _asserting(system)

    def step(key: Any, state: Any, params: Any) -> Any:
        return asserting.step(step_key(key, state.round + 1), state, params)

    def run(rounds: Any, one: Any, params: Any) -> Any:
        key, state = one
        begun = asserting.init(step_key(key, jnp.int32(0)), params) if state is None else state
        begun = vmap.settled(functools.partial(jax.eval_shape, functools.partial(step, key)), begun, params)
        return jax.lax.fori_loop(0, rounds, lambda _, state: step(key, state, params)[0], begun)

    return _program(lambda rounds, keys, state, params: _in_turn(functools.partial(run, rounds), keys, state, params))


def _in_turn(run: Callable[..., Any], keys: Any, state: Any, params: Any) -> Any:
    begun = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), state)
    return jax.lax.map(lambda one: run(one, params), (keys, begun))


def _program(function: Callable[..., Any]) -> Callable[..., Any]:
    absl = logging.getLogger("absl")
    if _is_news not in absl.filters:
        absl.addFilter(_is_news)
    return chex.chexify(jax.jit(function), async_check=False, errors=_ERRORS)


def _is_news(record: logging.LogRecord) -> bool:
    return _HANGING not in record.getMessage()


def _asserting(system: Any) -> Any:
    """The system with assertions of all that its `init` and its `step` give."""

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
    seen = SimpleNamespace(**trees)
    for path, leaf, stated_of_it in _leaves(seen):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not any(isinstance(each, Undefined) for each in stated_of_it):
            _assert_all(jnp.isfinite(leaf), leaf, path, "where it must be finite")
        for each in stated_of_it:
            if isinstance(each, IndexOf):
                size = each.size(seen)
                if size is not None:
                    _assert_all((leaf >= each.least) & (leaf < size), leaf, path, f"outside [{each.least}, {size})")
            elif isinstance(each, Within):
                room = _ROOM if jnp.issubdtype(leaf.dtype, jnp.inexact) else 0
                low, high = each.low - room * max(1, abs(each.low)), each.high + room * max(1, abs(each.high))
                is_inside = ~((leaf < low) | (leaf > high))  # NaN is the first assertion's
                _assert_all(is_inside, leaf, path, f"outside [{each.low:g}, {each.high:g}]")


def _assert_all(are_right: Any, leaf: Any, path: str, what: str) -> None:
    """Assert all truth values, and name the first number that breaks it."""
    first = jnp.argmin(are_right.ravel())
    places = jnp.unravel_index(first, leaf.shape) if leaf.ndim else ()
    name = f"{path}[{', '.join('{}' for _ in places)}]" if places else path
    chex.assert_trees_all_equal(
        jnp.all(are_right),
        jnp.array(True),
        custom_message=f"{name} is {{}}, {what}",
        custom_message_format_vars=[*places, leaf.ravel()[first]],
    )


def _leaves(
    tree: Any, path: str = "", stated_of_it: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Each array of a tree of named tuples and others, with its path and what is stated beside its field."""
    fields = vars(tree) if isinstance(tree, SimpleNamespace) else getattr(tree, "_asdict", dict)()
    if fields:
        beside = {} if isinstance(tree, SimpleNamespace) else stated(type(tree))
        for name, part in fields.items():
            yield from _leaves(part, f"{path}.{name}".lstrip("."), beside.get(name, ()))
        return
    for inner, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if hasattr(leaf, "dtype") and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            yield path + jax.tree_util.keystr(inner), jnp.asarray(leaf), stated_of_it
