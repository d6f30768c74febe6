"""Instances for the paper's statements, as systems whose only round draws an instance.

`cells`, `learned_cells`, `dense` and `coin` draw a sample, with the ramp loss l(y, f) = clip((1 - y f)/2, 0, 1). Labels
are fair coins, independent of the inputs. So L_D(f) = 1/2 for every f, because l(1, f) + l(-1, f) = 1. The gap, sup_f
|L_S(f) - L_D(f)|, is exact where the best f on a sample is known in closed form.

`linear_router`, `function_classes`, `labelings` and `lone_points` enumerate every supremum and mean over signs.

Shapes: F functions, m samples, n points, L labels.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import constraints
from moe_theory.core.numerics import Numbers, Scalar
from moe_theory.core.random import normals, uniforms
from moe_theory.core.system import System
from moe_theory.generalization import model
from moe_theory.generalization.model import Dims, Params

DENSE_LOGIT = 16.0  # difference of the two logits of `dense`, with gates 1e-7 from 0 and 1
NUM_SIGNS = 16  # sign vectors per sample, which cost less than another sample
LOG_SCALES = (-1.5, 2.5)  # range of the functions' log scale, at whose ends the ramp clips nothing or most values
NUM_MIXTURES = 16  # random convex combinations of a class of `function_classes`
NUM_ROUTERS = 256  # random linear routers of `labelings`
NUM_INPUTS = 2**32  # inputs among which `lone_points` draws
NUM_LONE = 4  # inputs that a router of `lone_points` can send to one expert, at most


class State(NamedTuple):
    round: Int[Array, ""]  # rounds done


def one_round(draw: Callable[[Dims, Key[Array, ""], Params], NamedTuple]) -> Callable[[Dims], System]:
    """Make a system whose every round draws a new instance with `draw`. Equal sizes give the same object."""

    @functools.lru_cache
    def build(dims: Dims) -> System:
        def init(key: Key[Array, ""], params: Params) -> State:
            del key
            constraints.check(params, dims)
            return State(round=jnp.zeros((), jnp.int32))

        def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, NamedTuple]:
            return State(round=state.round + 1), draw(dims, key, params)

        return System(init, step)

    return build


class Cells(NamedTuple):
    """Observables of `cells`. S_j sums the n_j labels in cell j, and S'_j does so for the ghost sample."""

    gap: Float[Array, ""]  # sup_f |L_S - L_D| = sum_j |S_j| / (2m)
    paired_gap: Float[Array, ""]  # phi(S, S') of (17) = sup_f |L_S - L_S'| = sum_j |S_j - S'_j| / (2m)
    masked: Float[Array, ""]  # sup_f sum_i y_i f(x_i) / m = sum_j |S_j| / m, whose mean is R_m(F|mu)
    lone: Float[Array, ""]  # |sum_i y_i| / m, whose mean is R_m(H)
    memorised: Float[Array, ""]  # sup_f (L_D - L_S) = sum_j max(1/T - n_j/m, 0) if all labels were +1, without noise


class Gap(NamedTuple):
    gap: Float[Array, ""]  # sup_f |L_S - L_D|, for `lone_points` sup_f |L_S - L_S'| over all masks


class Coin(NamedTuple):
    risk: Float[Array, ""]  # L_S
    ghost: Float[Array, ""]  # L_S' of another sample


@one_round
def cells(dims: Dims, key: Key[Array, ""], params: Params) -> Cells:
    """Return counterexample A: a fixed router with k = 1, and experts +1 or -1 in cells floor(T x)."""
    inputs, labels = draw_cells(key, dims.max_samples)
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    labels = labels * is_drawn[:, None]
    cell = cell_of(inputs, params.num_experts)

    def sum_by_cell(cell_of_input: Array, values: Array) -> Array:
        return jnp.zeros(dims.max_experts, values.dtype).at[cell_of_input].add(values)

    sums = sum_by_cell(cell[:, 0], labels[:, 0])
    ghost_sums = sum_by_cell(cell[:, 1], labels[:, 1])
    counts = sum_by_cell(cell[:, 0], is_drawn.astype(labels.dtype))
    samples = jnp.asarray(params.num_samples, labels.dtype)
    masked = jnp.sum(jnp.abs(sums)) / samples
    exists = jnp.arange(dims.max_experts) < params.num_experts
    shortfall = jnp.maximum(1 / jnp.asarray(params.num_experts, labels.dtype) - counts / samples, 0)
    return Cells(
        gap=masked / 2,
        paired_gap=jnp.sum(jnp.abs(sums - ghost_sums)) / (2 * samples),
        masked=masked,
        lone=jnp.abs(jnp.sum(labels[:, 0])) / samples,
        memorised=jnp.sum(jnp.where(exists, shortfall, 0)),
    )


@one_round
def learned_cells(dims: Dims, key: Key[Array, ""], params: Params) -> Gap:
    """Return counterexample B: a learned linear router with k = 1, and experts in a ball of an RKHS.

    The gap is sum_j n_j min(1, B/sqrt(n_j)) / (2m) with B = sqrt(m/T), which is 1/2 if T divides m. Router lines cut
    the z axis at the sample's quantiles.
    """
    coordinate, _ = draw_learned(key, dims.max_samples)
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    padded = jnp.where(is_drawn, coordinate, jnp.inf)
    # Numbers that are at least 0 have the same order as their bits, read as integers.
    bits = jax.lax.bitcast_convert_type(padded, jnp.int32 if padded.dtype == jnp.float32 else jnp.int64)
    ordered = jax.lax.bitcast_convert_type(jnp.sort(bits), padded.dtype)
    samples = jnp.asarray(params.num_samples, jnp.int32)
    experts = jnp.asarray(params.num_experts, jnp.int32)
    cut = jnp.minimum(jnp.arange(dims.max_experts + 1, dtype=jnp.int32), experts)
    # Inputs up to cut j if none tie: floor(j m/T), without overflow of 32 bits.
    rank = cut * (samples // experts) + cut * (samples % experts) // experts
    # An interval ends at its last input, and includes all inputs that tie with it.
    last = jnp.where(rank > 0, ordered[jnp.maximum(rank - 1, 0)], -jnp.inf)
    num_up_to_cut = jnp.searchsorted(ordered, last, side="right")
    counts = jnp.diff(num_up_to_cut).astype(coordinate.dtype)
    return Gap(gap=ball_gap(counts, samples.astype(counts.dtype) / experts, samples))


@one_round
def dense(dims: Dims, key: Key[Array, ""], params: Params) -> Gap:
    """Return counterexample C for any k = T >= 2: one expert is +1, the others are -1, and any router is allowed.

    With logits `DENSE_LOGIT` apart the gap is 1/2 - 1e-7.
    """
    labels = draw_labels(key, dims.max_samples)
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    samples = jnp.asarray(params.num_samples, labels.dtype)
    return Gap(gap=0.5 - jnp.sum(dense_losses(labels) * is_drawn) / samples)


@one_round
def coin(dims: Dims, key: Key[Array, ""], params: Params) -> Coin:
    """Return a class of one function, whose loss is 0 or 1 with probability 1/2 each."""
    (units,) = draws(uniforms, key, (dims.max_samples, 2))
    losses = (_fair_labels(units) + 1) / 2
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    means = jnp.sum(losses * is_drawn[:, None], axis=0) / jnp.asarray(params.num_samples, losses.dtype)
    return Coin(risk=means[0], ghost=means[1])


def draw_cells(key: Key[Array, ""], count: int) -> tuple[Float[Array, "m 2"], Float[Array, "m 2"]]:
    (units,) = draws(uniforms, key, (count, 4))
    return units[:, :2], _fair_labels(units[:, 2:])


def draw_learned(key: Key[Array, ""], count: int) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Draw the coordinate z of inputs for the router of `learned_cells`, uniform on [0, 1), and labels."""
    (units,) = draws(uniforms, key, (count, 2))
    return units[:, 0], _fair_labels(units[:, 1])


def draw_labels(key: Key[Array, ""], count: int) -> Float[Array, " m"]:
    (units,) = draws(uniforms, key, (count,))
    return _fair_labels(units)


def cell_of(inputs: Float[Array, "*shape"], num_experts: Int[Scalar, ""]) -> Int[Array, "*shape"]:
    cell = jnp.floor(inputs * num_experts).astype(jnp.int32)
    return jnp.minimum(cell, jnp.asarray(num_experts, jnp.int32) - 1)  # a product may be rounded up to T


def ball_gap(
    counts: Float[Numbers, " T"], squared_radius: Float[Scalar, ""], num_samples: Float[Scalar, ""]
) -> Float[Array, ""]:
    """Return sum_j n_j min(1, B/sqrt(n_j)) / (2m), the gap of experts in a ball with n_j orthonormal inputs each.

    The loss of an output f_i is convex in y_i f_i <= 1, and 0 beyond. So under sum_i f_i^2 <= B^2 the best outputs are
    equal: y_i f_i = min(1, B/sqrt(n_j)).
    """
    margin = jnp.minimum(1, jnp.sqrt(squared_radius / jnp.maximum(counts, 1)))
    return jnp.sum(counts * margin) / (2 * num_samples)


def dense_losses(labels: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return ramp losses of outputs 2 a - 1, with the gate a = 1/(1 + exp(-y L)) of the expert +1.

    Its logit is y L, and the T - 1 experts -1 have the logit -log(T - 1), so that their weights sum to 1.
    """
    return (1 - labels * (2 * jax.nn.sigmoid(labels * DENSE_LOGIT) - 1)) / 2


class Capacity(NamedTuple):
    """Observables of `linear_router`, of which the first two have the means R_m(F|a) and R_m(H)."""

    routed: Float[Array, ""]  # mean of sup_f (1/m) sum_i sigma_i f(x_i) over T experts, for a given router
    lone: Float[Array, ""]  # the same for one expert, B |sum_i sigma_i x_i| / m
    mean_square_gate: Float[Array, ""]  # mean over the sample of |a(x_i)|^2


@one_round
def linear_router(dims: Dims, key: Key[Array, ""], params: Params) -> Capacity:
    """Return linear experts in a ball and a linear router, with their exact capacity for a sample's signs.

    Inputs are uniform on the unit sphere, and router rows on the sphere of radius W. Each expert points along its own
    sum. So the supremum over |w_j| <= B of (1/m) sum_i sigma_i sum_j a_j(x_i) w_j.x_i is (B/m) sum_j |sum_i sigma_i
    a_j(x_i) x_i|.
    """
    inputs, rows = draws(normals, key, (dims.max_samples, dims.num_features), (dims.max_experts, dims.num_features))
    (units,) = draws(uniforms, key, (NUM_SIGNS, dims.max_samples))
    features = _on_sphere(inputs)
    is_drawn = (jnp.arange(dims.max_samples) < params.num_samples).astype(features.dtype)
    rows = params.router_norm * _on_sphere(rows)
    gates = model.gates(features @ rows.T, params.num_active, params.num_experts)
    signs = _fair_labels(units) * is_drawn
    samples = jnp.asarray(params.num_samples, features.dtype)
    weighted = (gates[:, :, None] * features[:, None, :]).reshape(dims.max_samples, -1)  # a_j(x_i) x_i
    sums = (signs @ weighted).reshape(NUM_SIGNS, dims.max_experts, dims.num_features)
    return Capacity(
        routed=params.expert_norm * jnp.mean(jnp.sum(_norms(sums), axis=1)) / samples,
        lone=params.expert_norm * jnp.mean(_norms(signs @ features)) / samples,
        mean_square_gate=jnp.sum(is_drawn[:, None] * gates**2) / samples,
    )


class Complexities(NamedTuple):
    """Observables of `function_classes`: means over all signs, given the samples."""

    complexity: Float[Array, ""]  # R_S(F) of all functions
    ghost_complexity: Float[Array, ""]  # R_S'(F)
    swapped: Float[Array, ""]  # E_sigma sup_f (1/m) sum_i sigma_i (f(x_i) - f(x'_i))
    composed: Float[Array, ""]  # R_S(l o F), where l is the ramp loss with the samples' labels
    largest_part: Float[Array, ""]  # max_mu R_S(l o F|mu)
    mixtures: Float[Array, ""]  # E_sigma sup (1/m) sum_i sigma_i f(x_i) over convex combinations of F, drawn at random
    vertex: Float[Array, ""]  # the same for the combination that puts all its weight on the best function


class ClassCapacity(NamedTuple):
    log_growth: Float[Array, " n"]  # log of the largest number of labelings of 1, ..., n of the points
    natarajan: Float[Array, ""]  # the Natarajan dimension, 0 for a single function


class Growth(NamedTuple):
    random: ClassCapacity
    masks: ClassCapacity


@one_round
def function_classes(dims: Dims, key: Key[Array, ""], params: Params) -> Complexities:
    """Return T masks of k functions each at m inputs and m ghosts, normal with one scale per draw, and fair labels."""
    signs = all_signs(dims.max_samples)
    shape = (dims.max_experts, dims.max_experts, dims.max_samples)  # masks, functions of each, samples
    num_functions = dims.max_experts**2
    unit, label_units, weight_units = draws(uniforms, key, (), (dims.max_samples,), (NUM_MIXTURES, num_functions))
    (entries,) = draws(normals, key, (2, *shape))
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    scale = jnp.exp(LOG_SCALES[0] + (LOG_SCALES[1] - LOG_SCALES[0]) * unit)
    values, ghosts = scale * entries * is_drawn  # values of the functions at the sample and at the ghosts
    losses = model.ramp_loss(_fair_labels(label_units), values) * is_drawn
    indices = jnp.arange(dims.max_experts)
    exists = (indices < params.num_experts)[:, None] & (indices < params.num_active)  # (masks, functions of each)
    samples = jnp.asarray(params.num_samples, values.dtype)

    classes = jnp.stack([values, ghosts, values - ghosts, losses])
    scores = jnp.einsum("sm,ctkm->cstk", signs.astype(values.dtype), classes) / samples
    scores = jnp.max(jnp.where(exists, scores, -jnp.inf), axis=3)  # (classes, signs, masks)
    complexity, ghost_complexity, swapped, composed = jnp.mean(jnp.max(scores, axis=2), axis=1)
    mixtures, vertex = _mixtures(weight_units, signs, values, exists)
    return Complexities(
        complexity=complexity,
        ghost_complexity=ghost_complexity,
        swapped=swapped,
        composed=composed,
        largest_part=jnp.max(jnp.mean(scores[3], axis=0)),  # complexity of the losses
        mixtures=mixtures / samples,
        vertex=vertex / samples,
    )


@one_round
def labelings(dims: Dims, key: Key[Array, ""], params: Params) -> Growth:
    """Return growth and Natarajan dimension of two classes of functions from n = `max_samples` points to labels.

    One is a random subset of all functions to T labels, with a random density. The other has the top-k masks of
    `NUM_ROUTERS` normal linear routers at n normal inputs.
    """
    input_shape = (dims.max_samples, dims.num_features)
    router_shape = (NUM_ROUTERS, dims.max_experts, dims.num_features)
    choices = itertools.product(range(dims.max_experts), repeat=dims.max_samples)
    functions = np.array(list(choices), np.int32)  # (L^n, n)
    density_unit, member_units = draws(uniforms, key, (), (len(functions),))
    inputs, routers = draws(normals, key, input_shape, router_shape)
    is_allowed = jnp.all(functions < params.num_experts, axis=1)
    is_first = np.arange(len(functions)) == 0  # the first is always a member, so that no class is empty
    is_member = (member_units < len(functions) ** -density_unit) | is_first
    logits = jnp.einsum("rld,nd->rnl", routers, inputs)
    logits = logits.reshape(-1, dims.max_experts)  # (routers and points, experts)
    mask = model.masks(logits, params.num_active, params.num_experts)
    exists = jnp.arange(dims.max_experts) < params.num_experts
    left_out = jnp.argmax(~mask & exists, axis=1)  # names a mask with k = T - 1, as the active expert does if k = 1
    labels = jnp.where(jnp.asarray(params.num_active) == 1, jnp.argmax(mask, axis=1), left_out)
    labels = labels.astype(jnp.int32).reshape(NUM_ROUTERS, -1)
    is_mask = jnp.any(jnp.all(labels[:, None, :] == functions, axis=2), axis=0)
    return Growth(
        random=class_sizes(is_member & is_allowed, dims.max_samples, dims.max_experts),
        masks=class_sizes(is_mask, dims.max_samples, dims.max_experts),
    )


class ShatteringTables(NamedTuple):
    """Tables of 0s and 1s that give a class's growth and Natarajan dimension by matrix products.

    At each point a pattern has a label or none, and a cube has two labels or none.
    """

    patterns: Float[Any, "P L^n"]  # which functions agree with a pattern
    cubes: Float[Any, "Q P"]  # which patterns have one of a cube's labels wherever the cube has labels
    sets: Float[Any, "S P"]  # which patterns have labels on exactly this set of points
    cube_sizes: Float[Any, " Q"]  # points with labels
    set_sizes: Float[Any, " S"]


def shattering_tables(num_points: int, num_labels: int) -> ShatteringTables:
    labels = np.eye(num_labels)
    pairs = np.array([first + second for first, second in itertools.combinations(labels, 2)])
    pairs = pairs.reshape(-1, num_labels)  # sets the shape if there is one label and no pair

    def for_all_points(table_of_one: np.ndarray) -> np.ndarray:
        return functools.reduce(np.kron, [table_of_one] * num_points)

    def total_sizes(sizes_of_one: list[int]) -> np.ndarray:
        return np.array([sum(choice) for choice in itertools.product(sizes_of_one, repeat=num_points)], float)

    any_label = np.append(np.ones(num_labels), 0)
    no_label = np.append(np.zeros(num_labels), 1)
    return ShatteringTables(
        patterns=for_all_points(np.vstack([labels, np.ones(num_labels)])),
        cubes=for_all_points(np.vstack([np.pad(pairs, ((0, 0), (0, 1))), no_label])),
        sets=for_all_points(np.vstack([any_label, no_label])),
        cube_sizes=total_sizes([1] * len(pairs) + [0]),
        set_sizes=total_sizes([1, 0]),
    )


def class_sizes(is_member: Bool[Array, " L^n"], num_points: int, num_labels: int) -> ClassCapacity:
    """Return growth and Natarajan dimension of a class on all its points.

    A set of points is shattered (Definition 3) if all 2^size patterns of some cube on it occur.
    """
    dtype = jnp.result_type(float)
    tables = ShatteringTables(*(jnp.asarray(table, dtype) for table in shattering_tables(num_points, num_labels)))
    occurs = (tables.patterns @ is_member.astype(dtype) > 0).astype(dtype)
    is_shattered = tables.cubes @ occurs == 2**tables.cube_sizes
    counts = tables.sets @ occurs
    has_size = tables.set_sizes == jnp.arange(1, num_points + 1)[:, None]  # (sizes, sets)
    return ClassCapacity(
        log_growth=jnp.log(jnp.max(jnp.where(has_size, counts, 0), axis=1)),
        natarajan=jnp.max(jnp.where(is_shattered, tables.cube_sizes, 0)),
    )


@one_round
def lone_points(dims: Dims, key: Key[Array, ""], params: Params) -> Gap:
    """Return constant experts, T = 2 and k = 1. Routers can send any set of up to `NUM_LONE` inputs to one expert.

    Inputs are uniform on `NUM_INPUTS` numbers and all labels are +1. So f errs exactly on the set, or outside it, or
    never, or always. Hence m sup_f |L_S - L_S'| is the largest sum, over `NUM_LONE` inputs, of differences between
    their counts in S and S'. The masks shatter `NUM_LONE` points and no more. For a fixed mask L_S = L_S' for all its
    experts, unless one of its points is drawn.
    """
    all_inputs = jax.random.bits(key, (2, dims.max_samples), jnp.uint32).reshape(-1)  # inputs of S, then of S'
    is_drawn = jnp.arange(dims.max_samples) < params.num_samples
    exists = jnp.tile(is_drawn, 2)
    is_same = (all_inputs[:, None] == all_inputs) & exists & exists[:, None]
    is_first = exists & (jnp.argmax(is_same, axis=1) == jnp.arange(len(all_inputs)))
    is_in_s = jnp.arange(len(all_inputs)) < dims.max_samples
    difference = jnp.sum(jnp.where(is_in_s, 1, -1) * is_same, axis=1, dtype=jnp.int32) * is_first
    excesses = [jnp.sort(jnp.maximum(sign * difference, 0)) for sign in (1, -1)]  # S over S', and S' over S
    largest = [jnp.sum(excess[-NUM_LONE:]) for excess in excesses]
    gap = jnp.maximum(*largest).astype(jnp.result_type(float))
    return Gap(gap=gap / jnp.asarray(params.num_samples, jnp.result_type(float)))


def draws(law: Callable[..., Array], key: Key[Array, ""], *shapes: tuple[int, ...]) -> list[Array]:
    """Draw all numbers by one call of `law`, and return them in these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    numbers = law(key, sum(sizes), jnp.result_type(float))
    starts = itertools.accumulate(sizes, initial=0)
    return [
        jax.lax.slice_in_dim(numbers, start, start + size).reshape(shape)
        for start, size, shape in zip(starts, sizes, shapes, strict=False)  # the last start is the end
    ]


def all_signs(num_samples: int) -> Float[np.ndarray, "2^m m"]:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=num_samples)))


def _fair_labels(units: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.where(units < 0.5, -1, 1).astype(units.dtype)


def _on_sphere(rows: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return rows / _norms(rows)[:, None]


def _norms(rows: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    return jnp.sqrt(jnp.sum(jnp.square(rows), axis=-1))


def _mixtures(
    units: Float[Array, "n F"], signs: np.ndarray, values: Float[Array, "T k m"], exists: Bool[Array, "T k"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return m times `Complexities.mixtures`, and m times `Complexities.vertex`."""
    functions = values.reshape(-1, values.shape[-1])
    exists = exists.reshape(-1)
    table = jnp.asarray(signs, values.dtype)
    weights = jnp.where(exists, -jnp.log(units), 0)
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    best = jnp.argmax(jnp.where(exists, table @ functions.T, -jnp.inf), axis=1)
    vertices = (best[:, None] == jnp.arange(len(functions))).astype(values.dtype)
    suprema = jnp.max(table @ (weights @ functions).T, axis=1)
    return jnp.mean(suprema), jnp.mean(jnp.sum(table * (vertices @ functions), axis=1))
