"""Algorithm 1 of the continual paper as the JAX documentation would have it: `jit(vmap(scan))`, batch first."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, Trajectory, constants_of
from moe_theory.continual import Params


class Carry(NamedTuple):
    """One replicate between two rounds."""

    experts: Float[Array, "M d"]
    gates: Float[Array, "M d"]
    visits: Int[Array, " M"]
    converged: Bool[Array, " M"]
    is_terminated: Bool[Array, ""]
    served: Float[Array, "M N"]  # arrivals of each task at each expert
    forgotten: Float[Array, ""]  # (t - 1) F_t
    remaining: Float[Array, ""]  # t G_t
    time: Int[Array, ""]


class Arrival(NamedTuple):
    """What a replicate meets in one round; with a leading axis, in all of them."""

    task: Int[Array, ""]
    features: Float[Array, "d s"]
    perturbation: Float[Array, " M"]


def prepare(setting: Setting) -> Run:
    """All replicates of a setting in one program, each with a pool and keys of its own."""
    constants = constants_of(Params(num_experts=setting.num_experts))

    def replicate(key: Key[Array, ""]) -> tuple[Carry, Float[Array, ""]]:
        pool_key, key = jax.random.split(key)
        truths = draw_truths(pool_key, setting, constants)

        def body(carry, key):
            return round_(constants, truths, carry, draw(key, setting, constants, truths))[0], None

        carry = jax.lax.scan(body, begin(constants, truths), jax.random.split(key, setting.num_rounds))[0]
        return carry, carry.remaining / setting.num_rounds

    return batch_first(replicate, setting)


def batch_first(replicate: Callable[[Any], tuple[Any, Any]], setting: Setting) -> Run:
    """`jit(vmap(replicate))` over a setting's keys; the errors are the second of a replicate's results."""

    @jax.jit
    def simulate(key):
        return jax.vmap(replicate)(jax.random.split(key, setting.batch))

    def run() -> np.ndarray:
        with jax.enable_x64(setting.precision == "float64"):
            return np.asarray(jax.block_until_ready(simulate(jax.random.key(setting.seed)))[1])

    return run


def play(constants: Constants, truths: Float[Array, "N d"], arrivals: Arrival) -> Trajectory:
    """One replicate's rounds on given arrivals, every leaf (T, ...)."""

    def body(carry, arrival):
        return round_(constants, truths, carry, arrival)

    return jax.lax.scan(body, begin(constants, truths), arrivals)[1]


def begin(constants: Constants, truths: Float[Array, "N d"]) -> Carry:
    """Before round 1: experts and gates are zero."""
    M, (N, d), dtype = constants.num_experts, truths.shape, truths.dtype
    return Carry(
        experts=jnp.zeros((M, d), dtype),
        gates=jnp.zeros((M, d), dtype),
        visits=jnp.zeros(M, jnp.int32),
        converged=jnp.zeros(M, bool),
        is_terminated=jnp.zeros((), bool),
        served=jnp.zeros((M, N), dtype),
        forgotten=jnp.zeros((), dtype),
        remaining=jnp.zeros((), dtype),
        time=jnp.zeros((), jnp.int32),
    )


def draw_truths(key: Key[Array, ""], setting: Setting, constants: Constants) -> Float[Array, "N d"]:
    """Ground truths w_n: clusters n mod K around N(0, sigma_0^2) centres, if there are fewer than N."""
    centre_key, member_key = jax.random.split(key)
    N, d, K = setting.num_tasks, setting.num_features, min(constants.num_clusters, setting.num_tasks)
    centres = constants.truth_scale * jax.random.normal(centre_key, (K, d))
    spread = constants.cluster_spread if K < N else 0.0
    return centres[jnp.arange(N) % K] + spread * jax.random.normal(member_key, (N, d))


def draw(key: Key[Array, ""], setting: Setting, constants: Constants, truths: Float[Array, "N d"]) -> Arrival:
    """An arrival of Definition 1 and the perturbation of (1)."""
    task_key, slot_key, strength_key, noise_key, perturbation_key = jax.random.split(key, 5)
    d, s = setting.num_features, setting.num_samples
    task = jax.random.randint(task_key, (), 0, setting.num_tasks)
    slot = jax.random.randint(slot_key, (), 0, s)
    strength = jax.random.uniform(strength_key, minval=constants.min_strength, maxval=constants.max_strength)
    noise = constants.noise_scale * jax.random.normal(noise_key, (d, s))
    return Arrival(
        task=task,
        features=noise.at[:, slot].set(strength * constants.signal_scale * truths[task]),
        perturbation=jax.random.uniform(perturbation_key, (setting.num_experts,), maxval=constants.perturbation_scale),
    )


def round_(
    constants: Constants, truths: Float[Array, "N d"], carry: Carry, arrival: Arrival
) -> tuple[Carry, Trajectory]:
    """One round. Source: Eqs. (1)-(9), (14)-(16), Algorithm 1 of `continual`; flags accumulate, q = 1 in (6)."""
    time, features, truth = carry.time + 1, arrival.features, truths[arrival.task]
    gate_input = features.sum(axis=1)
    outputs = carry.gates @ gate_input
    expert = jnp.argmax(outputs + arrival.perturbation)

    before = carry.experts[expert]
    factor = jax.scipy.linalg.cho_factor(features.T @ features)
    change = features @ jax.scipy.linalg.cho_solve(factor, features.T @ (truth - before))
    visits = carry.visits.at[expert].add(1)

    probabilities = jax.nn.softmax(outputs)
    cost = jnp.linalg.norm(change) + constants.balance_weight * constants.num_experts * visits[expert] / time / time
    slopes = cost * probabilities[expert] * (jax.nn.one_hot(expert, constants.num_experts) - probabilities)
    is_exploring = time <= constants.exploration_rounds
    is_near = jnp.abs(outputs - outputs[expert]) < constants.termination_threshold
    converged = jnp.where(is_exploring, False, carry.converged | is_near)
    is_terminated = carry.is_terminated | (constants.terminate & converged.all())
    moved = carry.gates - constants.learning_rate * jnp.outer(slopes, gate_input)

    # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
    total = carry.served[expert] @ ((2 * before + change - 2 * truths) @ change)
    forgotten = carry.forgotten + total
    remaining = carry.remaining + total + jnp.sum((before + change - truth) ** 2)
    after = Carry(
        experts=carry.experts.at[expert].add(change),
        gates=jnp.where(is_terminated, carry.gates, moved),
        visits=visits,
        converged=converged,
        is_terminated=is_terminated,
        served=carry.served.at[expert, arrival.task].add(1),
        forgotten=forgotten,
        remaining=remaining,
        time=time,
    )
    return after, Trajectory(expert, remaining / time, forgotten / jnp.maximum(time - 1, 1))
