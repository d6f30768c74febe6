"""`trailing_vmap` against `jax.vmap` with the batch on the last axis, rule by rule, and the plain engine."""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax
from jax.extend import core as jex_core

import moe_theory as mt
from moe_theory import continual
from moe_theory.core import batching, engine, rewriting
from moe_theory.core.batching import LONGEST_CHAIN, MOST_TERMS, one_replicate, trailing_vmap

from .test_blocks import begin, walk
from .trees import assert_close, primitives_of

pytestmark = pytest.mark.usefixtures("much_room")

SIZES = (3, 5)  # of the batch; the arrays' axes have 3 and 2


class Case(NamedTuple):
    """A function, and which of its arguments (of these shapes, for one replicate) are batched."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...] = ((3,),)
    is_batched: tuple[bool, ...] | None = None
    dtype: Any = np.float32

    @property
    def flags(self) -> tuple[bool, ...]:
        return self.is_batched or (True,) * len(self.shapes)

    def arguments(self, size: int) -> list[jax.Array]:
        rng = np.random.default_rng([7, *self.name.encode()])
        arguments = []
        for shape, flag in zip(self.shapes, self.flags, strict=True):
            shape = (*shape, size) if flag else shape
            if np.issubdtype(np.dtype(self.dtype), np.integer):
                arguments.append(jnp.asarray(rng.integers(0, 3, shape), self.dtype))
            else:
                arguments.append(jnp.asarray(rng.uniform(0.1, 0.9, shape), self.dtype))
        return arguments


def unary(name: str, function: Callable[..., Any] | None = None, dtype: Any = np.float32) -> list[Case]:
    function = getattr(lax, name) if function is None else function
    return [Case(f"{name}-{shape}", function, (shape,), dtype=dtype) for shape in RANKS.get(name, ((3, 2),))]


def binary(name: str, function: Callable[..., Any] | None = None, dtype: Any = np.float32) -> list[Case]:
    """One batched operand; at every rank two of them, and each of them unbatched, for those of `RANKS`."""
    function = getattr(lax, name) if function is None else function
    flags = ((True, True), (True, False), (False, True)) if name in RANKS else ((True, False),)
    shapes = RANKS.get(name, ((3, 2),))
    return [Case(f"{name}-{shape}-{flag}", function, (shape, shape), flag, dtype) for shape in shapes for flag in flags]


RANKS = dict.fromkeys(("exp", "add", "pow", "literal"), ((), (3,), (3, 2)))  # the rest at one rank
PROGRAMS = 8  # that try all cases: a few take longer and half a gigabyte to compile, and many take longer again
UNARY = "sqrt rsqrt exp exp2 log log1p expm1 neg abs sign floor ceil is_finite erf erf_inv erfc logistic tanh sin cos"
BINARY = "add sub mul div rem max min pow eq ne lt le gt ge atan2 nextafter"
BITS = "and or xor shift_left shift_right_logical shift_right_arithmetic"


def elementwise() -> list[Case]:
    cases = [case for name in UNARY.split() for case in unary(name)]
    cases += [case for name in BINARY.split() for case in binary(name)]
    for name in BITS.split():
        spelt = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}.get(name)
        cases += binary(name, spelt, np.int32)
    cases += unary("not", lambda x: lax.bitwise_not(x), np.int32)
    cases += unary("round", lambda x: lax.round(10 * x, lax.RoundingMethod.TO_NEAREST_EVEN))
    cases += unary("integer_pow", lambda x: lax.integer_pow(x, 3))
    cases += unary("square", lax.square)
    cases += unary("convert_element_type", lambda x: (10 * x).astype(np.int32))
    cases += unary("reduce_precision", lambda x: lax.reduce_precision(x, 8, 4))
    cases += unary("stop_gradient", lax.stop_gradient)
    cases += unary("copy", lambda x: jnp.array(x, copy=True))
    cases += unary("copy_p", lambda x: jax.lax.optimization_barrier(lax.copy_p.bind(x)))
    cases += unary("complex", lambda x: (lax.real(lax.complex(x, 2 * x)), lax.imag(lax.complex(x, 2 * x))))
    cases += unary("literal", lambda x: 2 * x + 0.5)
    cases += unary("literal-bfloat16", lambda x: jnp.maximum(2 * x + 0.5, 0.25), jnp.bfloat16)
    cases += unary("literal-int8", lambda x: 2 * x + 1, np.int8)
    for shape in ((), (3, 2)):  # with scalars beside them
        for flags in ((True, True, True), (True, True, False), (False, True, True), (True, False, False)):
            cases += [
                Case(f"select-scalar-{shape}-{flags}", select_scalar, ((), shape, shape), flags),
                Case(f"select-{shape}-{flags}", select_whole, (shape, shape, shape), flags),
                Case(f"clamp-scalar-{shape}-{flags}", clamp_between, (shape, (), ()), flags),
                Case(f"clamp-{shape}-{flags}", clamp_between, (shape, shape, shape), flags),
            ]
    return cases


def select_scalar(which: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    return lax.select_n(which > 0.5, first, second)


def select_whole(which: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array, ...]:
    return jnp.where(which > 0.5, first, second), jnp.where(which > 0.5, first, 0.0), jnp.where(which > 0.5, 1.0, 2.0)


def clamp_between(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    return lax.clamp(jnp.minimum(low, high), x, jnp.maximum(low, high))


def same_axes() -> list[Case]:
    cases = []
    for axes in ((0,), (1,), (0, 1), (-1,), ()):
        for reduction in (jnp.sum, jnp.prod, jnp.max, jnp.min):
            cases.append(Case(f"{reduction.__name__}-{axes}", functools.partial(reduction, axis=axes), ((3, 2),)))
        cases.append(Case(f"all-{axes}", lambda x, a=axes: jnp.all(x > 0.2, axis=a), ((3, 2),)))
        cases.append(Case(f"any-{axes}", lambda x, a=axes: jnp.any(x > 0.8, axis=a), ((3, 2),)))
    for axis in (0, 1, -1, None):
        cases.append(Case(f"argmax-{axis}", lambda x, a=axis: (jnp.argmax(x, a), jnp.argmin(x, a)), ((3, 2),)))
    for running in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        for axis, reverse in ((0, False), (1, True)):
            name = f"{running.__name__}-{axis}"
            cases.append(Case(name, functools.partial(running, axis=axis, reverse=reverse), ((3, 2),)))
    for flags in ((True, True), (True, False), (False, True)):
        for axis in (0, 1):
            join = lambda x, y, a=axis: jnp.concatenate([x, y, jnp.ones((3, 2)), x], axis=a)  # noqa: E731
            cases.append(Case(f"concatenate-{axis}-{flags}", join, ((3, 2), (3, 2)), flags))
        cases.append(Case(f"stack-{flags}", lambda x, y: jnp.stack([x, y], axis=1), ((3,), (3,)), flags))
        cases.append(Case(f"barrier-{flags}", lambda x, y: lax.optimization_barrier((x, y)), ((3, 2), ()), flags))
    return [
        *cases,
        Case("squeeze", lambda x: jnp.squeeze(x, axis=(0, 2)), ((1, 3, 1),)),
        Case("rev", lambda x: (jnp.flip(x, 0), jnp.flip(x, 1), jnp.flip(x)), ((3, 2),)),
        Case("split", lambda x: lax.split(x, (1, 2), axis=0), ((3, 2),)),
    ]


def reshapes() -> list[Case]:
    return [
        Case("broadcast-in-dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), ((3,),)),
        Case("broadcast-ones", lambda x: jnp.broadcast_to(x, (2, 3, 2)), ((3, 1),)),
        Case("broadcast-scalar", lambda x: jnp.full((3, 2), x), ((),)),
        Case("outer", lambda x, y: x[:, None] * y[None, :], ((3,), (2,)), (True, False)),
        Case("outer-swapped", lambda x, y: x[None, :] * y[:, None], ((3,), (2,)), (False, True)),
        Case("rank-mismatch", lambda x, y: x * y, ((3, 2), (2,)), (True, True)),
        Case("scalar-times-matrix", lambda x, y: x * y, ((3, 2), ()), (False, True)),
        Case("reshape", lambda x: (x.reshape(2, 3), x.reshape(-1), x.reshape(6, 1), x.reshape(3, 2, 1)), ((3, 2),)),
        Case("reshape-scalar", lambda x: x.reshape(1, 1), ((),)),
        Case("transpose", lambda x: (x.T, jnp.transpose(x, (2, 0, 1))), ((3, 2, 4),)),
        Case("slice", lambda x: (x[1:], x[:, 1:], x[::2], x[2::-1], x[1, :], x[-1, 1]), ((3, 2),)),
        Case("slice-strides", lambda x: lax.slice(x, (0, 1), (5, 4), (2, 3)), ((5, 4),)),
    ]


@jax.custom_vjp
def cubed(x: jax.Array) -> jax.Array:
    return x**3


cubed.defvjp(lambda x: (cubed(x), x), lambda x, cotangent: (3 * x**2 * cotangent,))


def calls() -> list[Case]:
    return [
        Case("jit", jax.jit(lambda x, y: (x * y, jnp.sum(x))), ((3,), (3,)), (True, False)),
        Case("jit-in-jit", jax.jit(lambda x: jax.jit(jnp.cumsum)(x) + jax.jit(lambda: jnp.arange(3.0))())),
        Case("jit-of-nothing-batched", lambda x, y: x + jax.jit(jnp.sin)(y), ((3,), (3,)), (True, False)),
        Case("relu", jax.nn.relu, ((3, 2),)),
        Case("softmax", lambda x: (jax.nn.softmax(x), jax.nn.softmax(x, axis=0)), ((3, 2),)),
        Case("logsumexp", lambda x: jax.nn.logsumexp(x, axis=0), ((3, 2),)),
        Case("custom-vjp", lambda x: cubed(x) + 1),
        Case("gradient", jax.grad(lambda x: jnp.sum(cubed(x) * jax.nn.softmax(x)))),
        Case("jacobian", jax.jacfwd(lambda x: jnp.cumsum(x) ** 2)),
        Case("inner-vmap", jax.vmap(lambda row: jnp.sort(row) * row[0]), ((3, 2),)),
        Case("checkpoint", jax.grad(lambda x: jnp.sum(jax.checkpoint(jnp.sin)(x)))),
    ]


def written() -> list[Case]:
    """Operations that are written out by others, for places inside and outside, and where an index is shared."""
    cases = []
    for flags in ((True, True), (True, False), (False, True)):
        for name, place in {"inside": 3, "outside": 9, "negative": -9}.items() if all(flags) else [("outside", 9)]:
            for kind, change in AT_INDEX.items():
                function = functools.partial(at_index, change, place)
                cases.append(Case(f"{kind}-{name}-{flags}", function, ((4, 2), ()), flags))
        cases += [
            Case(f"matrix-vector-{flags}", lambda x, y: (x @ y, y @ x.T, 2 * y @ y), ((3, 2), (2,)), flags),
            Case(f"tensor-dot-{flags}", lambda x, y: jnp.tensordot(x, y, ((0, 2), (1, 0))), ((3, 4, 2), (2, 3)), flags),
            Case(f"long-dot-{flags}", lambda x, y: x @ y, ((3, MOST_TERMS + 1), (MOST_TERMS + 1,)), flags),
            Case(f"large-dot-{flags}", lambda x, y: x @ y, ((65, 64), (64,)), flags),
            Case(f"take-of-integers-{flags}", lambda x, i: (x[i], x > 1)[0], ((4,), ()), flags, np.int32),
            Case(f"take-of-truths-{flags}", lambda x, i: (x > 1)[i], ((4,), ()), flags, np.int32),
        ]
    return [
        *cases,
        Case("first-of-equals", lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)), ((4, 3),), dtype=np.int32),
        Case("first-without-number", lambda x: jnp.argmax(jnp.where(x > 0.5, jnp.nan, x)), ((4,),)),
        Case("first-truth", lambda x: jnp.argmax(x > 0.5), ((4,),)),
        Case("first-infinite", lambda x: jnp.argmin(jnp.where(x > 0.5, -jnp.inf, jnp.inf)), ((4,),)),
        Case("empty-dot", lambda x: x @ x, ((0,),)),
        Case("quantiles", lambda x: (lax.erf_inv(1.9 * x - 0.95), lax.erf_inv(x.astype(np.float16))), ((4, 2),)),
        Case("quantiles-at-ends", lambda x: lax.erf_inv(jnp.sign(x - 0.5) * jnp.array([1, -1, 0, 2])), ((4,),)),
        Case("narrow-index", lambda x, i: x[(200 * i).astype(np.uint8)], ((300, 1), ())),
        Case("narrow-update", lambda x, i: x.at[(200 * i).astype(np.uint8)].set(7.0), ((300, 1), ())),
        Case("narrow-place", lambda x: lax.argmax(jnp.where(x > 2, x, 0), 0, np.uint8), ((256,),)),
        Case("sign-of-zero", lambda x, i: 1 / (jnp.zeros(4) * -x)[(4 * i).astype(int)], ((4,), ())),
    ]


def at_index(change: Callable[..., jax.Array], scale: int, x: jax.Array, y: jax.Array) -> jax.Array:
    return change(x, y, (scale * y).astype(np.int32))


AT_INDEX = {  # of an array, a number and an index
    "take_row": lambda x, y, i: 2 * x[i],
    "take_number": lambda x, y, i: x[i, 1] + x[1, i],
    "take_column": lambda x, y, i: x[:, i],
    "add_row": lambda x, y, i: x.at[i].add(y * jnp.arange(2.0)),
    "set_row": lambda x, y, i: x.at[i].set(jnp.arange(2.0), mode="clip"),
    "set_number": lambda x, y, i: x.at[i, 1].set(y).at[0, i].add(1.0),
    "drop_row": lambda x, y, i: x.at[i].set(7.0, mode="drop"),
    "update_row": lambda x, y, i: lax.dynamic_update_slice(x, y * jnp.ones((1, 2)), (i, 0)),
}


def fallbacks() -> list[Case]:
    """Operations without a rule, alone and between operations that have one."""
    cases = []
    for flags in ((True, True), (True, False), (False, True)):
        cases += [
            Case(f"dot-{flags}", lambda x, y: jnp.sin(x) @ y + 1, ((3, 2), (2, 4)), flags),
            Case(f"gather-{flags}", lambda x, i: x[(4 * i).astype(int)] * 2, ((4, 2), (3,)), flags),
            Case(f"scatter-{flags}", lambda x, i: x.at[(4 * i).astype(int)].add(1.0), ((4,), ()), flags),
            Case(f"cond-{flags}", lambda x, p: lax.cond(p > 0.5, jnp.sin, jnp.negative, x), ((3,), ()), flags),
            Case(f"scan-{flags}", lambda x, y: lax.scan(lambda c, z: (c + z * x, c), x, y), ((3,), (4,)), flags),
            Case(f"while-{flags}", lambda x, y: double_until(x, y), ((3,), ()), flags),
            Case(f"solve-{flags}", lambda x, y: jnp.linalg.solve(x + 3 * jnp.eye(3), y), ((3, 3), (3,)), flags),
            Case(f"update-{flags}", lambda x, y: lax.dynamic_update_slice(x, y, (1,)), ((3,), (1,)), flags),
        ]
    return [
        *cases,
        Case("sort", lambda x: (jnp.sort(x, axis=0), jnp.argsort(x, axis=1), lax.top_k(x, 1)), ((3, 2),)),
        Case("fori", lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.5 + x[i], jnp.float32(0))),
        Case("switch", lambda x: lax.switch((3 * x[0]).astype(int), [jnp.sin, jnp.cos, jnp.tanh], x)),
        Case("fft", lambda x: jnp.abs(jnp.fft.fft(x, axis=0)), ((3, 2),)),
        Case("pad", lambda x: jnp.pad(x, ((1, 0), (0, 2))), ((3, 2),)),
        Case("convolve", lambda x: jnp.convolve(x, jnp.array([1.0, 2.0]))),
        Case("bitcast", lambda x: lax.bitcast_convert_type(x, np.int32)),
    ]


def double_until(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.while_loop(lambda c: jnp.sum(c) < 5 + y, lambda c: 2 * c, x)


def outputs() -> list[Case]:
    return [
        Case("constants", lambda x: (x, 1.0, 2, True, np.float32(3), jnp.arange(3), jnp.zeros((2, 3)))),
        Case("only-constants", lambda x: 1.0),
        Case("unbatched-output", lambda x, y: {"x": x, "y": (y, 2 * y, jnp.sum(y))}, ((3,), (3, 2)), (True, False)),
        Case("same-twice", lambda x: (x, x, [x, None])),
        Case("unused", lambda x, y: y, ((3,), (2,)), (True, False)),
        Case("weak", lambda x: (jnp.where(x > 0.5, 1.0, 2.0), jnp.where(x > 0.5, 1, 2), 2.0 * jnp.sum(x > 0.5))),
        Case("iota", lambda x: jnp.arange(3) * x),
        Case("complex", lambda x: jnp.real(jnp.exp(1j * x))),
    ]


def reductions() -> list[Case]:
    """Reductions on both sides of one chain and of chains of chains, over several axes and over none, of every kind of
    number: of chains of chains, which are each kind's alike and take long to compile, of three."""
    cases = []
    for terms in (1, LONGEST_CHAIN, LONGEST_CHAIN + 1, 53, MOST_TERMS, MOST_TERMS + 1):
        for dtype in (np.float32, np.int32, np.int8, np.uint16, jnp.bfloat16):
            is_told = dtype in (np.float32, jnp.bfloat16) or (dtype, terms) == (np.int32, MOST_TERMS + 1)
            if terms == LONGEST_CHAIN + 1 or is_told:
                cases.append(Case(f"all-of-{terms}-{np.dtype(dtype)}", reduce_all, ((terms, 2),), dtype=dtype))
        cases.append(Case(f"logic-of-{terms}", reduce_logic, ((terms, 2),), dtype=np.int32))
        if terms in (1, LONGEST_CHAIN + 1, MOST_TERMS + 1):
            cases.append(Case(f"odd-of-{terms}", functools.partial(reduce_odd, terms=terms), ((terms, 2),)))
    for shape, axes in (
        ((2, 3, 2), (0, 2)),
        ((2, 8, 1), (0, 1)),
        ((4, 4, 2), (0, 1)),
        ((17, 1, 2), (1, 2)),
        ((2, 36, 20), (1, 2)),
        ((3,), ()),
    ):
        for reduction in (lax.reduce_sum, lax.reduce_max, lax.reduce_min):
            name = f"{reduction.__name__}-{shape}-{axes}"
            cases.append(Case(name, functools.partial(reduction, axes=axes), (shape,)))
    return [
        *cases,
        Case("no-terms", lambda x: (lax.reduce_sum(x, (0,)), lax.reduce_max(x, (0, 1))), ((0, 2),)),
        Case("no-results", lambda x: lax.reduce_sum(x, (1,)), ((0, 2),)),
        Case("softmax-of-16", jax.nn.softmax, ((16,),)),
        Case("mean-and-variance", lambda x: (jnp.mean(x), jnp.var(x, axis=0)), ((5, 2),)),
        Case("gradient-of-a-sum", jax.grad(lambda x: jnp.max(jnp.cumsum(x) * jnp.sum(x)))),
    ]


def reduce_all(x: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(reduction(x, (0,)) for reduction in (lax.reduce_sum, lax.reduce_max, lax.reduce_min))


def reduce_logic(x: jax.Array) -> tuple[jax.Array, ...]:
    is_set = x > 0
    whole = tuple(reduction(x, (0,)) for reduction in (lax.reduce_and, lax.reduce_or))  # of the bits
    return (*whole, lax.reduce_and(is_set, (0,)), lax.reduce_or(is_set, (0,)), jnp.sum(is_set, axis=0))


def reduce_odd(x: jax.Array, terms: int) -> tuple[jax.Array, ...]:
    """Extremes where one term is infinite or no number."""
    is_last = (jnp.arange(terms) == terms - 1)[:, None]
    odd = [jnp.where(is_last, value, x) for value in (jnp.nan, jnp.inf, -jnp.inf)]
    return tuple(part for y in odd for part in reduce_all(y)) + tuple(part for y in odd for part in reduce_all(y[::-1]))


MOVING = [*same_axes(), *reshapes(), *calls(), *written(), *fallbacks(), *outputs()]  # operations that name an axis
CASES = [*elementwise(), *MOVING]
MOVING_NAMES = {case.name for case in MOVING}
REDUCTIONS = reductions()


def check(function: Callable[..., Any], is_batched: tuple[bool, ...], arguments: Any) -> None:
    """In both modes, in one program."""

    def run(arguments):
        return pairs_of(function, is_batched, arguments)

    for actual, expected in run_quickly(run, arguments, stores=True):
        assert_close(actual, expected)


def pairs_of(
    function: Callable[..., Any], is_batched: tuple[bool, ...], arguments: Any, modes: tuple[bool, ...] = (False, True)
) -> list[tuple[Any, Any]]:
    """Results of `trailing_vmap` in each mode, and of `jax.vmap`."""
    axes = tuple(-1 if flag else None for flag in is_batched)
    expected = jax.vmap(function, in_axes=axes, out_axes=-1)(*arguments)
    return [(trailing_vmap(function, is_batched, stores=stores)(*arguments), expected) for stores in modes]


def run_quickly(function: Callable[[Any], Any], arguments: Any, stores: bool = False) -> Any:
    """Compile without optimising, which is quickest for many small operations, and run.

    With `stores` under the options by which the engine's barriers hold.
    """
    options = {"xla_backend_optimization_level": 0} | ((engine.cpu_options() or {}) if stores else {})
    return jax.jit(function).lower(arguments).compile(compiler_options=options)(arguments)


def results_of(cases: list[Case]) -> dict[str, list[Any]]:
    """Actual and expected results of cases in each of their modes, by one program; or the exception that one raised."""
    raised, arguments = {}, {case.name: case.arguments(SIZES[0]) for case in cases}

    def run_all(arguments):
        pairs = {}
        for case in cases:
            both_ways = set(batching._STORED) | set(rewriting._RULES)
            is_either = case.name in MOVING_NAMES and all(case.flags) and operations_of(case) & both_ways
            modes = (True, False) if is_either else (True,)
            try:
                pairs[case.name] = pairs_of(case.function, case.flags, arguments[case.name], modes)
            except Exception as error:
                raised[case.name] = error
        return pairs

    return run_quickly(run_all, arguments, stores=True) | raised


def test_every_operation_agrees_with_vmap() -> None:
    """Would catch a rule that names the wrong axis, forgets an unbatched operand, or changes a type; and a chain that
    is another operation than the one it stands for.
    """
    cases, failures = [*CASES, *REDUCTIONS], []
    assert len({case.name for case in cases}) == len(cases)
    for part in range(PROGRAMS):
        for name, result in results_of(cases[part::PROGRAMS]).items():
            try:
                if isinstance(result, Exception):
                    raise result
                for actual, expected in result:
                    assert_close(actual, expected)
            except Exception as failure:
                failures.append(f"{name}: {failure}")
    assert not failures, "\n".join(failures)


def test_every_rule_is_tried_above() -> None:
    """Would catch a rule added without a case; names that are no operation of this JAX cannot be tried."""
    tried = set()
    for case in [*CASES, Case("draws", lambda x: [draw(jax.random.key(0)) for draw in DRAWS.values()])]:
        tried |= operations_of(case)
    rules = batching._ELEMENTWISE | batching._SAME_AXES | set(batching._RESHAPES) | set(batching._STORED)
    rules |= set(rewriting._RULES)
    known = {primitive.name for primitive in vars(jex_core.primitives).values() if hasattr(primitive, "name")}
    assert not (rules & known) - tried


@functools.cache
def operations_of(case: Case) -> set[str]:
    shapes = [one_replicate(a) if flag else a for a, flag in zip(case.arguments(3), case.flags, strict=True)]
    return set(primitives_of(jax.make_jaxpr(case.function)(*shapes).jaxpr))


DRAWS = {
    "uniform": lambda key: jax.random.uniform(key, (3,)),
    "normal": lambda key: jax.random.normal(key, ()),
    "bits": lambda key: jax.random.bits(key, (2, 3)),
    "randint": lambda key: jax.random.randint(key, (3,), 0, 10),
    "choice": lambda key: jax.random.choice(key, 5, (3,), replace=False),
    "until": lambda key: draw_until(key),
    "split": lambda key: jax.random.split(key, 3),
    "split-in-two": lambda key: (lambda first, second: (jax.random.normal(first), second))(*jax.random.split(key)),
    "fold": lambda key: jax.random.uniform(jax.random.fold_in(key, 7)),
    "itself": lambda key: (key, jax.random.key_data(key)),
    "select": lambda key: jnp.where(jax.random.bernoulli(key), key, jax.random.fold_in(key, 1)),
    "many-keys": lambda key: jax.vmap(lambda key: jax.random.normal(key, (5,)))(jax.random.split(key, 3)),
    "as-many-keys": lambda key: jax.vmap(lambda key: jax.random.bits(key, (3,)))(jax.random.split(key, 5)),
    "many-folds": lambda key: jax.vmap(lambda n: jax.random.fold_in(key, n))(jnp.arange(3)),
    "as-many-folds": lambda key: jax.vmap(lambda n: jax.random.fold_in(key, n))(jnp.arange(5)),
    "folds-of-many-keys": lambda key: jax.vmap(jax.random.fold_in)(jax.random.split(key, 5), jnp.arange(5)),
    "fold-of-many-keys": lambda key: jax.vmap(lambda key: jax.random.fold_in(key, 2))(jax.random.split(key, 3)),
}


def draw_until(key: jax.Array) -> jax.Array:
    """A loop that takes another number of draws for every key."""

    def again(state):
        key, _ = jax.random.split(state[0])
        return key, jax.random.uniform(key)

    return lax.while_loop(lambda state: state[1] < 0.7, again, (key, jnp.float32(0)))[1]


def test_draws_from_batched_keys_agree_with_vmap() -> None:
    """Would catch a replicate that draws another replicate's numbers, or a key array moved like a number array.

    A replicate may itself have several keys: as many as there are replicates, where a mistake keeps its shape.
    """
    keys = jax.random.split(jax.random.key(3), SIZES[0])
    draw_all = lambda key: {name: draw(key) for name, draw in DRAWS.items()}  # noqa: E731
    ((actual, expected),) = run_quickly(lambda keys: pairs_of(draw_all, (True,), [keys], (True,)), keys, stores=True)
    assert_close(actual, expected)


def test_pytrees_in_and_out() -> None:
    """Would catch flags assigned to leaves instead of arguments, an empty argument, or a lost container."""
    rng, size = np.random.default_rng(0), SIZES[0]
    tree = {"a": jnp.asarray(rng.normal(size=(3, size))), "b": [jnp.asarray(rng.normal(size=size))]}
    params = (jnp.asarray(rng.normal(size=3)), {"c": 2.0, "d": 3})

    def function(tree, nothing, params):
        assert nothing == ()
        return {"sum": (tree["a"] * params[0] + tree["b"][0], None), "scaled": params[1]["c"] * tree["b"][0]}, params

    check(function, (True, True, False), (tree, (), params))


def test_double_precision_and_mixed_types() -> None:
    """Would catch a literal that is widened or narrowed when x64 is on."""
    with jax.enable_x64(True):
        for dtype in (np.float32, np.float64, np.float16, np.int16, np.int64):
            x = jnp.asarray(np.arange(1, 13).reshape(3, 4), dtype)
            check(lambda x: (2 * x, x + 1, jnp.where(x > 2, x, 1), jnp.clip(x, 2, 5), jnp.mean(x), x**2), (True,), [x])
        check(lambda x: (1.0, 2, x, jnp.where(x > 2, 1.0, 2.0)), (True,), [jnp.arange(4.0)])
        check(jax.nn.softmax, (True,), [jnp.ones((3, 4), np.float32)])


def test_inverse_error_function_is_as_good_as_single_precision() -> None:
    """Would catch a coefficient, and a logarithm that cancels near 0 or 1."""
    steps = 2.0 ** -np.arange(1, 24)
    values = np.concatenate([np.linspace(-1, 1, 200_001)[1:-1], 1 - steps, steps**3]).astype(np.float32)
    run = jax.jit(trailing_vmap(lax.erf_inv, (True,), stores=True))
    exact = scipy.special.erfinv(values.astype(float))
    np.testing.assert_allclose(run(values), exact, rtol=5e-7, atol=0)


@pytest.mark.parametrize("max_active", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_the_learning_round_is_compiled_without_moving_the_batch(max_active: int) -> None:
    """Would catch an operation of Algorithm 1 that transposes the batch: what the file exists to avoid.

    Switch routing needs no transpose at all, top-k routing only such as leave the batch last. `jax.vmap` of the same
    round does move the batch, so the search can see it.
    """
    dims = continual.Dims(max_experts=3, num_tasks=4, num_features=5, num_samples=2, max_active=max_active)
    keys = jax.random.split(jax.random.key(0), 8)
    params = jax.tree.map(jnp.asarray, continual.Params(num_experts=2))
    state = jax.eval_shape(jax.vmap(lambda key: continual.system(dims).init(key, params), out_axes=-1), keys)

    def learn(state, arrival, perturbation, params):
        return continual.learn(state, arrival, perturbation, params, max_active=max_active)

    arrival = continual.Arrival(jax.ShapeDtypeStruct((8,), np.int32), jax.ShapeDtypeStruct((5, 2, 8), np.float32))
    arguments = (state, arrival, jax.ShapeDtypeStruct((3, 8), np.float32), params)
    moves = transposes(trailing_vmap(learn, (True, True, True, False)), arguments)
    assert all(axes[-1] == len(axes) - 1 for axes in moves)
    assert not moves or max_active > 1
    if max_active == 1:
        moves = transposes(jax.vmap(learn, in_axes=(-1, -1, -1, None), out_axes=-1), arguments)
        assert any(axes[-1] != len(axes) - 1 for axes in moves)


def transposes(function: Callable[..., Any], arguments: Any) -> list[list[int]]:
    """The permutation of every transpose in the compiled program."""
    compiled = jax.jit(function).lower(*arguments).compile().as_text()
    found = re.findall(r" transpose\(.*?dimensions={([0-9,]*)}", compiled)
    assert len(found) == compiled.count(" transpose(")
    return [[int(axis) for axis in axes.split(",")] for axes in found]


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
