"""Random step functions, by the engine and by `jax.vmap` and `lax.scan` alone: do they give the same?

python tests/hostile/steps.py --seconds 3600     (--seed repeats a run)

A program is Python source: a system over a state of many types, whose step is a list of operations drawn from `TABLE`
and of control flow around more of them, each on values that are there. Of each program, in float32 and with x64:

- a batch by the engine is the batch by `plain=True`,
- every replicate by itself is that of the batch,
- two pieces, recorded otherwise and observed in part, are the uninterrupted run.

Integers and truths must be equal, and so must floats on the grid of 1/64 in [-1, 1]: whatever is decided (an order, a
branch, a cast) is decided by these. Other floats are within [-1, 1] too, and each carries a bound on what rounding may
have made of it: its operands', times how far the operation spreads them, and what the operation rounds itself.
"""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import secrets
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import moe_theory as mt

REPLICATES = 3  # as many as axes have, so that a mistaken axis keeps its shape
MOST_NUMBERS = 60  # of a value
ROUNDING = 32  # units of last place that an operation may differ by: of sums of some terms within [-1, 1]
TELLING = 1e-2  # a bound beyond which a comparison tells nothing
UNASKED = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large)
PART = 25  # programs that a seed makes
SCHEDULES = ((3, 2), (4, 4), (5, 3), (1, 1), (17, 17), (18, 9))  # rounds of a piece, record_every of pieces
FLOATS = ("float32", "float32", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "int16", "uint16", "uint32")

PRELUDE = """
from functools import partial
from typing import Any, NamedTuple
import jax, jax.numpy as jnp, numpy as np
from jax import lax
import moe_theory as mt

class State(NamedTuple):
    round: Any; clock: Any; pool: Any
    x: Any; m: Any; s: Any; h: Any  # rounded
    g: Any; q: Any  # on the grid
    n: Any; u: Any; w: Any; j: Any; b: Any; t: Any

def grid(key, shape, dtype):
    return (jax.random.randint(key, shape, -64, 65) / 64).astype(dtype)

def init(key, params):
    k = jax.random.split(key, 12)
    return State(
        jnp.int32(0), jnp.int32(3), grid(k[0], (3, 4), WIDE),
        grid(k[1], (3,), "float32"), grid(k[2], (3, 4), WIDE), grid(k[3], (), WIDE), grid(k[4], (4,), NARROW),
        grid(k[5], (4,), WIDE), grid(k[6], (3, 3), "float32"),
        jax.random.randint(k[7], (4,), -9, 10), jax.random.bits(k[8], (3,), "uint8"),
        jax.random.randint(k[9], (), 0, 1000).astype(WHOLE), jax.random.bits(k[10], (3, 4), "uint8").astype("int8"),
        jax.random.bernoulli(k[11], shape=(4,)), jax.random.bernoulli(k[0]),
    )

def scatter_add(x, i, y, mode):
    return x.at[i].add(y, mode=mode)

@jax.custom_jvp
def bent(x):
    return x * x / 2

bent.defjvp(lambda primals, tangents: (bent(*primals), primals[0] * tangents[0]))

@jax.custom_vjp
def turned(x):
    return jnp.sin(x)

turned.defvjp(lambda x: (turned(x), x), lambda x, cotangent: (jnp.cos(x) * cotangent,))

def spread(x):  # distinct integers, in an order that x decides
    return jnp.argsort(x, stable=True)

def shaped(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)

def steps_to(row):
    one = jnp.ones((), row.dtype)
    return lax.while_loop(lambda c: c[0] < row[1], lambda c: (c[0] * 2 + 1, c[1] + 1), (one, 0))[1]

def mean_of_either(is_first, x):
    return lax.cond(is_first, lambda y: jnp.mean(jnp.sin(y)), lambda y: jnp.mean(y * y) / 2, x)

def summed_draws(key, count):
    return lax.fori_loop(0, count, lambda i, c: c + jax.random.randint(jax.random.fold_in(key, i), (), 0, 9), 0)

def definite(a):  # far from singular
    a = a.astype(WIDE)
    return a @ a.T / a.shape[0] + jnp.eye(a.shape[0], dtype=WIDE)
"""


class Operation(NamedTuple):
    """An expression of its operands, what these must be, and by how much it spreads a difference between them: a
    number, SAME for what moves numbers, GRID for what leaves the grid's.
    """

    expression: str
    operands: tuple[str, ...]
    spread: float | str


SAME, GRID = "same", "grid"


def table(spread: float | str, text: str) -> list[Operation]:
    """Operations from lines of operands and an expression. An operand is a letter and a shape: f a float, g one on the
    grid, i an integer, b a truth, k a key, v any number; a capital for a type of its own. Shapes: none for any, the
    same for all; + for any but a scalar's, . for a scalar, letters for sizes, ' for any of its own. An expression with
    «one or another» in it is several.
    """
    lines = [line.split(" : ", 1) for line in text.strip().splitlines()]
    return [Operation(each, tuple(operands.split()), spread) for operands, line in lines for each in alternatives(line)]


def alternatives(line: str) -> list[str]:
    """All expressions that a line with «one or another» in it stands for."""
    before, mark, rest = line.partition("«")
    choices, _, after = rest.partition("»")
    return [before + each + after for each in choices.split()] if mark else [line]


# A few of each family: every rule of the engine is tried alone in tests/core/test_batching.py.
TABLE = [
    # Rounded floats, one by one.
    *table(
        1,
        """
        f : «jnp.sin jnp.tanh lax.logistic lax.bessel_i0e»({0})
        f : «jnp.exp2 lax.erf lax.square jax.nn.gelu»({0}) / 2
        f : jnp.log1p({0} * {0})
        f : «jnp.sqrt lax.cbrt»({0} + 2) / 2
        f : lax.erf_inv(0.6 * {0})
        f : lax.«lgamma digamma»({0} + 3) / 3
        f : lax.integer_pow({0}, 3) / 3
        f : 1 / ({0} + 2.5)
        f : «jax.nn.relu bent turned»({0})
        f : jax.pure_callback(np.negative, shaped({0}), {0}, vmap_method="sequential")
        f : jax.grad(lambda x: jnp.sum(«jnp.sin turned»(x)))({0})
        f : jax.jvp(jnp.sin, ({0},), ({0} / 2,))[1]
        f : lax.reduce_precision({0}, 8, 7)
        f : {0}.astype({float})
        f : jnp.real(jnp.exp(1j * {0}.astype("float32")))
        f f : ({0} «+ -» {1}) / 2
        f f : {0} * {1}
        f f : {0} / ({1} + 3)
        f f : jnp.arctan2({0}, {1} + 2)
        f f : jnp.«maximum minimum»({0}, {1})
        f f : lax.rem({0} / 2, 2.5 + {1})
        f F : ({0} + {1}) / 2
        f g f : jnp.where({1} < 0, {0}, {2})
        f f f : lax.clamp(jnp.minimum({0}, {1}), {2}, jnp.maximum({0}, {1}))
        f I : {0} * jnp.sign({1}).astype({0}.dtype) / 2
        f B : {0} * {1}
        f : {0} * params["rate"]
        """,
    ),
    # Rounded floats, of a row or a table: means and products divided by their number of terms.
    *table(
        1,
        """
        f+ : jnp.«mean max min»({0}, axis={axis})
        f : jnp.mean({0})
        f+ : lax.cumsum({0}, {axis}, reverse={truth}) / {0}.shape[{axis}]
        f+ : jax.nn.softmax({0}, axis={axis})
        f+ : lax.cumlogsumexp({0}, axis={axis}) / 4
        f+ : lax.cumprod({0} / 2 + 0.5, {axis}) / 4
        f+ : lax.«cummax cummin»({0}, {axis}, reverse={truth})
        fnm fm : {0} @ {1} / {0}.shape[1]
        fnm fmk : {0} @ {1} / {0}.shape[1]
        fnm fnk : lax.dot_general({0}, {1}, (((0,), (0,)), ((), ())), preferred_element_type="float32") / {0}.shape[0]
        fnm fnmk : jnp.einsum("nm,nmk->nk", {0}, {1}) / {0}.shape[1]
        fn Fm : jnp.outer({0}, {1})
        fn fm : jnp.convolve({0}, {1}) / 3
        fnm : lax.reduce_window({0}, jnp.zeros((), {0}.dtype), lax.add, (2, 2), (1, 1), "SAME") / 4
        fnm fm : jax.grad(lambda x: jnp.mean(jnp.tanh({0} @ x)))({1})
        fnm : jax.vmap(jax.grad(lambda x: jnp.mean(jnp.cos(x) * x)))({0})
        fn : jax.jacfwd(lambda x: jnp.sin(x) * jnp.mean(x))({0}) / 2
        fn : jnp.abs(jnp.fft.rfft({0}.astype("float32"))) / {0}.shape[0]
        fn Ik : lax.scan(lambda c, i: (c * 0.5 + jnp.cos({0}) * 0.25, c[i % c.shape[0]]), {0}, {1}, reverse={truth})[1]
        fnm I. : jax.grad(lambda x: jnp.sum(x[{1}] * x[0]) / 2)({0})
        fn g. : jax.grad(lambda x: mean_of_either({1} > 0, x))({0})
        fn : jax.grad(lambda x: jnp.mean(lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 0.5 + x[i] * 0.5, x)))({0})
        fnm Ik : jax.ops.segment_sum({0}, jnp.arange({0}.shape[0]) % 2, 2) / {0}.shape[0]
        """,
    ),
    *table(
        4,
        """
        fnn : jnp.linalg.cholesky(definite({0})) / 2
        fnn Fn : jnp.linalg.solve(definite({0}), {1}.astype(WIDE)) / 2
        """,
    ),
    # What moves numbers, of any type.
    *table(
        SAME,
        """
        v+ : jnp.flip({0}, {axis})
        v+ : jnp.roll({0}, {count}, axis={axis})
        vnmk : jnp.transpose({0}, (2, 0, 1))
        v : {0}.reshape(-1)
        v : {0}[None]
        v+ : {0}[«1: ::-2»]
        vnm : {0}[:, 1]
        v+ : lax.split({0}, (1, {0}.shape[{axis}] - 1), axis={axis})[1]
        v+ v+ : jnp.concatenate([{0}, {1}], axis={axis})
        v v : jnp.stack([{0}, {1}], axis=-1)
        v. : jnp.broadcast_to({0}, (3, 2))
        vn : {0}[:, None] + jnp.zeros((1, 3), {0}.dtype)
        vn : jnp.pad({0}, ({count} % 3, 1))
        vn : jnp.«tile repeat»({0}, 2)
        vnm : jnp.«diagonal tril»({0})
        v : lax.«optimization_barrier stop_gradient»({0})
        v : jnp.array({0}, copy=True)
        v B. v : jnp.where({1}, {0}, {2})
        v I. v v : lax.select_n(jnp.int32({1} % 3), {0}, {2}, {3})
        vn I. : {0}[{1}]
        vnm I. : {0}[:, {1}]
        vnm I. I. : {0}[{1}, {2}]
        v+ I' : {0}.at[{1}].get(mode="clip")
        v+ I' : {0}.at[{1}].get(mode="fill", fill_value=1)
        v+ In : jnp.take({0}, {1}, axis={axis}, mode="«wrap clip»")
        v+ I+ : jnp.take_along_axis({0}, {1} % {0}.shape[{axis}], axis={axis})
        vnm I. I. : lax.dynamic_slice({0}, ({1}.astype("int32"), {2}.astype("int32")), (2, {0}.shape[1]))
        vnm I. : lax.dynamic_slice_in_dim({0}, {1} % 5 - 2, 1, 0)
        vnm I. vm : lax.dynamic_update_index_in_dim({0}, {2}, {1}, 0)
        vnm I. vm : {0}.at[{1}].set({2}, mode="«clip drop»")
        vnm I. I. v. : {0}.at[{1}, {2}].set({3}, mode="drop")
        vnm I. vn : {0}.at[:, {1}].set({2}, mode="clip")
        vnm vnm In : {0}.at[spread({2})].set({1})
        vn vn In : {0}.at[{2}].max({1}, mode="clip")
        v I. v : lax.switch({1}, [lambda x, y: x, lambda x, y: y, lambda x, y: jnp.maximum(x, y)], {0}, {2})
        vnm I. : lax.fori_loop(0, jnp.clip({1}, 0, 5), lambda i, c: jnp.roll(c, i, 0), {0})
        vnm : lax.scan(lambda c, row: (row, c), {0}[-1], {0})[1]
        vnm In vn : jax.vmap(lambda x, i, y: x.at[i].set(y))({0}, {1}, {2})
        v k. : jax.random.permutation({1}, {0}) if {0}.ndim else {0}
        """,
    ),
    *table(
        SAME,
        """
        g+ : jnp.sort({0}, axis={axis})
        g+ : lax.top_k({0}, 2)[0]
        g g : jnp.«minimum maximum»({0}, {1})
        g+ : jnp.«max min»({0}, axis={axis})
        g : lax.while_loop(lambda c: (c[0] < 4) & jnp.any(c[1] < 0), lambda c: (c[0] + 1, jnp.abs(c[1])), (0, {0}))[1]
        """,
    ),
    # What stays on the grid, or comes to it.
    *table(
        GRID,
        """
        g : -{0}
        g : jnp.«abs sign floor»({0})
        g : lax.round({0} * 4, lax.RoundingMethod.«TO_NEAREST_EVEN AWAY_FROM_ZERO») / 4
        g : {0}.astype({float})
        g g : jnp.where({0} < {1}, 0.5, -0.25)
        g G : jnp.maximum({0}, {1})
        i : (({0} % 64) / 64).astype({float})
        b : {0}.astype({float})
        g B. : lax.cond({1}, jnp.abs, jnp.negative, {0})
        k. : (jax.random.randint({0}, (3,), -64, 65) / 64).astype({float})
        k. : (mt.draws({0}, 5, 0)[0] < 0.5).astype({float})
        """,
    ),
    # Integers and truths.
    *table(
        SAME,
        """
        i i : {0} «+ - * & | ^» {1}
        i i : lax.«div rem shift_left shift_right_logical»({0}, {1})
        i i : jnp.«maximum minimum»({0}, {1})
        i I : {0} + {1}
        i : «~ -»{0}
        i : «jnp.abs lax.population_count lax.clz»({0})
        i : {0} + params["size"]
        i : ({0} + 2 * state.clock).astype({0}.dtype)
        i : {0}.astype({integer})
        i : lax.bitcast_convert_type({0}.astype("int32"), "uint8")
        g : ({0} * 64).astype({integer}.replace("uint", "int"))
        b : {0}.astype({integer})
        b b : {0} «& | ^ <» {1}
        i i : {0} «== < >=» {1}
        i i : jnp.where({0} < {1}, {0}, 2)
        g g : {0} «!= <= >» {1}
        f : lax.is_finite({0})
        g+ I. : jnp.signbit((0 * ({0} + 0.3))[{1}])
        i+ : jnp.«sum max diff sort argsort argmin»({0}, axis={axis})
        i+ : lax.«reduce_and reduce_xor»({0}, ({axis},))
        b+ : jnp.«all any cumsum argmax»({0}, axis={axis})
        i+ : lax.«cumsum cummax»({0}, {axis}, reverse={truth})
        i+ : lax.argmax({0}, {axis}, "int8")
        i+ I+ : lax.sort(({0}, {1}), dimension={axis}, num_keys=2)[1]
        g+ : jnp.argmax(jnp.where({0} > 0.5, jnp.nan, {0}), axis={axis})
        gn g' : jnp.searchsorted(jnp.sort({0}), {1})
        in : jnp.bincount({0} % 5, length=5)
        inm im : {0} @ {1}
        in im : jnp.convolve({0}, {1})
        i+ I' : scatter_add({0}, {1}, jnp.ones((), {0}.dtype), "clip")
        i+ I. : scatter_add({0}, {1}, 3, "fill")
        inm I. im : {0}.at[{1}].mul({2}, mode="clip")
        inm In in : jax.vmap(lambda x, i, y: x.at[i].add(y, mode="drop"))({0}, {1}, {2})
        inm I. I. i. : {0}.at[{1} % 3, {2}].add({3}, mode="drop")
        i I. : lax.while_loop(lambda c: (c[0] < 5) & (c[0] < {1}), lambda c: (c[0] + 1, c[1] ^ (c[1] + 1)), (0, {0}))[1]
        in : lax.scan(lambda c, x: (c * 5 + x, c), jnp.zeros((), {0}.dtype), {0}, reverse={truth})[1]
        inm : jax.vmap(lambda row: lax.cond(row[0] > 0, lambda r: r + 1, lambda r: r * 2, row))({0})
        inm : jax.vmap(steps_to)({0} % 20)
        i : jax.pure_callback(np.bitwise_not, shaped({0}), {0}, vmap_method="expand_dims")
        i. : jnp.arange(5) * {0}
        """,
    ),
    # Draws.
    *table(
        1,
        """
        k. : jax.random.uniform({0}, (3,), {float})
        k. f : {1} * jnp.tanh(jax.random.normal({0}, {1}.shape, {1}.dtype))
        k. : jnp.tanh(jax.random.«laplace logistic»({0}, (3,)))
        k. : jnp.tanh(jax.random.gamma({0}, 1.5, (3,)))
        k. : mt.draws({0}, 4, 2)[0]
        k. : jnp.tanh(mt.draws({0}, 3, 3, {wide})[1])
        k. : jnp.tanh(jax.vmap(lambda key: mt.draws(key, 1, 3)[1])(jax.random.split({0}, 3)))
        k. : lax.scan(lambda c, _: (jax.random.split(c)[0], jax.random.uniform(c)), {0}, length=3)[1]
        k. B. : lax.cond({1}, lambda: jax.random.uniform({0}, (3,)), lambda: jnp.zeros(3))
        kn : jax.vmap(jax.random.uniform)({0})
        """,
    ),
    *table(
        SAME,
        """
        k. I. : jax.random.fold_in({0}, {1})
        k. : jax.random.fold_in({0}, state.round)
        k. : jax.random.split({0})[1]
        k. : jax.random.split({0}, 3)
        kn I. : {0}[{1} % {0}.shape[0]]
        k. : jax.random.key_data({0})
        k. I. : jax.random.wrap_key_data(jax.random.key_data({0}) + jnp.uint32({1} % 3))
        k. : jax.random.bits({0}, (3,), {unsigned})
        k. : jax.random.bernoulli({0}, 0.5, (4,))
        k. i : jax.random.randint({0}, {1}.shape, 0, 10, {integer})
        k. : jax.random.choice({0}, 5, (3,), replace=False)
        k. : jax.random.poisson({0}, 2.0, (3,))
        kn : jax.vmap(jax.random.bits)({0})
        k. I. : summed_draws({0}, ({1} % 4).astype("int32"))
        """,
    ),
]
FORMS = ("cond", "switch", "scan", "fori", "while", "vmap", "jit", "remat")


class Value(NamedTuple):
    """A variable of a program."""

    name: str
    array: Any  # its shape and type
    is_exact: bool  # no rounding in it

    @property
    def kind(self) -> str:
        if jnp.issubdtype(self.array.dtype, jax.dtypes.prng_key):
            return "k"
        return {"b": "b", "i": "i", "u": "i"}.get(np.dtype(self.array.dtype).kind, "g" if self.is_exact else "f")

    @property
    def form(self) -> tuple[Any, ...]:
        return self.array.shape, self.array.dtype


class Program(NamedTuple):
    """A system as Python source, with what rounding may make of its results."""

    step: str
    is_wide: bool  # x64
    rounds: int  # of a piece, of which there are two
    record_every: int  # in pieces
    bounds: list[list[float]]  # by round: of the leaves of the state after it and of its info
    operations: list[str]

    @property
    def source(self) -> str:
        wide, whole, narrow = ("float64", "int64", "float16") if self.is_wide else ("float32", "int32", "bfloat16")
        return f"WIDE, WHOLE, NARROW = {wide!r}, {whole!r}, {narrow!r}\n{PRELUDE}\n{PARAMS}\n{self.step}"

    @property
    def report(self) -> str:
        """A script that shows both results."""
        return f"""import jax
jax.config.update("jax_enable_x64", {self.is_wide})
{self.source}
both = lambda state, info: (state, info)
for plain in (False, True):
    run = mt.simulate_batch(
        mt.System(init, step), mt.root_key(0), {REPLICATES}, PARAMS, {2 * self.rounds}, observe=both, plain=plain
    )
    print(jax.tree.map(np.asarray, run))
# pieces of {self.rounds} rounds, record_every={self.record_every}
"""


PARAMS = 'PARAMS = {"rate": jnp.asarray(0.375, WIDE), "size": jnp.int32(3)}'


class Rounding(NamedTuple):
    """Of a variable what rounding may have made of it: the largest of its operands' or, with `spread`, that times their
    sum and `own`.
    """

    name: str
    operands: Sequence[str]
    spread: float | None = None
    own: float = 0.0


class _Writer:
    """Writes a step, drawing every choice."""

    def __init__(self, choose: Callable[[int], int], is_wide: bool) -> None:
        self.choose = choose
        self.choices = {
            "float": [*FLOATS, "float64"] if is_wide else FLOATS,
            "integer": [*INTEGERS, "int64", "uint64"] if is_wide else INTEGERS,
            "unsigned": ["uint8", "uint16", "uint32", *(["uint64"] if is_wide else [])],
            "wide": ["float64" if is_wide else "float32"],
        }
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.used: set[str] = set()
        self.operations: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def pick(self, values: Sequence[Value]) -> Value | None:
        """One of the latest."""
        latest = values[::-1][:12]
        return latest[self.choose(len(latest))] if latest else None

    def operands(self, wanted: Iterable[str], values: list[Value]) -> list[Value] | None:
        sizes: dict[str, Any] = {}
        types: dict[str, Any] = {}
        found = []
        for one in wanted:
            letter, shape = one[0], one[1:]
            fitting = [
                value
                for value in values
                if value.kind in _KINDS[letter.lower()]
                and (letter.isupper() or value.form[1] == types.get(letter, value.form[1]))
                and _fits(shape, value.form[0], sizes) is not None
            ]
            if (value := self.pick(fitting)) is None:
                return None
            sizes = _fits(shape, value.form[0], sizes) or sizes
            types[letter] = value.form[1]
            found.append(value)
        return found

    def operation(self, values: list[Value]) -> list[Rounding]:
        """Write one of the table, if there are operands for it."""
        # In two digits, as Hypothesis prefers small numbers of a wide range.
        operation = TABLE[(16 * self.choose(-(-len(TABLE) // 16)) + self.choose(16)) % len(TABLE)]
        operands = self.operands(operation.operands, values)
        if operands is None:
            return []
        rank = len(operands[0].form[0])
        expression = operation.expression
        words = {
            "axis": str(self.choose(max(rank, 1))),
            "count": str(self.choose(4)),
            "truth": str(self.choose(2) == 1),
        }
        for name, kinds in self.choices.items():
            if f"{{{name}}}" in expression:
                words[name] = repr(kinds[self.choose(len(kinds))])
        for name, word in words.items():
            expression = expression.replace(f"{{{name}}}", word)
        arrays = [each.array for each in operands]
        types = tuple((array.shape, array.dtype, bool(getattr(array, "weak_type", False))) for array in arrays)
        array = _outcome(expression, types, self.choices["wide"][0])
        if array is None:
            return []
        is_rounded = isinstance(operation.spread, int | float) or (
            operation.spread == SAME and any(not value.is_exact for value in operands)
        )
        value = Value(self.fresh(), array, not is_rounded or not _is_float(array))
        if operation.spread == SAME and _is_float(array) and not any(_is_float(each.array) for each in operands):
            return []  # integers whose common type is a float
        for place, each in enumerate(operands):
            expression = expression.replace(f"{{{place}}}", each.name)
        self.say(f"{value.name} = {expression}")
        self.used |= {each.name for each in operands}
        self.operations.append(operation.expression)
        values.append(value)
        names = [each.name for each in operands]
        if value.is_exact:
            return [Rounding(value.name, ())]
        if operation.spread == SAME:
            return [Rounding(value.name, names)]
        own = ROUNDING * float(jnp.finfo(array.dtype).eps)
        return [Rounding(value.name, names, float(operation.spread), own)]

    def body(self, head: str, arguments: list[Value], values: list[Value], like: Value | None, end: str = "{}") -> Any:
        """Write a function; the value that it returns, like another where that is given, and its rounding."""
        self.say(f"{head}:")
        self.depth += 1
        inner = [*values, *arguments]
        many = len(inner)
        rounding = self.block(inner, 1 + self.choose(4))
        if like is None:
            fitting = [value for value in inner[many:] if value.kind != "k"] or inner[len(values) : many]
        else:
            fitting = [arguments[0]] + [
                value
                for value in inner[many:]
                if value.form == like.form and value.is_exact >= like.is_exact and not value.array.weak_type
            ]
        result = fitting[-1 - self.choose(len(fitting))] if like is None else fitting[self.choose(len(fitting))]
        self.used.add(result.name)
        self.say(f"return {end.format(result.name)}")
        self.depth -= 1
        return result, rounding

    def form(self, values: list[Value]) -> list[Rounding]:
        """Write control flow around some operations."""
        form = FORMS[self.choose(len(FORMS))]
        numbers = [value for value in values if value.kind != "k" and not value.array.weak_type]
        given = self.pick([value for value in numbers if form not in ("vmap",) or value.form[0]])
        if given is None:
            return []
        self.used.add(given.name)
        self.operations.append(form)
        place = self.fresh("x")
        argument = given._replace(name=place)
        result = given._replace(name=self.fresh())
        functions = [self.fresh("f")]

        entering = [Rounding(place, [given.name])]

        def scalar(kind: str) -> str:
            found = self.pick([value for value in values if value.kind == kind and value.form[0] == ()])
            assert found is not None  # the state has one
            self.used.add(found.name)
            return found.name

        if form in ("cond", "switch"):
            functions = [self.fresh("f") for _ in range(2 if form == "cond" else 3)]
            branches = [self.body(f"def {name}({place})", [argument], values, given) for name in functions]
            chosen = scalar("b" if form == "cond" else "i")
            names = ", ".join(functions) if form == "cond" else f"[{', '.join(functions)}]"
            self.say(f"{result.name} = lax.{form}({chosen}, {names}, {given.name})")
            made = [result]
            rounding = [step for _, inner in branches for step in inner]
            rounding.append(Rounding(result.name, [returned.name for returned, _ in branches]))
        elif form in ("fori", "while"):
            number = Value(self.fresh("i"), jax.ShapeDtypeStruct((), jnp.int32, weak_type=False), True)
            times = f"{scalar('i')} % 4" if self.choose(2) else str(self.choose(4))
            if form == "fori":
                head, end = f"def {functions[0]}({number.name}, {place})", "{}"
                call = f"lax.fori_loop(jnp.int32(0), jnp.int32({times}), {functions[0]}, {given.name})"
            else:
                head, end = f"def {functions[0]}({number.name}, {place})", f"{number.name} + 1, {{}}"
                call = (
                    f"lax.while_loop(lambda c: c[0] < {times}, lambda c: {functions[0]}(*c), "
                    f"(jnp.int32(0), {given.name}))[1]"
                )
            returned, inner = self.body(head, [argument, number], values, given, end)
            self.say(f"{result.name} = {call}")
            made = [result]
            rounding = 3 * [*inner, Rounding(place, [place, returned.name])]
            rounding.append(Rounding(result.name, [place]))
        elif form == "scan":
            rows = self.pick([value for value in numbers if value.form[0]])
            assert rows is not None
            self.used.add(rows.name)
            row = rows._replace(name=self.fresh("e"), array=_resized(rows.array, rows.form[0][1:]))
            head = f"def {functions[0]}({place}, {row.name})"
            returned, inner = self.body(head, [argument, row], values, given, f"{{}}, {place}")
            second = given._replace(name=self.fresh(), array=_resized(given.array, (rows.form[0][0], *given.form[0])))
            reverse = bool(self.choose(2))
            self.say(
                f"{result.name}, {second.name} = lax.scan({functions[0]}, {given.name}, {rows.name}, reverse={reverse})"
            )
            made = [result, second]
            rounding = rows.form[0][0] * [*inner, Rounding(place, [place, returned.name])]
            rounding = [Rounding(row.name, [rows.name]), *rounding, *(Rounding(each.name, [place]) for each in made)]
        else:
            axis, shape = -1, given.form[0]
            if form == "vmap":
                axis = self.choose(len(shape))
                argument = argument._replace(array=_resized(given.array, (*shape[:axis], *shape[axis + 1 :])))
            returned, inner = self.body(f"def {functions[0]}({place})", [argument], values, None)
            array = returned.array
            if form == "vmap":
                array = _resized(array, (shape[axis], *array.shape))
            call = {
                "vmap": f"jax.vmap({functions[0]}, in_axes={axis})",
                "jit": f"jax.jit({functions[0]})",
                "remat": f"jax.checkpoint({functions[0]})",
            }[form]
            self.say(f"{result.name} = {call}({given.name})")
            result = returned._replace(name=result.name, array=array)
            made = [result]
            rounding = [*inner, Rounding(result.name, [returned.name])]
        values += [value for value in made if np.prod(value.form[0]) <= MOST_NUMBERS]
        return [*entering, *rounding]

    def block(self, values: list[Value], count: int) -> list[Rounding]:
        """Write so many operations, some of them control flow."""
        rounding = []
        for _ in range(count):
            way = self.choose(12) if self.depth < 4 else self.choose(11)
            rounding += [] if way == 0 else self.form(values) if way == 11 else self.operation(values)
        return rounding


_KINDS = {"f": "fg", "g": "g", "i": "i", "b": "b", "k": "k", "v": "fgib"}


def _is_float(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jnp.floating)


def _resized(array: Any, shape: Sequence[int]) -> Any:
    return jax.ShapeDtypeStruct(tuple(shape), array.dtype, weak_type=array.weak_type)


def _fits(pattern: str, shape: tuple[int, ...], sizes: dict[str, Any]) -> dict[str, Any] | None:
    """The sizes bound so far and by this shape; None if it does not fit the pattern."""
    if pattern in ("'", "+'"):
        return sizes if shape or pattern == "'" else None
    if pattern in ("", "+"):
        fits = sizes.get("*", shape) == shape and (shape or not pattern)
        return {**sizes, "*": shape} if fits else None
    letters = pattern.replace(".", "")
    if len(letters) != len(shape):
        return None
    known = dict(sizes)
    for letter, size in zip(letters, shape, strict=True):
        if known.setdefault(letter, size) != size:
            return None
    return known


@functools.cache
def _names(wide: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    whole, narrow = ("int64", "float16") if wide == "float64" else ("int32", "bfloat16")
    exec(f"WIDE, WHOLE, NARROW = {wide!r}, {whole!r}, {narrow!r}\n{PRELUDE}\n{PARAMS}", found)
    return found


@functools.cache
def _context(wide: str) -> tuple[Any, Any]:
    """Shapes of the state and the parameters of all programs of a precision."""
    found = _names(wide)
    params = jax.eval_shape(lambda: found["PARAMS"])
    return jax.eval_shape(found["init"], jax.eval_shape(lambda: jax.random.key(0)), params), params


@functools.lru_cache(10_000)
def _outcome(expression: str, operands: tuple[Any, ...], wide: str) -> Any:
    """Shape and type of an expression of such operands; None if there is none, or not one array, or a large one."""
    letters = [f"a{place}" for place in range(len(operands))]
    for place, letter in enumerate(letters):
        expression = expression.replace(f"{{{place}}}", letter)
    function = eval(f"lambda state, params, {', '.join(letters)}: {expression}", _names(wide))
    arrays = [jax.ShapeDtypeStruct(shape, dtype, weak_type=weak) for shape, dtype, weak in operands]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = jax.eval_shape(function, *_context(wide), *arrays)
    except Exception as failure:  # an operation that is not for this type or shape
        refusals[type(failure).__name__, expression] += 1
        return None
    is_one = hasattr(found, "dtype") and 0 < np.prod(found.shape) <= MOST_NUMBERS and len(found.shape) < 4
    return found if is_one else None


refusals: Counter[tuple[str, str]] = Counter()


@st.composite
def programs(draw: Callable[..., Any], size: int = 40) -> Program:
    """Programs of about so many operations. A choice of 0 leaves an operation out."""
    is_wide = draw(st.booleans())
    rounds, record_every = draw(st.sampled_from(SCHEDULES))
    with precision(is_wide):
        writer = _Writer(lambda count: draw(st.integers(0, count - 1)) if count > 1 else 0, is_wide)
        wide = writer.choices["wide"][0]
        state, _ = _context(wide)
        rounded = ("x", "m", "s", "h")
        values = [Value("key", jax.eval_shape(lambda: jax.random.key(0)), True)]
        values += [
            Value(name, array, name not in rounded) for name, array in zip(state._fields[2:], state[2:], strict=True)
        ]
        start = len(values)
        rounding = writer.block(values, size)
        made = values[start:]
        after, sources = [], {}
        for name in state._fields[3:]:
            own = next(value for value in values if value.name == name)
            fitting = [value for value in made if value.form == own.form and value.is_exact >= own.is_exact]
            chosen = [own, *fitting][writer.choose(len(fitting) + 1)]
            writer.used.add(chosen.name)
            sources[name] = chosen.name
            after.append(chosen.name if own.is_exact or chosen is own else f"{chosen.name} / 2")
        # What nothing else uses is shown, or nobody would miss it; one value more, or an info may be empty.
        shown = [value for value in made if value.name not in writer.used and value.kind != "k"] + values[1:2]
    names = ", ".join(state._fields[2:])
    step = "\n".join(
        [
            "def step(key, state, params):",
            f"    {names} = state[2:]",
            *writer.lines,
            f"    after = State(state.round + 1, state.clock + 1, pool, {', '.join(after)})",
            f"    return after, ({', '.join(value.name for value in shown)},)",
        ]
    )
    return Program(
        step, is_wide, rounds, record_every, _bounds(rounding, state, sources, shown, 2 * rounds), writer.operations
    )


def _bounds(
    rounding: list[Rounding], state: Any, sources: dict[str, str], shown: list[Value], rounds: int
) -> list[list[float]]:
    """By round what rounding may make of every leaf of the state and of the info."""
    now: dict[str, float] = {}
    found = []
    for _ in range(rounds):
        for step in rounding:
            before = [now.get(name, 0.0) for name in step.operands]
            now[step.name] = max(before, default=0.0) if step.spread is None else step.spread * sum(before) + step.own
        kept = {name: now.get(name, 0.0) for name in state._fields}
        for name, source in sources.items():
            eps = float(jnp.finfo(getattr(state, name).dtype).eps) if _is_float(getattr(state, name)) else 0.0
            moved = now.get(source, 0.0)
            kept[name] = moved if source == name or moved == 0.0 else moved / 2 + eps
        infos = [now.get(value.name, 0.0) for value in shown]
        now = {name: min(value, 1e9) for name, value in kept.items()}
        found.append([*kept.values(), *infos])
    return found


@contextlib.contextmanager
def precision(is_wide: bool) -> Iterator[None]:
    """With x64 or without, in all threads: callbacks run in others, which a context of JAX's does not reach."""
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", is_wide)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


class DifferenceError(AssertionError):
    """Two runs of a program differ."""


@dataclasses.dataclass
class Counts:
    """What was compared so far."""

    programs: int = 0
    wide: int = 0
    operations: Counter[str] = dataclasses.field(default_factory=Counter)
    primitives: Counter[str] = dataclasses.field(default_factory=Counter)
    comparisons: int = 0  # of leaves: arrays of all recorded rounds and replicates
    untold: int = 0  # of them floats whose bound tells nothing
    faults: int = 0

    def __str__(self) -> str:
        return (
            f"{self.programs:,} programs ({self.wide:,} with x64), {self.operations.total():,} operations "
            f"({len(self.operations)} kinds), {len(self.primitives)} primitives, {self.comparisons:,} arrays compared "
            f"({self.untold:,} of them in vain: rounding alone may exceed {TELLING}), {self.faults} faults"
        )


def both(state: Any, info: Any) -> Any:
    return state, info


def half(state: Any, info: Any) -> Any:
    return state, info[::2]


def check(program: Program, counts: Counts) -> None:
    """Run a program in all ways. Raises: DifferenceError, with the program, where two differ by more than rounding."""
    counts.programs += 1
    counts.wide += program.is_wide
    counts.operations.update(program.operations)
    with precision(program.is_wide):
        wide = "float64" if program.is_wide else "float32"
        found, begun = dict(_names(wide)), _begun(wide)
        exec(compile(program.step, "<program>", "exec"), found)
        system, root, rounds = mt.System(found["init"], found["step"]), mt.root_key(0), 2 * program.rounds
        params = found["PARAMS"]
        counts.primitives += primitives_of(jax.make_jaxpr(system.step)(root, *_context(wide)).jaxpr)
        run = functools.partial(mt.simulate_batch, system, root, REPLICATES, params)
        whole = _arrays(run(rounds, observe=both, state=begun))[1]
        expected = _arrays(run(rounds, observe=both, state=begun, plain=True))[1]
        every = np.arange(rounds)
        _compare("the batch and plain=True", program, whole, expected, every, counts)
        for replicate in range(REPLICATES):
            own, of_batch = jax.tree.map(lambda leaf, place=replicate: leaf[..., place], (begun, whole))
            alone = mt.simulate(system, jax.random.fold_in(root, replicate), params, rounds, observe=both, state=own)
            _compare("a replicate alone and in the batch", program, _arrays(alone)[1], of_batch, every, counts)
        recorded, state = mt.recorded_rounds(program.rounds, program.record_every) - 1, begun
        for name, start in (("first", 0), ("second", program.rounds)):
            state, records = run(program.rounds, program.record_every, observe=half, state=state)
            places = start + recorded
            states, infos = jax.tree.map(lambda leaf, own=places: leaf[own], whole)
            expected = states, infos[::2]
            _compare(f"the {name} piece and the whole", program, _arrays(records), expected, places, counts, 2)
            last = jax.tree.map(lambda leaf: leaf[None], _arrays(state))
            states = jax.tree.map(lambda leaf: leaf[-1:], states)
            _compare(f"the state after the {name} piece", program, (last, ()), (states, ()), places[-1:], counts)


@functools.cache
def _begun(wide: str) -> Any:
    """A batch of states to begin from, the same for all programs of a precision, so that none compiles its `init`."""
    found = _names(wide)
    keys = jax.random.split(mt.root_key(1), REPLICATES)
    return _arrays(jax.vmap(lambda key: found["init"](key, found["PARAMS"]), out_axes=-1)(keys))


def _arrays(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def _compare(what: str, program: Program, one: Any, other: Any, rounds: Any, counts: Counts, every: int = 1) -> None:
    """Compare records (rounds, ...) of state and info, of which every so many leaves were observed."""
    names = [f"state.{name}" for name in other[0]._fields]
    names += [f"info[{every * place}]" for place in range(len(other[1]))]
    bounds = np.array([program.bounds[place] for place in rounds])
    bounds = np.concatenate([bounds[:, : len(other[0])], bounds[:, len(other[0]) :: every]], axis=1)[:, : len(names)]
    leaves = jax.tree.leaves(one), jax.tree.leaves(other), bounds.T
    for name, left, right, bound in zip(names, *leaves, strict=True):
        counts.comparisons += 1
        counts.untold += bound.max() > TELLING
        if left.dtype != right.dtype or left.shape != right.shape:
            told = f"{left.dtype} {left.shape} and {right.dtype} {right.shape}"
        elif not _is_float(left):
            told = "" if np.array_equal(left, right) else "differ"
        else:
            left, right = left.astype(np.float64), right.astype(np.float64)
            gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
            allowed = bound.reshape(-1, *[1] * (gap.ndim - 1))
            told = "" if np.all(gap <= allowed) else f"differ by {np.nanmax(gap):.3g}, bound {bound.max():.3g}"
            if not told and not np.all(np.isfinite(right)):
                told = "hold what is not finite: no fault of the engine, but of an operation of the table"
        if told:
            raise DifferenceError(f"{what}: {name} {told}\n{left}\n{right}\n{program.report}")


def primitives_of(program: Any) -> Counter[str]:
    """How often each primitive occurs in a program, and in those inside it."""
    found = Counter(equation.primitive.name for equation in program.eqns)
    for value in (value for equation in program.eqns for value in equation.params.values()):
        for inner in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found += primitives_of(inner)
    return found


def fuzz(seconds: float, seed: int, size: int = 40, number: int | None = None, shrink: bool = False) -> Counts:
    """Check programs for so long, or so many; print each that shows a fault, with `shrink` as small as it could be."""
    counts, began = Counts(), time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - began > seconds or (number is not None and counts.programs >= number)

    for part in itertools.count(seed):
        if is_over():
            break
        phases = [hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if shrink else [])]

        @hypothesis.seed(part)
        @hypothesis.settings(
            database=None, deadline=None, max_examples=PART, phases=phases, suppress_health_check=UNASKED
        )
        @hypothesis.given(programs(size))
        def check_some(program: Program) -> None:
            if not is_over():
                check(program, counts)

        try:
            check_some()
        except Exception as failure:
            counts.faults += 1
            print(f"--- in part {part}, with --seed {part} --shrink as small as it can be:", flush=True)
            traceback.print_exception(failure, file=sys.stdout)
        jax.clear_caches()
        print(f"{time.monotonic() - began:.0f} s, from seed {seed} on: {counts}", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--number", type=int, help="programs at most")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="default: another each time")
    parser.add_argument("--shrink", action="store_true", help="make the first program of a part that fails small")
    parser.add_argument("--size", type=int, default=40, help="operations of a program, about")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    sys.exit(bool(fuzz(asked.seconds, asked.seed, asked.size, asked.number, asked.shrink).faults))


if __name__ == "__main__":
    main()
