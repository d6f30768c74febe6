"""Rewards of merging weights, the task mix, and families whose best weights are known for every mix and every B.

A slot shows the mean reward of each task that had requests. This mean is f*_v(x) plus Gaussian noise of deviation
`noise_scale`, not clipped to [0, 1].

Examples:
    >>> import jax.numpy as jnp
    >>> import moe_theory as mt
    >>> from moe_theory.merging import Dims, Params, rewards
    >>> tasks = rewards.draw_tasks(mt.root_key(0), Dims(num_tasks=3), Params())
    >>> rewards.mix_of(tasks, jnp.array(1), Params()).shape
    (3,)
    >>> rewards.named("peaked").best is rewards.peak_best
    True
    >>> params = Params(noise_scale=0.0, slot_size=10)
    >>> shown = rewards.observed(mt.root_key(0), jnp.array([0.75, 0.25]), jnp.array([1.0, 0.0]), params)
    >>> shown.rewards.tolist(), shown.counts.tolist()
    ([0.75, 0.0], [10, 0])
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core.constraints import is_known
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.numerics import Numbers, Scalar
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.weights import existing, largest, like_tasks, log_gammas

__all__ = ["FLAT", "PEAKED", "REWARDS", "SHARES", "Tasks", "draw_tasks", "mix_of", "named", "observed"]

BLOCK = 128  # requests drawn together
PEAKED = "peaked"  # a name of `REWARDS`
FLAT = "flat"  # a name of `REWARDS`
SHARES = "shares"  # a name of `REWARDS`
PEAK_WIDTH = 0.5  # s, about the distance between equal weights and a peak at K = 8
PEAK_CONCENTRATION = 0.25  # parameter of a peak's Dirichlet distribution: peaks use few experts
LOWEST_PEAK = 0.5  # heights are uniform from this number to 1
FLAT_CONCENTRATION = 0.1  # of the Dirichlet distribution of each task's best weights, so that they use few experts

Environment = Any  # a NamedTuple of arrays, drawn once per replicate


class Feedback(NamedTuple):
    """Rewards of a slot.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> merging.Feedback(rewards=np.array([0.75, 0.0]), counts=np.array([8, 0])).counts.sum().item()
        8
    """

    rewards: Float[Numbers, " V"]  # mean reward of each task's requests, in [0, 1] up to noise, 0 without requests
    counts: Int[Numbers, " V"]  # requests of each task


def slot_reward(feedback: Feedback) -> Float[Array, ""]:
    """Return the mean reward of a slot's requests, NaN for a slot without any."""
    counts = feedback.counts.astype(feedback.rewards.dtype)
    rewards = jnp.where(counts > 0, feedback.rewards, 0)
    return jnp.sum(counts * rewards) / jnp.sum(counts)


def is_empty_slot(feedback: Feedback) -> Bool[Array, ""]:
    """Return whether a slot has no requests."""
    return jnp.sum(feedback.counts) == 0


class Reward(NamedTuple):
    """Reward function f* of K weights with V values, and how a slot observes it.

    Examples:
        Without known best weights the regret is NaN:

        >>> from moe_theory import merging
        >>> reward = merging.rewards.named("flat")._replace(best=None)
        >>> system = merging.system(merging.Dims(max_experts=3, num_tasks=2), reward)
    """

    draw: Callable[[Key[Array, ""], Dims, Params], Environment]
    mix: Callable[[Environment, Int[Array, ""], Params], Float[Array, " V"]]  # psi_t, the shares of tasks in slot t
    value: Callable[[Environment, Float[Array, " K"]], Float[Array, " V"]]  # f*(x), in [0, 1]
    # (key, world, weights, mix, params): a slot's feedback
    serve: Callable[[Key[Array, ""], Environment, Float[Array, " K"], Float[Array, " V"], Params], Feedback]
    best: Callable[[Environment, Float[Array, " V"], Params], Float[Array, " K"]] | None  # the best weights by psi' f*


def check_reward(reward: Reward, world: Environment, dims: Dims, params: Params) -> None:
    """Trace a reward's functions on one world without compiling them."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    weights = jnp.zeros(dims.max_experts)
    mix = jnp.zeros(dims.num_tasks)
    calls: dict[str, tuple[Any, str, tuple[int, ...]]] = {  # name -> call, what each number is for, needed shape
        "mix": (lambda: reward.mix(world, jnp.int32(1), params), "task", mix.shape),
        "value": (lambda: reward.value(world, weights), "task", mix.shape),
    }
    if reward.best is not None:
        calls["best"] = (lambda best=reward.best: best(world, mix, params), "expert", weights.shape)
    for name, (call, owner, expected) in calls.items():
        _require_shape(name, jax.eval_shape(call), owner, expected)
    served = jax.eval_shape(lambda key: reward.serve(key, world, weights, mix, params), key)
    if not isinstance(served, Feedback):
        raise InvalidValueError("Reward.serve must return a merging.Feedback. Change serve.")
    for field, value in served._asdict().items():
        _require_shape("serve", value, "task", mix.shape, f" {field} of")


def _require_shape(name: str, value: Any, owner: str, expected: tuple[int, ...], field: str = "") -> None:
    shape = getattr(value, "shape", f"of a {type(value).__name__}")
    if shape != expected:
        raise InvalidValueError(
            f"Reward.{name} returned{field} shape {shape}, but needs one number per {owner}: {expected}. Change {name}."
        )


class Tasks(NamedTuple):
    """Parameters of the mixes of all slots, drawn once per replicate."""

    log_weights: Float[Array, " V"]
    phases: Float[Array, " V"]  # phase of each task's drift, in radians


def draw_tasks(key: Key[Array, ""], dims: Dims, params: Params) -> Tasks:
    """Draw a Dirichlet mix with concentration `mix_concentration`, and uniform phases."""
    weights_key, phases_key = jax.random.split(key)
    return Tasks(
        log_weights=log_gammas(weights_key, dims.num_tasks, params.mix_concentration),
        phases=2 * jnp.pi * jax.random.uniform(phases_key, (dims.num_tasks,), jnp.result_type(float)),
    )


def mix_of(tasks: Tasks, time: Int[Array, ""], params: Params) -> Float[Array, " V"]:
    """Return psi_t, the task mix of slot t: softmax(log-weights + drift sin(2 pi t / period + phase)).

    Without drift the mix is the Dirichlet draw. A drift of 1 multiplies shares by up to e before normalization, and
    divides them by as much half a period later.
    """
    dtype = tasks.phases.dtype
    turns = time.astype(dtype) / jnp.asarray(params.mix_period, dtype)
    drift = jnp.asarray(params.mix_drift, dtype) * jnp.sin(2 * jnp.pi * turns + tasks.phases)
    return jax.nn.softmax(tasks.log_weights + drift)


def draw_counts(key: Key[Array, ""], mix: Float[Array, " V"], slot_size: Int[Scalar, ""]) -> Int[Array, " V"]:
    """Draw how many of `slot_size` requests each task has, multinomial with shares `mix`, in blocks of requests."""
    size = jnp.asarray(slot_size, jnp.int32)
    edges = jnp.cumsum(mix)[:-1]  # a request below edge v, and not below the edge before, is of task v

    def add_block(block: Int[Array, ""], num_below: Int[Array, " V-1"]) -> Int[Array, " V-1"]:
        uniforms = jax.random.uniform(jax.random.fold_in(key, block), (BLOCK,), mix.dtype)
        is_request = block * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32) < size
        is_below = is_request[:, None] & (uniforms[:, None] < edges)
        return num_below + jnp.sum(is_below, axis=0, dtype=jnp.int32)

    num_blocks = (size + (BLOCK - 1)) // BLOCK
    num_below = jax.lax.fori_loop(jnp.int32(0), num_blocks, add_block, jnp.zeros(edges.shape, jnp.int32))
    return jnp.diff(num_below, prepend=jnp.int32(0), append=size)


class World(NamedTuple):
    """Parameters of a replicate's rewards."""

    tasks: Tasks
    exists: Bool[Array, " K"]  # False for padded experts
    surface: Any  # by family: a `Peak`, the tasks' best weights (V, K), or ()


class Peak(NamedTuple):
    """Peak that all tasks share."""

    center: Float[Array, " K"]  # c
    heights: Float[Array, " V"]  # f*_v(c)


def peak_value(world: World, weights: Float[Array, " K"]) -> Float[Array, " V"]:
    """Return f*_v(x) = height_v exp(-|x - c|^2 / (2 s^2)), with the same best weights for all tasks."""
    squared_distance = jnp.sum(jnp.square(weights - world.surface.center))
    return world.surface.heights * jnp.exp(-squared_distance / (2 * PEAK_WIDTH**2))


def peak_best(world: World, mix: Float[Array, " V"], params: Params) -> Float[Array, " K"]:
    """Return the feasible weights nearest to c (`nearest`). psi' f* depends only on |x - c| and falls with it."""
    del mix
    return nearest(world.surface.center, world.exists, params.max_active)


def flat_value(world: World, weights: Float[Array, " K"]) -> Float[Array, " V"]:
    """Return f*_v(x) = 1 - |x - c_v|^2 / 2, in [0, 1] because points of the simplex are at most 2^(1/2) apart."""
    return 1 - jnp.sum(jnp.square(weights[None, :] - world.surface), axis=1) / 2


def flat_best(world: World, mix: Float[Array, " V"], params: Params) -> Float[Array, " K"]:
    """Return the feasible weights nearest to c = sum_v psi_v c_v, a point of the simplex (`nearest`).

    psi' f* is 1 - |x - c|^2 / 2 minus half the variance of c_v under psi.
    """
    return nearest(jnp.sum(mix[:, None] * world.surface, axis=0), world.exists, params.max_active)


def shares_value(world: World, weights: Float[Array, " K"]) -> Float[Array, " V"]:
    """Return f*_v(x) = x_v^(1/2): expert v alone serves task v, with diminishing returns."""
    return jnp.sqrt(weights[: world.tasks.phases.shape[0]])


def shares_best(world: World, mix: Float[Array, " V"], params: Params) -> Float[Array, " K"]:
    """Return x_v in proportion to psi_v^2 over the B tasks with the largest shares.

    On given experts sum psi_v x_v^(1/2) is concave, and its derivatives psi_v / (2 x_v^(1/2)) are equal here. By Cauchy
    and Schwarz its maximum is the norm of these experts' psi, so the largest psi are best.
    """
    squares = jnp.square(mix / jnp.max(mix))
    is_largest = largest(mix, jnp.ones_like(mix, bool), params.max_active)
    largest_squares = jnp.where(is_largest, squares, 0)
    return like_tasks(largest_squares / jnp.sum(largest_squares), max_experts=world.exists.shape[0])


def nearest(point: Float[Array, " K"], exists: Bool[Array, " K"], max_active: Int[Scalar, ""]) -> Float[Array, " K"]:
    """Return the weights nearest to a `point` of the simplex, with at most B above 0.

    On a set S of B experts the nearest weights are x_k = c_k + m/B with m = 1 - sum_S c >= 0. The squared distance,
    m^2/B plus the sum of c^2 outside S, is least if S has the largest entries.
    """
    is_largest = largest(point, exists, max_active)
    missing = 1 - jnp.sum(jnp.where(is_largest, point, 0))  # m
    return jnp.where(is_largest, point + missing / jnp.sum(is_largest), 0)


def named(name: str) -> Reward:
    """Return the family called `name`. Raises: UnknownNameError."""
    if name not in REWARDS:
        raise unknown_name("reward", name, REWARDS)
    return REWARDS[name]


def _draw_peak(key: Key[Array, ""], exists: Bool[Array, " K"], num_tasks: int) -> Peak:
    center_key, heights_key = jax.random.split(key)
    uniforms = jax.random.uniform(heights_key, (num_tasks,), jnp.result_type(float))
    logs = log_gammas(center_key, exists.shape[0], PEAK_CONCENTRATION)
    center = jax.nn.softmax(jnp.where(exists, logs, -jnp.inf))
    return Peak(center, LOWEST_PEAK + (1 - LOWEST_PEAK) * uniforms)


def _draw_flat(key: Key[Array, ""], exists: Bool[Array, " K"], num_tasks: int) -> Float[Array, "V K"]:
    # (K, V), so that an expert's draws do not depend on `Dims.max_experts`.
    logs = log_gammas(key, exists.shape[0] * num_tasks, FLAT_CONCENTRATION).reshape(-1, num_tasks)
    return jax.nn.softmax(jnp.where(exists, logs.T, -jnp.inf), axis=1)


def _family(
    name: str,
    draw_surface: Callable[[Key[Array, ""], Bool[Array, " K"], int], Any],
    value: Callable[[World, Float[Array, " K"]], Float[Array, " V"]],
    best: Callable[[World, Float[Array, " V"], Params], Float[Array, " K"]],
    needs_experts: bool = False,
) -> Reward:
    def draw(key: Key[Array, ""], dims: Dims, params: Params) -> World:
        if needs_experts:
            check_experts(f"reward {name!r}", dims, params)
        tasks_key, surface_key = jax.random.split(key)
        exists = existing(dims.max_experts, params.num_experts)
        return World(draw_tasks(tasks_key, dims, params), exists, draw_surface(surface_key, exists, dims.num_tasks))

    def mix(world: World, time: Int[Array, ""], params: Params) -> Float[Array, " V"]:
        return mix_of(world.tasks, time, params)

    def serve(
        key: Key[Array, ""], world: World, weights: Float[Array, " K"], mix: Float[Array, " V"], params: Params
    ) -> Feedback:
        return observed(key, value(world, weights), mix, params)

    return Reward(draw=draw, mix=mix, value=value, serve=serve, best=best)


def observed(key: Key[Array, ""], values: Float[Array, " V"], mix: Float[Array, " V"], params: Params) -> Feedback:
    """Return the feedback of a slot with the tasks' expected rewards `values`."""
    counts_key, noise_key = jax.random.split(key)
    counts = draw_counts(counts_key, mix, params.slot_size)
    noise = jnp.asarray(params.noise_scale, values.dtype) * jax.random.normal(noise_key, values.shape, values.dtype)
    return Feedback(jnp.where(counts > 0, values + noise, 0), counts)


def check_experts(owner: str, dims: Dims, params: Params) -> None:
    if dims.max_experts < dims.num_tasks:
        raise InvalidValueError(
            f"{owner} needs an expert for each task: max_experts={dims.max_experts} must be at least "
            f"num_tasks={dims.num_tasks}. Raise max_experts."
        )
    if is_known(params.num_experts) and params.num_experts != dims.num_tasks:
        raise InvalidValueError(
            f"{owner} needs an expert for each task: num_experts={params.num_experts} must equal "
            f"num_tasks={dims.num_tasks}. Change num_experts, or choose another reward."
        )


# The families by name.
REWARDS: dict[str, Reward] = {
    PEAKED: _family(PEAKED, _draw_peak, peak_value, peak_best),
    FLAT: _family(FLAT, _draw_flat, flat_value, flat_best),
    SHARES: _family(SHARES, lambda key, exists, num_tasks: (), shares_value, shares_best, needs_experts=True),
}
