"""Systems of one round that draw a small finite class, of which every supremum and mean over signs is computed exactly.

What a lemma says of all classes can then be held against each draw by itself: nothing is left to sampling but which
classes are looked at. Shapes: F functions, m samples, n points, L labels.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.core.random import normals, symmetric_uniforms
from moe_theory.core.system import System
from moe_theory.generalization import model
from moe_theory.generalization.one_round import one_round
from moe_theory.generalization.params import Dims, Params

MOST_SIGNS = 12  # samples whose signs are enumerated
MOST_POINTS = 5  # whose labelings are
MOST_LABELS = 3
LOG_SCALES = (-1.5, 2.5)  # between which functions' sizes are drawn, so that the ramp cuts off nothing, or most
NUM_MIXTURES = 16
NUM_ROUTERS = 256
NUM_INPUTS, NUM_LONE = 2**32, 4  # of `lone_points`


class Complexities(NamedTuple):
    """What `function_classes` shows: means over all signs, given the samples."""

    complexity: Float[Array, ""]  # R_S(F) of all functions
    ghost_complexity: Float[Array, ""]  # R_S'(F)
    swapped: Float[Array, ""]  # E_sigma sup_f (1/m) sum_i sigma_i (f(x_i) - f(x'_i))
    composed: Float[Array, ""]  # R_S(l o F), l the ramp loss of the samples' labels
    largest_part: Float[Array, ""]  # max_mu R_S(l o F|mu)
    mixtures: Float[Array, ""]  # E_sigma sup (1/m) sum_i sigma_i f(x_i) over convex combinations of F, drawn at random
    vertex: Float[Array, ""]  # the same for the combination that puts all its weight on the best function


class Sizes(NamedTuple):
    """Of a class of functions from n points to labels."""

    log_growth: Float[Array, " n"]  # log of the most labelings of 1, ..., n of the points
    natarajan: Float[Array, ""]  # the Natarajan dimension; 0 for a single function


class Growth(NamedTuple):
    """What `labelings` shows."""

    random: Sizes
    masks: Sizes


class Learned(NamedTuple):
    """What `lone_points` shows."""

    gap: Float[Array, ""]  # sup_f |L_S - L_S'| over all masks


@functools.lru_cache
def function_classes(dims: Dims) -> System:
    """T masks of k functions each at m inputs and at m ghosts: normal values of one size a draw, labels fair coins.

    Raises: InvalidDimsError for more samples than signs are enumerated of.
    """
    if dims.max_samples > MOST_SIGNS:
        raise InvalidDimsError(
            f"max_samples={dims.max_samples} must be at most {MOST_SIGNS}: all 2^m signs are enumerated. "
            "Lower max_samples."
        )
    signs = all_signs(dims.max_samples)
    shape = (dims.max_experts, dims.max_experts, dims.max_samples)  # masks, functions of each, samples
    num_functions = dims.max_experts**2

    def instance(key: Key[Array, ""], params: Params) -> Complexities:
        size, toss, weights, entries = draws(key, (), (dims.max_samples,), (NUM_MIXTURES, num_functions), (2, *shape))
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        scale = jnp.exp(LOG_SCALES[0] + (LOG_SCALES[1] - LOG_SCALES[0]) * (size + 1) / 2)
        values, ghosts = scale * normals(entries) * is_drawn
        losses = model.ramp_loss(jnp.where(toss < 0, -1, 1), values) * is_drawn
        index = jnp.arange(dims.max_experts)
        exists = (index < params.num_experts)[:, None] & (index < params.num_active)
        samples = jnp.asarray(params.num_samples, values.dtype)

        every = jnp.stack([values, ghosts, values - ghosts, losses])
        scores = jnp.einsum("sm,ctkm->cstk", signs.astype(values.dtype), every) / samples
        scores = jnp.max(jnp.where(exists, scores, -jnp.inf), axis=3)  # (classes, signs, masks)
        own, ghost, swapped, composed = jnp.mean(jnp.max(scores, axis=2), axis=1)
        mixtures, vertex = _mixtures(weights, signs, values, exists)
        return Complexities(
            complexity=own,
            ghost_complexity=ghost,
            swapped=swapped,
            composed=composed,
            largest_part=jnp.max(jnp.mean(scores[3], axis=0)),
            mixtures=mixtures / samples,
            vertex=vertex / samples,
        )

    return one_round(dims, instance)


def _mixtures(
    uniforms: Float[Array, "n F"], signs: np.ndarray, values: Float[Array, "T k m"], exists: Bool[Array, "T k"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """E_sigma of sum_i sigma_i f(x_i), its largest over random mixtures f, and at the best function's own weight of 1.

    Mixtures are first made as functions, and then compared with the signs.
    """
    functions, exists = values.reshape(-1, values.shape[-1]), exists.reshape(-1)
    table = jnp.asarray(signs, values.dtype)
    weights = jnp.where(exists, -jnp.log1p(-jnp.abs(uniforms)), 0)
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    best = jnp.argmax(jnp.where(exists, table @ functions.T, -jnp.inf), axis=1)
    vertices = (best[:, None] == jnp.arange(len(functions))).astype(values.dtype)
    drawn = jnp.max(table @ (weights @ functions).T, axis=1)
    return jnp.mean(drawn), jnp.mean(jnp.sum(table * (vertices @ functions), axis=1))


@functools.lru_cache
def labelings(dims: Dims) -> System:
    """Classes of functions from n = `max_samples` points to labels, their growth and Natarajan dimension.

    One class is a random subset of all functions to T labels, from a few of them to almost all. The other is of the
    masks that `NUM_ROUTERS` normal linear routers give n normal inputs, k of T experts chosen.

    Raises: InvalidDimsError for more points or experts than are enumerated.
    """
    if dims.max_samples > MOST_POINTS or dims.max_experts > MOST_LABELS:
        raise InvalidDimsError(
            f"max_samples={dims.max_samples} must be at most {MOST_POINTS}, and max_experts={dims.max_experts} at most "
            f"{MOST_LABELS}: all functions from points to labels are enumerated. Lower both."
        )
    input_shape = (dims.max_samples, dims.num_features)
    router_shape = (NUM_ROUTERS, dims.max_experts, dims.num_features)
    every = np.array(list(itertools.product(range(dims.max_experts), repeat=dims.max_samples)), np.int32)  # (L^n, n)

    def instance(key: Key[Array, ""], params: Params) -> Growth:
        share, places, inputs, routers = draws(key, (), (len(every),), input_shape, router_shape)
        is_allowed = jnp.all(every < params.num_experts, axis=1)
        density = len(every) ** -jnp.abs(share)
        is_member = (jnp.abs(places) < density) | (np.arange(len(every)) == 0)
        outputs = jnp.einsum("rld,nd->rnl", normals(routers), normals(inputs))
        labels = _mask_labels(outputs.reshape(-1, dims.max_experts), params).reshape(NUM_ROUTERS, -1)
        is_mask = jnp.any(jnp.all(labels[:, None, :] == every, axis=2), axis=0)
        return Growth(
            random=measured(is_member & is_allowed, dims.max_samples, dims.max_experts),
            masks=measured(is_mask, dims.max_samples, dims.max_experts),
        )

    return one_round(dims, instance)


def _mask_labels(outputs: Float[Array, "n L"], params: Params) -> Int[Array, " n"]:
    """A number for each mask: the expert chosen at k = 1, else the one left out (0 if none is)."""
    mask = model.masks(outputs, params.num_active, params.num_experts)
    exists = jnp.arange(outputs.shape[1]) < params.num_experts
    left_out = jnp.argmax(~mask & exists, axis=1)
    return jnp.where(jnp.asarray(params.num_active) == 1, jnp.argmax(mask, axis=1), left_out).astype(jnp.int32)


class Census(NamedTuple):
    """What tells a class's growth and its Natarajan dimension from who is in it, as three counts of 0s and 1s.

    A pattern names a label, or none, at each point; a cube two labels, or none, at each point.
    """

    patterns: Float[Any, "P L^n"]  # which functions agree with a pattern
    cubes: Float[Any, "Q P"]  # which patterns choose one of a cube's labels wherever it has any
    sets: Float[Any, "S P"]  # which patterns name labels on just this set of points
    cube_sizes: Float[Any, " Q"]  # points with labels
    set_sizes: Float[Any, " S"]


@functools.cache
def census(num_points: int, num_labels: int) -> Census:
    """The tables for all functions of so many points to labels, in the order of their labels as one number.

    Points are independent of each other, so that each table is the Kronecker product of that of one point.
    """
    labels = np.eye(num_labels)
    pairs = np.array([labels[first] + labels[second] for first, second in itertools.combinations(range(num_labels), 2)])
    pairs = pairs.reshape(-1, num_labels)

    def of_all_points(of_one: np.ndarray) -> np.ndarray:
        return functools.reduce(np.kron, [of_one] * num_points)

    def sizes(of_one: list[int]) -> np.ndarray:
        return np.array([sum(choice) for choice in itertools.product(of_one, repeat=num_points)], float)

    last = np.append(np.zeros(num_labels), 1)[None]
    return Census(
        patterns=of_all_points(np.vstack([labels, np.ones(num_labels)])),
        cubes=of_all_points(np.vstack([np.pad(pairs, ((0, 0), (0, 1))), last])),
        sets=of_all_points(np.vstack([np.append(np.ones(num_labels), 0), last[0]])),
        cube_sizes=sizes([1] * len(pairs) + [0]),
        set_sizes=sizes([1, 0]),
    )


def measured(is_member: Bool[Array, " L^n"], num_points: int, num_labels: int) -> Sizes:
    """Growth and Natarajan dimension of a class on all its points.

    A set of points is shattered (Definition 3) where for some two labels of each of them every choice of one of the
    two is a function's: where all 2^size patterns of a cube occur.

    Args:
        is_member: for each function of points to labels whether it is in the class.
    """
    dtype = jnp.result_type(float)
    tables = Census(*(jnp.asarray(table, dtype) for table in census(num_points, num_labels)))
    occurs = (tables.patterns @ is_member.astype(dtype) > 0).astype(dtype)
    is_shattered = tables.cubes @ occurs == 2**tables.cube_sizes
    counts = tables.sets @ occurs
    per_size = tables.set_sizes == jnp.arange(1, num_points + 1)[:, None]
    return Sizes(
        log_growth=jnp.log(jnp.max(jnp.where(per_size, counts, 0), axis=1)),
        natarajan=jnp.max(jnp.where(is_shattered, tables.cube_sizes, 0)),
    )


@functools.lru_cache
def lone_points(dims: Dims) -> System:
    """Constant experts, T = 2, k = 1: a router sends up to `NUM_LONE` inputs it likes to one, the rest to the other.

    Inputs are uniform on `NUM_INPUTS` numbers and all labels are +1, so that f errs at its lone points alone, or
    everywhere but there, or never, or always: sup_f |L_S - L_S'| is the largest sum of differences between how often
    each of so many inputs is in S and in S', over m. The masks shatter `NUM_LONE` points and no more. For a mask chosen
    beforehand, L_S = L_S' for all its experts, unless one of its points is drawn.

    Raises: InvalidParamsError for any other number of experts.
    """

    def instance(key: Key[Array, ""], params: Params) -> Learned:
        inputs = jax.random.bits(key, (2, dims.max_samples), jnp.uint32)
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        everywhere, exists = inputs.reshape(-1), jnp.tile(is_drawn, 2)
        is_same = (everywhere[:, None] == everywhere) & exists & exists[:, None]
        is_first = exists & (jnp.argmax(is_same, axis=1) == jnp.arange(len(everywhere)))
        ours = jnp.arange(len(everywhere)) < dims.max_samples
        difference = jnp.sum(jnp.where(ours, 1, -1) * is_same, axis=1, dtype=jnp.int32) * is_first
        largest = [jnp.sum(jnp.sort(jnp.maximum(sign * difference, 0))[-NUM_LONE:]) for sign in (1, -1)]
        gap = jnp.maximum(*largest).astype(jnp.result_type(float))
        return Learned(gap=gap / jnp.asarray(params.num_samples, jnp.result_type(float)))

    def check(params: Params) -> None:
        if checks.is_known((params.num_experts, params.num_active)) and params.num_experts != 2:
            raise InvalidParamsError(
                f"num_experts={params.num_experts} must be 2: one expert for lone inputs, and one for the rest. "
                "Change num_experts."
            )

    return one_round(dims, instance, check)


def draws(key: Key[Array, ""], *shapes: tuple[int, ...]) -> list[Array]:
    """Arrays of these shapes, uniform on (-1, 1), all from one call: a round then has one generator to compile."""
    sizes = [math.prod(shape) for shape in shapes]
    numbers = symmetric_uniforms(key, sum(sizes), jnp.dtype(jnp.result_type(float)))
    starts = itertools.accumulate(sizes, initial=0)
    return [
        jax.lax.slice_in_dim(numbers, start, start + size).reshape(shape)
        for start, size, shape in zip(starts, sizes, shapes, strict=False)
    ]


def all_signs(num_samples: int) -> Float[np.ndarray, "2^m m"]:
    """Every vector of m signs, as a row."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=num_samples)))
