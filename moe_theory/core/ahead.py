"""Split a step into what it draws and what it does with the draws, so that draws can be made rounds ahead.

Inside one compiled loop body XLA fuses the hashing of random bits into every use of them and so repeats it many
times over. Drawn for several rounds ahead, in an outer loop, the numbers are stored once and read. A step function
need not be written in two parts for that: whatever depends on its key, and not on its state, is a draw.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core as jex_core

Draws = list[Any]


def split_draws(
    step: Callable[[Any, Any, Any], Any], key: Any, state: Any, params: Any
) -> tuple[Callable[[Any, Any], Draws], Callable[[Draws, Any, Any], Any]]:
    """Two functions, (key, params) -> draws and (draws, state, params) -> result, that together are `step`.

    Args:
        step: a pure function of (key, state, params), traced here for the shapes of `key`, `state` and `params`.
    """
    program, result = jax.make_jaxpr(step, return_shape=True)(key, state, params)
    sizes = [len(jax.tree.leaves(part)) for part in (key, state, params)]
    key_vars = program.jaxpr.invars[: sizes[0]]
    state_vars = program.jaxpr.invars[sizes[0] : sizes[0] + sizes[1]]
    param_vars = program.jaxpr.invars[sizes[0] + sizes[1] :]

    from_key, from_state = set(key_vars), set(state_vars)
    early, late = [], []
    for equation in program.jaxpr.eqns:
        operands = {atom for atom in equation.invars if not isinstance(atom, jex_core.Literal)}
        if operands & from_state:
            from_state.update(equation.outvars)
        elif operands & from_key:
            from_key.update(equation.outvars)
        # What depends on neither (constants, functions of the parameters) is cheap and wanted on both sides.
        if not operands & from_state:
            early.append(equation)
        if operands & from_state or not operands & from_key:
            late.append(equation)
    wanted = {atom for equation in late for atom in equation.invars if not isinstance(atom, jex_core.Literal)}
    wanted |= {atom for atom in program.jaxpr.outvars if not isinstance(atom, jex_core.Literal)}
    drawn = [variable for variable in _defined(key_vars, early) if variable in from_key and variable in wanted]

    draw_program = _program(program, [*key_vars, *param_vars], drawn, early)
    act_program = _program(program, [*drawn, *state_vars, *param_vars], program.jaxpr.outvars, late)
    structure = jax.tree.structure(result)

    def draw(key: Any, params: Any) -> Draws:
        return jex_core.jaxpr_as_fun(draw_program)(*jax.tree.leaves((key, params)))

    def act(draws: Draws, state: Any, params: Any) -> Any:
        outputs = jex_core.jaxpr_as_fun(act_program)(*draws, *jax.tree.leaves((state, params)))
        return jax.tree.unflatten(structure, outputs)

    return draw, act


def _defined(inputs: list[Any], equations: list[Any]) -> list[Any]:
    return [*inputs, *(variable for equation in equations for variable in equation.outvars)]


def _program(closed: Any, inputs: list[Any], outputs: list[Any], equations: list[Any]) -> Any:
    program = closed.jaxpr.replace(
        invars=inputs, outvars=outputs, eqns=equations, debug_info=closed.jaxpr.debug_info.with_unknown_names()
    )
    return jex_core.ClosedJaxpr(program, closed.consts)
