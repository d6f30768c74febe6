"""Split a step into a part that can be computed rounds ahead, and the rest."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core as jex_core

from moe_theory.core.constraints import is_known
from moe_theory.core.errors import DeclarationError
from moe_theory.core.rewriting import called

Values = list[Any]
Variables = set[Any]


class StepParts(NamedTuple):
    """A step in three parts: `act(prepare(draw(key, state, params), state, params), state, params)` is the step.

    Of the state, `draw` and `prepare` read only round counters and leaves that no step changes, such as a pool. So they
    give the same result on an earlier state, after `count` has moved its counters on.
    """

    draw: Callable[[Any, Any, Any], Values]  # (key, state, params): random numbers, and values that cost much to repeat
    prepare: Callable[[Values, Any, Any], Values]  # (draws, state, params): all other values that do not need the state
    act: Callable[[Values, Any, Any], Any]  # (prepared, state, params): the step's result
    count: Callable[[Any, Any], Any]  # (state, rounds): the state with its counters moved on by that many rounds
    shapes: Any  # shapes of the step's result
    added: list[int | None]  # what a step adds to each leaf of the state, None where that cannot be read


class _Stages(NamedTuple):
    plain: list[Any]  # cheap equations that are the same in every round and needed in all stages
    draw: list[Any]
    prepare: list[Any]
    act: list[Any]


def split_step(step: Callable[[Any, Any, Any], Any], key: Any, state: Any, params: Any) -> StepParts:
    """Return the parts of `step`, a pure function of (key, state, params), traced for these shapes.

    Leaves that the step leaves unchanged, and integers that it only increases by 1, are known in advance.
    """
    closed, result = jax.make_jaxpr(step, return_shape=True)(key, state, params)
    program = closed.jaxpr
    structure = jax.tree.structure(result)
    num_keys = len(jax.tree.leaves(key))
    num_states = len(jax.tree.leaves(state))
    keys = program.invars[:num_keys]
    state_and_params = program.invars[num_keys:]
    states = state_and_params[:num_states]
    new_states = program.outvars[:num_states]
    constants: Variables = set()  # leaves that the step leaves unchanged
    added: list[int | None] = [None] * num_states
    # `vmap.require_step_result` later refuses results that are not like the state.
    if isinstance(result, tuple) and result and jax.tree.structure(result[0]) == jax.tree.structure(state):
        constants = {old for old, new in zip(states, new_states, strict=True) if old is new}
        added = _added(closed, first=num_keys, count=num_states)
    counters = {variable for variable, step_by in zip(states, added, strict=True) if step_by == 1}
    stages = _stages(program.eqns, {*keys, *counters}, set(states) - constants - counters)

    act_inputs = _variables(program.outvars) | _inputs(stages.act)
    act_inputs -= set(_outputs(stages.act))
    # Of the earlier parts, `prepared` has what `act` needs, and `drawn_variables` what `prepare` needs or passes on.
    prepared = [variable for variable in [*keys, *_outputs(stages.draw + stages.prepare)] if variable in act_inputs]
    prepare_inputs = set(prepared) | _inputs(stages.prepare)
    drawn_variables = [variable for variable in [*keys, *_outputs(stages.draw)] if variable in prepare_inputs]

    def make_part(inputs: list[Any], equations: list[Any], outputs: list[Any]) -> Callable[[Any, Any, Any], Values]:
        needed = _needed(stages.plain + equations, _variables(outputs))
        run = _function_of(closed, [*inputs, *state_and_params], outputs=outputs, equations=needed)
        return lambda values, state, params: run(*jax.tree.leaves((values, state, params)))

    def count(state: Any, rounds: Any) -> Any:
        leaves, state_structure = jax.tree.flatten(state)
        for place, variable in enumerate(states):
            if variable in counters:
                leaves[place] = leaves[place] + jnp.asarray(rounds, jnp.result_type(leaves[place]))
        return jax.tree.unflatten(state_structure, leaves)

    act_on_leaves = make_part(prepared, stages.act, program.outvars)
    return StepParts(
        draw=make_part(keys, stages.draw, drawn_variables),
        prepare=make_part(drawn_variables, stages.prepare, prepared),
        act=lambda values, state, params: jax.tree.unflatten(structure, act_on_leaves(values, state, params)),
        count=count,
        shapes=result,
        added=added,
    )


def require_counted(state: Any, added: list[int | None]) -> None:
    step_by = added[place_of_round(state)]
    if step_by == 1:
        return
    complaint = f"adds {step_by} to the state's `round`"
    if step_by is None:
        complaint = "returns a `round` that is not recognizable as the previous one plus 1"
    elif step_by == 0:
        complaint = "leaves the state's `round` as it was"
    raise DeclarationError(
        f"`step` {complaint}, but the engine derives each round's key from it and counts rounds by it. Return "
        "round=state.round + 1, and keep any other clock in a separate field."
    )


def trace_start(init: Callable[[Any], Any], key: Any) -> tuple[Any, int | None]:
    """Return the shapes of the states that `init` returns, and their first round if known. Raises: DeclarationError."""
    closed, shapes = jax.make_jaxpr(init, return_shape=True)(key)
    place = place_of_round(shapes) if hasattr(shapes, "round") else None
    if place is None:
        return shapes, None
    program = closed.jaxpr
    outputs = [program.outvars[place]]
    (start_offset,) = _offsets(closed, [None] * len(program.invars), outputs)
    if start_offset is not None:
        return shapes, start_offset.number
    equations = [equation for equation in program.eqns if not equation.effects]
    needed = _needed(equations, _variables(outputs))
    if (_variables(outputs) | _inputs(needed)) & set(program.invars):
        raise DeclarationError(
            "`init` returns a `round` that depends on its key, but all replicates must begin at the same round. "
            "Return round=jnp.int32(0), and keep any other clock in a separate field."
        )
    (value,) = _function_of(closed, inputs=[], outputs=outputs, equations=needed)()
    is_single = is_known(value) and jnp.shape(value) == ()
    return shapes, int(value) if is_single else None


def _function_of(closed: Any, inputs: list[Any], outputs: list[Any], equations: list[Any]) -> Callable[..., Values]:
    names = closed.jaxpr.debug_info.with_unknown_names()  # those of `closed` are for other inputs and outputs
    part = closed.jaxpr.replace(invars=inputs, outvars=outputs, eqns=equations, debug_info=names)
    return jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(part, closed.consts))


def place_of_round(state: Any) -> Any:
    """Return the position of `round` among the leaves of a state, or None if `round` is not a leaf."""
    structure = jax.tree.structure(state)
    place = jax.tree.unflatten(structure, list(range(structure.num_leaves))).round
    return place if isinstance(place, int) else None


def _stages(equations: list[Any], early: Variables, changing: Variables) -> _Stages:
    """Return the stages, given the variables that are known rounds ahead and those that steps change."""
    act = _reached(equations, changing)
    random = _reached(_without(equations, act), early)
    plain = _without(equations, act + random)
    costly_outputs = set(_outputs([equation for equation in random if _is_costly(equation)]))
    costly = _needed(random, costly_outputs)
    # If only a part of a drawn array is needed, that part is stored.
    draw = []
    drawn_variables = set()
    for equation in random:
        is_part = equation.primitive.name in _PARTS and _inputs([equation]) <= drawn_variables
        if is_part or any(equation is costly_equation for costly_equation in costly):
            draw.append(equation)
            drawn_variables |= set(equation.outvars)
    prepare = _without(random, draw)
    # A value that is larger than its inputs is computed again rather than stored.
    available = early | set(_outputs(random))
    origins = {}  # by variable of such a value, the variables from which it is computed
    for equation in prepare:
        sources = set()
        for variable in _inputs([equation]) & available:
            sources |= origins.get(variable, {variable})
        if equation.primitive.name in _EXPANDING and _size(equation.outvars) > _size(sources):
            origins |= dict.fromkeys(equation.outvars, sources)
    repeated = []
    used = _inputs(act)
    for equation in reversed(prepare):
        if used & origins.keys() & set(equation.outvars):
            repeated.append(equation)
            used |= _inputs([equation])
    return _Stages(plain, draw, prepare, act=repeated[::-1] + act)


class _Offset(NamedTuple):
    """A leaf of a state plus a known integer, or a known integer alone."""

    leaf: int | None  # position of the leaf, or None for an integer alone
    number: int


def _added(closed: Any, first: int, count: int) -> list[int | None]:
    """Return what a step adds to each of `count` leaves of the state, which are the inputs from `first` on."""
    inputs = closed.jaxpr.invars
    input_offsets: list[_Offset | None] = [None] * len(inputs)
    for leaf in range(count):
        if _is_integer(inputs[first + leaf].aval):
            input_offsets[first + leaf] = _Offset(leaf, number=0)
    added: list[int | None] = [None] * count
    for leaf, offset in enumerate(_offsets(closed, input_offsets, closed.jaxpr.outvars[:count])):
        if offset is not None and offset.leaf == leaf:
            added[leaf] = offset.number
    return added


def _offsets(closed: Any, inputs: list[_Offset | None], outputs: list[Any] | None = None) -> list[_Offset | None]:
    """Return what is known of `outputs`, by default all outputs, given what is known of the inputs."""
    program = closed.jaxpr
    offsets: dict[Any, _Offset | None] = dict(zip(program.invars, inputs, strict=True))
    for variable, constant in zip(program.constvars, closed.consts, strict=True):
        offsets[variable] = _constant(constant)

    def read(atom: Any) -> _Offset | None:
        return _constant(atom.val) if isinstance(atom, jex_core.Literal) else offsets.get(atom)

    equations = program.eqns if outputs is None else _needed(program.eqns, _variables(outputs))
    for equation in equations:
        operands = [read(atom) for atom in equation.invars]
        results: list[_Offset | None] = [None] * len(equation.outvars)
        name = equation.primitive.name
        result_type: Any = next((variable.aval for variable in equation.outvars), None)  # of the first result
        inner = called(equation)
        if inner is not None:
            results = _offsets(inner, operands)
        elif name == "cond":
            branches = [_offsets(branch, operands[1:]) for branch in equation.params["branches"]]
            for place, leaf_offsets in enumerate(zip(*branches, strict=True)):
                if len(set(leaf_offsets)) == 1:  # all branches agree
                    results[place] = leaf_offsets[0]
        elif name == "select_n" and len(set(operands[1:])) == 1:
            results = operands[1:2]
        elif name in ("add", "sub") and None not in operands and _is_integer(result_type):
            first: Any = operands[0]
            second: Any = operands[1]
            if second.leaf is None:
                number = second.number if name == "add" else -second.number
                results = [_Offset(first.leaf, first.number + number)]
            elif first.leaf is None and name == "add":
                results = [_Offset(second.leaf, first.number + second.number)]
        elif name in _UNCHANGED and operands[0] is not None and _is_integer(result_type):
            dtype = equation.invars[0].aval.dtype
            limits = jnp.iinfo(result_type.dtype)
            is_same = result_type.dtype == dtype
            fits = operands[0].leaf is None and limits.min <= operands[0].number <= limits.max
            if is_same or fits:
                results = [operands[0]]
        offsets.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in (program.outvars if outputs is None else outputs)]


def _constant(value: Any) -> _Offset | None:
    is_single = is_known(value) and jnp.shape(value) == ()
    if is_single and jnp.issubdtype(jnp.result_type(value), jnp.integer):
        return _Offset(leaf=None, number=int(value))
    return None


def _is_integer(aval: Any) -> bool:
    return getattr(aval, "shape", None) == () and jnp.issubdtype(aval.dtype, jnp.integer)


def _reached(equations: Iterable[Any], sources: Variables) -> list[Any]:
    """Return the equations, in order, whose inputs depend on the sources, and those with effects."""
    available = set(sources)
    reached = []
    for equation in equations:
        if available & _inputs([equation]) or equation.effects:
            available.update(equation.outvars)
            reached.append(equation)
    return reached


def _needed(equations: list[Any], outputs: Variables) -> list[Any]:
    """Return the equations, in order, on which the outputs depend, and those with effects."""
    used = set(outputs)
    needed = []
    for equation in reversed(equations):
        if used & set(equation.outvars) or equation.effects:
            used |= _inputs([equation])
            needed.append(equation)
    return needed[::-1]


def _without(equations: list[Any], excluded: list[Any]) -> list[Any]:
    excluded_ids = set(map(id, excluded))
    return [equation for equation in equations if id(equation) not in excluded_ids]


def _inputs(equations: Iterable[Any]) -> Variables:
    return _variables(itertools.chain.from_iterable(equation.invars for equation in equations))


def _outputs(equations: Iterable[Any]) -> list[Any]:
    return list(itertools.chain.from_iterable(equation.outvars for equation in equations))


def _variables(atoms: Iterable[Any]) -> Variables:
    return {atom for atom in atoms if not isinstance(atom, jex_core.Literal)}


def _size(variables: Iterable[Any]) -> int:
    return sum(math.prod(variable.aval.shape) for variable in variables)


def _is_costly(equation: Any) -> bool:
    if equation.primitive.name in _CHEAP:
        return False
    inner_programs = [value for value in equation.params.values() if isinstance(value, jex_core.ClosedJaxpr)]
    inner_equations = itertools.chain.from_iterable(program.jaxpr.eqns for program in inner_programs)
    return not inner_programs or any(map(_is_costly, inner_equations))


_UNCHANGED = frozenset("convert_element_type broadcast_in_dim reshape squeeze copy copy_p optimization_barrier".split())
_PARTS = frozenset("slice squeeze split".split())
_EXPANDING = frozenset("broadcast_in_dim eq ne lt le gt ge select_n and or not convert_element_type reshape".split())
_CHEAP = frozenset(
    "add sub mul div rem max min integer_pow square sqrt rsqrt neg abs sign floor ceil round eq ne lt le gt ge and or "
    "not xor is_finite select_n convert_element_type bitcast_convert_type shift_left shift_right_logical "
    "shift_right_arithmetic stop_gradient copy copy_p clamp iota broadcast_in_dim reshape transpose slice squeeze rev "
    "split concatenate stack reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_prod random_wrap "
    "random_unwrap".split()
)
