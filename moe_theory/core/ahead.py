"""Split a step into what can be known before its state is, and the rest, so that the first can be done rounds ahead.

What depends on a step's key, on counters of rounds, and on nothing else of its state that changes is an arrival: random
numbers, and all that is made of them alone. Done for many rounds at once that takes fewer and wider operations, and its
results are stored and read where XLA would fuse the work into every use and so repeat it. A step function need not be
written in parts for that: the parts are found in its program.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core as jex_core

Values = list[Any]
Variables = set[Any]


class Split(NamedTuple):
    """A step in three parts: `act(prepare(draw(key, state, params), state, params), state, params)` is the step. `draw`
    and `prepare` read of the state only what counts rounds and what no step changes, such as a pool: an earlier state
    will do, moved on by `count`.
    """

    draw: Callable[[Any, Any, Any], Values]  # (key, state, params): random numbers, and what is costly to repeat
    prepare: Callable[[Values, Any, Any], Values]  # (draws, state, params): what else does not wait for the state
    act: Callable[[Values, Any, Any], Any]  # (prepared, state, params): the step's result
    count: Callable[[Any, Any], Any]  # (state, rounds): the state with its counters moved on by so many rounds
    shapes: Any  # of the step's result


class _Stages(NamedTuple):
    """Equations of a program, in its order. An equation may be in more than one stage."""

    plain: list[Any]  # of what is the same in every round: wanted everywhere, and cheap
    draw: list[Any]
    prepare: list[Any]
    act: list[Any]


def split_step(step: Callable[[Any, Any, Any], Any], key: Any, state: Any, params: Any) -> Split:
    """The parts of `step`, a pure function of (key, state, params), traced here for the shapes of these. Where its
    result begins with the next state, leaves of that which pass through unchanged are known ahead, and so are integers
    that a step does nothing to but add 1.
    """
    closed, result = jax.make_jaxpr(step, return_shape=True)(key, state, params)
    program, structure = closed.jaxpr, jax.tree.structure(result)
    num_keys, num_states = len(jax.tree.leaves(key)), len(jax.tree.leaves(state))
    keys, others = program.invars[:num_keys], program.invars[num_keys:]
    states, after = others[:num_states], program.outvars[:num_states]
    is_next = isinstance(result, tuple) and result and jax.tree.structure(result[0]) == jax.tree.structure(state)
    kept = {before for before, now in zip(states, after, strict=True) if before is now} if is_next else set()
    counters = _counters(states, after, program.eqns) if is_next else set()
    stages = _stages(program.eqns, {*keys, *counters}, set(states) - kept - counters)

    used = (_variables(program.outvars) | _inputs(stages.act)) - set(_outputs(stages.act))
    prepared = [variable for variable in [*keys, *_outputs(stages.draw + stages.prepare)] if variable in used]
    used = set(prepared) | _inputs(stages.prepare)
    drawn = [variable for variable in [*keys, *_outputs(stages.draw)] if variable in used]

    def part(inputs: list[Any], equations: list[Any], outputs: list[Any]) -> Callable[[Any, Any, Any], Values]:
        needed = _needed(stages.plain + equations, _variables(outputs))
        names = program.debug_info.with_unknown_names()
        pruned = program.replace(invars=[*inputs, *others], outvars=outputs, eqns=needed, debug_info=names)
        run = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(pruned, closed.consts))
        return lambda values, state, params: run(*jax.tree.leaves((values, state, params)))

    def count(state: Any, rounds: Any) -> Any:
        leaves, form = jax.tree.flatten(state)
        pairs = zip(leaves, states, strict=True)
        moved = [
            leaf + jnp.asarray(rounds, jnp.result_type(leaf)) if variable in counters else leaf
            for leaf, variable in pairs
        ]
        return jax.tree.unflatten(form, moved)

    act = part(prepared, stages.act, program.outvars)
    return Split(
        draw=part(keys, stages.draw, drawn),
        prepare=part(drawn, stages.prepare, prepared),
        act=lambda values, state, params: jax.tree.unflatten(structure, act(values, state, params)),
        count=count,
        shapes=result,
    )


def _stages(equations: list[Any], known: Variables, changing: Variables) -> _Stages:
    act = _reached(equations, changing)
    random = _reached(_without(equations, act), known)
    plain = _without(equations, act + random)
    costly = _needed(random, set(_outputs([equation for equation in random if _is_costly(equation)])))
    # Parts of what was drawn are stored in the place of the whole.
    draw, drawn = [], known | set(_outputs(costly))
    for equation in random:
        is_part = equation.primitive.name in _PARTS and _inputs([equation]) <= drawn
        if is_part or any(equation is other for other in costly):
            draw.append(equation)
            drawn |= set(equation.outvars)
    prepare = _without(random, draw)
    # What is larger than what it comes from is made again rather than stored.
    made, origins = known | set(_outputs(random)), {}
    for equation in prepare:
        sources = {origin for variable in _inputs([equation]) & made for origin in origins.get(variable, {variable})}
        if equation.primitive.name in _EXPANDING and _size(equation.outvars) > _size(sources):
            origins |= dict.fromkeys(equation.outvars, sources)
    again, used = [], _inputs(act)
    for equation in reversed(prepare):
        if used & origins.keys() & set(equation.outvars):
            again.append(equation)
            used |= _inputs([equation])
    return _Stages(plain, draw, prepare, again[::-1] + act)


def _counters(before: list[Any], after: list[Any], equations: list[Any]) -> Variables:
    """The variables of a state that hold one integer, of which a step leaves that and 1."""
    sums = {
        equation.outvars[0]: term
        for equation in equations
        if equation.primitive.name == "add"
        for term, one in (equation.invars, equation.invars[::-1])
        if getattr(one, "val", None) == 1
    }
    pairs = zip(before, after, strict=True)
    moved = {old for old, new in pairs if not isinstance(new, jex_core.Literal) and sums.get(new) is old}
    return {old for old in moved if old.aval.shape == () and jnp.issubdtype(old.aval.dtype, jnp.integer)}


def _reached(equations: Iterable[Any], sources: Variables) -> list[Any]:
    """The equations that depend on `sources`, or on one that does more than compute, such as to print."""
    known, reached = set(sources), []
    for equation in equations:
        if known & _inputs([equation]) or equation.effects:
            known.update(equation.outvars)
            reached.append(equation)
    return reached


def _needed(equations: list[Any], outputs: Variables) -> list[Any]:
    """The equations that `outputs` depend on, and those that do more than compute."""
    used, needed = set(outputs), []
    for equation in reversed(equations):
        if used & set(equation.outvars) or equation.effects:
            used |= _inputs([equation])
            needed.append(equation)
    return needed[::-1]


def _without(equations: list[Any], others: list[Any]) -> list[Any]:
    left_out = set(map(id, others))
    return [equation for equation in equations if id(equation) not in left_out]


def _inputs(equations: Iterable[Any]) -> Variables:
    return _variables(atom for equation in equations for atom in equation.invars)


def _outputs(equations: Iterable[Any]) -> list[Any]:
    return [variable for equation in equations for variable in equation.outvars]


def _variables(atoms: Iterable[Any]) -> Variables:
    return {atom for atom in atoms if not isinstance(atom, jex_core.Literal)}


def _size(variables: Iterable[Any]) -> int:
    """Elements, of which a key is one."""
    return sum(math.prod(variable.aval.shape) for variable in variables)


def _is_costly(equation: Any) -> bool:
    """Whether an equation, or one inside it, is worth storing wherever its result is used more than once."""
    inner = [value for value in equation.params.values() if isinstance(value, jex_core.ClosedJaxpr)]
    return equation.primitive.name not in _CHEAP and (
        not inner or any(_is_costly(part) for program in inner for part in program.jaxpr.eqns)
    )


_PARTS = frozenset("slice squeeze split".split())
_EXPANDING = frozenset("broadcast_in_dim eq ne lt le gt ge select_n and or not convert_element_type reshape".split())
_CHEAP = frozenset(
    "add sub mul div rem max min integer_pow square sqrt rsqrt neg abs sign floor ceil round eq ne lt le gt ge and or "
    "not xor is_finite select_n convert_element_type bitcast_convert_type shift_left shift_right_logical "
    "shift_right_arithmetic stop_gradient copy copy_p clamp iota broadcast_in_dim reshape transpose slice squeeze rev "
    "split concatenate stack reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_prod random_wrap "
    "random_unwrap".split()
)
