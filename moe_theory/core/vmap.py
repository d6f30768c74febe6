"""Runs that use only `jax.vmap` and `lax.scan`, as a fallback and for comparison."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from moe_theory.core.errors import DeclarationError
from moe_theory.core.random import step_key

NARROWER_THAN_BYTES = frozenset("int1 int2 int4 uint1 uint2 uint4 float4_e2m1fn float6_e2m3fn float6_e3m2fn".split())


def trailing(function: Callable[..., Any], is_batched: tuple[bool, ...]) -> Callable[..., Any]:
    """Map a function of one replicate over the last axis of its batched arguments and of all results."""
    axes = tuple(-1 if flag else None for flag in is_batched)
    return jax.vmap(function, in_axes=axes, out_axes=-1)


def run(system, keys, state, params, num_rounds, record_every, observe, reduce, is_batch) -> tuple[Any, Any]:
    """Return the final state and stacked records of a run, as `engine.run` does."""
    batched = trailing if is_batch else lambda function, _: function
    start = batched(lambda key, params: system.init(step_key(key, jnp.int32(0)), params), (True, False))
    one_round = batched(
        lambda key, state, params: system.step(step_key(key, state.round + 1), state, params), (True, True, False)
    )
    observed = batched(observe, (True, True))
    start_state = start(keys, params) if state is None else state
    start_state = with_step_types(functools.partial(jax.eval_shape, one_round, keys), start_state, params)
    shapes = jax.eval_shape(one_round, keys, start_state, params)
    require_step_result(start_state, shapes)
    require_whole_bytes("what is observed", jax.eval_shape(observed, start_state, shapes[1]))
    no_info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes[1])

    def play(carry: Any, _: None) -> tuple[Any, None]:
        return one_round(keys, carry[0], params), None

    def one_record(length: int, state: Any, _: None) -> tuple[Any, Any]:
        # The info is carried and not stacked, because a record is only of the last round.
        (state, info), _ = jax.lax.scan(play, (state, no_info), None, length)
        record = observed(state, info)
        return state, record if reduce is None else jax.tree.map(reduce, record)

    count, remainder = divmod(num_rounds, record_every)
    end_state, records = jax.lax.scan(functools.partial(one_record, record_every), start_state, None, count)
    if remainder:
        end_state, last_record = one_record(remainder, end_state, None)
        records = jax.tree.map(lambda leaf, last: jnp.concatenate([leaf, last[None]]), records, last_record)
    return end_state, records


def with_step_types(shapes_after: Callable[[Any, Any], Any], state: Any, params: Any) -> Any:
    """Return a state whose weakly typed leaves, such as Python numbers, have the types that steps give them.

    `shapes_after` maps (state, params) to the shapes of a step's result.
    """
    # This is repeated until nothing changes, because a leaf's new type may change the type of another leaf.
    while any(map(_is_weak, jax.tree.leaves(state))):
        result = shapes_after(state, params)
        require_step_result(state, result)
        leaves, structure = jax.tree.flatten(state)
        pairs = list(zip(leaves, jax.tree.leaves(result[0]), strict=True))
        if all(jnp.result_type(before) == after.dtype for before, after in pairs):
            break
        converted = []
        for before, after in pairs:
            if jnp.result_type(before) == after.dtype:
                converted.append(before)
            elif isinstance(before, jax.ShapeDtypeStruct):
                converted.append(jax.ShapeDtypeStruct(before.shape, after.dtype))
            else:
                converted.append(jnp.asarray(before, after.dtype))
        state = jax.tree.unflatten(structure, converted)
    return state


def _is_weak(leaf: Any) -> bool:
    is_python_number = not hasattr(leaf, "dtype")
    return getattr(leaf, "weak_type", is_python_number)


def _rank(dtype: Any) -> int:
    """Return the rank of a type among truth values, whole, real and complex numbers, or -1 for other types."""
    kinds = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)
    return next((rank for rank, kind in enumerate(kinds) if jnp.issubdtype(dtype, kind)), -1)


def require_step_result(state: Any, result: Any) -> None:
    """Raise DeclarationError, naming the field, unless a step returns a pair whose first part has the form of `state`.

    The state must not have types of less than a byte.
    """
    structure = jax.tree.structure(state)
    # A state of two fields that is returned alone is a tuple of length 2, too.
    if not (isinstance(result, tuple) and len(result) == 2) or jax.tree.structure(result) == structure:
        raise DeclarationError("`step` must return the pair (state, info). If nothing is observable, let info be ().")
    if jax.tree.structure(result[0]) != structure:
        raise DeclarationError(
            f"`step` returned {_outline(result[0])} as state, but `init` returned {_outline(state)}. Return the same "
            "fields."
        )
    leaves_after = jax.tree.leaves(result[0])
    for (path, before), after in zip(jax.tree_util.tree_leaves_with_path(state), leaves_after, strict=True):
        old = jax.ShapeDtypeStruct(jnp.shape(before), jnp.result_type(before))
        new = jax.ShapeDtypeStruct(jnp.shape(after), jnp.result_type(after))
        may_change_type = _is_weak(before) and _rank(new.dtype) >= _rank(old.dtype)
        if old.shape != new.shape or (old.dtype != new.dtype and not may_change_type):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            raise DeclarationError(
                f"`step` returned the state's {name} as {described_array(new)}, but `init` returned it as "
                f"{described_array(old)}. Give both the same shape and type."
            )
    require_whole_bytes("the state", result[0])
    require_whole_bytes("info", result[1])


def require_whole_bytes(what: str, shapes: Any) -> None:
    """Raise DeclarationError for types of less than a byte, which make some operations of XLA end the process."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(shapes):
        if str(leaf.dtype) in NARROWER_THAN_BYTES:
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "value"
            raise DeclarationError(
                f"{name} of {what} is {described_array(leaf)}, a type of less than a byte. With such types some "
                "operations of XLA crash the process. Use int8, and convert inside the step."
            )


def described_array(leaf: Any) -> str:
    return f"{leaf.dtype} {tuple(leaf.shape)}" if hasattr(leaf, "dtype") else f"a {type(leaf).__name__}"


def _outline(state: Any) -> str:
    if not hasattr(state, "_fields"):
        return "an array" if hasattr(state, "dtype") else f"a {type(state).__name__}"
    parts = ((name, getattr(state, name)) for name in state._fields)
    fields = (name if hasattr(part, "dtype") else f"{name}: {type(part).__name__}" for name, part in parts)
    return f"{type(state).__name__}({', '.join(fields)})"
