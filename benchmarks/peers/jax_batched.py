"""Algorithm 1 of the continual paper in JAX, batched by hand: one `fori_loop`, all replicates on the last axis.

What somebody writes who knows that a batch at the end makes long contiguous arithmetic, and who gives up one key a
replicate: a round draws for all replicates at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, Trajectory, constants_of, draw_truths
from moe_theory.continual import Params


class Carry(NamedTuple):
    """All replicates between two rounds."""

    experts: Float[Array, "M d B"]
    gates: Float[Array, "M d B"]
    visits: Float[Array, "M B"]
    converged: Bool[Array, "M B"]
    is_terminated: Bool[Array, " B"]
    served: Float[Array, "M N B"]  # arrivals of each task at each expert
    forgotten: Float[Array, " B"]  # (t - 1) F_t
    remaining: Float[Array, " B"]  # t G_t


class Arrivals(NamedTuple):
    """What all replicates meet in one round; with a leading axis, in all of them."""

    task: Int[Array, " B"]
    features: Float[Array, "s d B"]
    perturbation: Float[Array, "M B"]


def prepare(setting: Setting) -> Run:
    """All replicates of a setting in one program."""
    constants = constants_of(Params(num_experts=setting.num_experts))

    @jax.jit
    def simulate(key, truths):
        def body(number, carry):
            arrivals = draw(jax.random.fold_in(key, number), setting, constants, truths)
            return take_round(constants, truths, carry, arrivals, number + 1)[0]

        carry = jax.lax.fori_loop(0, setting.num_rounds, body, begin(constants, truths))
        return carry.remaining / setting.num_rounds

    def run() -> np.ndarray:
        with jax.enable_x64(setting.precision == "float64"):
            truths = draw_truths(np.random.default_rng(setting.seed), setting, constants).transpose(1, 2, 0)
            return np.asarray(simulate(jax.random.key(setting.seed), jnp.asarray(truths)))

    return run


def play(constants: Constants, truths: Float[Array, "N d B"], arrivals: Arrivals) -> Trajectory:
    """All replicates' rounds on given arrivals, every leaf (T, ...)."""
    times = jnp.arange(1, len(arrivals.task) + 1)

    def body(carry, arrivals_and_time):
        return take_round(constants, truths, carry, *arrivals_and_time)

    return jax.lax.scan(body, begin(constants, truths), (arrivals, times))[1]


def begin(constants: Constants, truths: Float[Array, "N d B"]) -> Carry:
    """Before round 1: experts and gates are zero."""
    M, (N, d, B), dtype = constants.num_experts, truths.shape, truths.dtype
    return Carry(
        experts=jnp.zeros((M, d, B), dtype),
        gates=jnp.zeros((M, d, B), dtype),
        visits=jnp.zeros((M, B), dtype),
        converged=jnp.zeros((M, B), bool),
        is_terminated=jnp.zeros(B, bool),
        served=jnp.zeros((M, N, B), dtype),
        forgotten=jnp.zeros(B, dtype),
        remaining=jnp.zeros(B, dtype),
    )


def draw(key: Key[Array, ""], setting: Setting, constants: Constants, truths: Float[Array, "N d B"]) -> Arrivals:
    """An arrival of Definition 1 and the perturbation of (1), for each replicate."""
    (N, d, B), s, dtype = truths.shape, setting.num_samples, truths.dtype
    task_key, slot_key, strength_key, noise_key, perturbation_key = jax.random.split(key, 5)
    task, slot = jax.random.randint(task_key, (B,), 0, N), jax.random.randint(slot_key, (B,), 0, s)
    strength = jax.random.uniform(strength_key, (B,), dtype, constants.min_strength, constants.max_strength)
    noise = constants.noise_scale * jax.random.normal(noise_key, (s, d, B), dtype)
    signal = strength * constants.signal_scale * chosen(truths, task)
    perturbation = jax.random.uniform(perturbation_key, (constants.num_experts, B), dtype)
    features = jnp.where((jnp.arange(s)[:, None] == slot)[:, None], signal, noise)
    return Arrivals(task, features, constants.perturbation_scale * perturbation)


def take_round(
    constants: Constants, truths: Float[Array, "N d B"], carry: Carry, arrivals: Arrivals, time: Int[Array, ""]
) -> tuple[Carry, Trajectory]:
    """One round. Source: Eqs. (1)-(9), (14)-(16), Algorithm 1 of `continual`; flags accumulate, q = 1 in (6)."""
    M, gate_input = constants.num_experts, arrivals.features.sum(axis=0)
    truth = chosen(truths, arrivals.task)
    outputs = (carry.gates * gate_input).sum(axis=1)
    expert = jnp.argmax(outputs + arrivals.perturbation, axis=0)
    is_expert = jnp.arange(M)[:, None] == expert

    before = chosen(carry.experts, expert)
    change = projected(arrivals.features, truth - before)
    visits = carry.visits + is_expert
    probabilities, own = jax.nn.softmax(outputs, axis=0), chosen(outputs, expert)
    cost = jnp.sqrt((change**2).sum(axis=0)) + constants.balance_weight * M * chosen(visits, expert) / time / time
    slopes = cost * chosen(probabilities, expert) * (is_expert - probabilities)
    is_near = jnp.abs(outputs - own) < constants.termination_threshold
    converged = jnp.where(time <= constants.exploration_rounds, False, carry.converged | is_near)
    is_terminated = carry.is_terminated | (constants.terminate & converged.all(axis=0))
    moved = carry.gates - constants.learning_rate * slopes[:, None] * gate_input

    # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
    shifts = ((2 * before + change - 2 * truths) * change).sum(axis=1)
    total = (chosen(carry.served, expert) * shifts).sum(axis=0)
    forgotten = carry.forgotten + total
    remaining = carry.remaining + total + ((before + change - truth) ** 2).sum(axis=0)
    is_task = jnp.arange(len(truths))[:, None] == arrivals.task
    after = Carry(
        experts=carry.experts + is_expert[:, None] * change,
        gates=jnp.where(is_terminated, carry.gates, moved),
        visits=visits,
        converged=converged,
        is_terminated=is_terminated,
        served=carry.served + is_expert[:, None] * is_task,
        forgotten=forgotten,
        remaining=remaining,
    )
    return after, Trajectory(expert, remaining / time, forgotten / jnp.maximum(time - 1, 1))


def chosen(rows: Float[Array, "K *n B"], place: Int[Array, " B"]) -> Float[Array, "*n B"]:
    """A row for each replicate, as a masked sum: gathers along the last axis are slow."""
    mask = jnp.arange(len(rows))[:, None] == place
    return jnp.sum(jnp.where(mask if rows.ndim == 2 else mask[:, None], rows, 0), axis=0)


def projected(features: Float[Array, "s d B"], gap: Float[Array, "d B"]) -> Float[Array, "d B"]:
    """P gap, with P the projector on the samples of (5), by modified Gram-Schmidt."""
    left = gap  # what the span of the samples leaves of it
    columns = list(features)
    for place, pivot in enumerate(columns):
        inverse = 1 / (pivot**2).sum(axis=0)
        for later in range(place + 1, len(columns)):
            columns[later] = columns[later] - (pivot * columns[later]).sum(axis=0) * inverse * pivot
        left = left - (pivot * left).sum(axis=0) * inverse * pivot
    return gap - left
