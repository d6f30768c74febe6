"""Algorithm 1 of the edge paper as the JAX documentation would have it: `jit(vmap(scan))`, batch first.

The reading `orthogonal-signal`, servers of capacity 1, tasks dropped where nobody is idle, the adaptive policy, and
gate steps one round after the completion. What a task under way will do to the gates is kept with its server, (M, M)
in all, where the package has as many slots as tasks can be under way; slots instead were no faster throughout.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Trajectory
from benchmarks.peers.textbook import batch_first
from moe_theory import edge

READING = "orthogonal-signal"


class Constants(NamedTuple):
    """What `edge.Params` holds of numbers that the rounds need, as plain Python ones."""

    num_experts: int  # M
    learning_rate: float  # eta of (13)
    perturbation_scale: float  # r in (4) is uniform on (0, lambda)
    truth_scale: float  # sigma_0, a deviation
    cluster_spread: float  # deviation of an entry of w_t around its cluster's centre
    signal_scale: float  # norm of a signal
    min_strength: float  # beta_t is uniform between these
    max_strength: float
    noise_scale: float  # sigma_t
    min_transfer_delay: int  # delays are uniform on the whole rounds between these
    max_transfer_delay: int
    min_execution_delay: int
    max_execution_delay: int


class Network(NamedTuple):
    """What one replicate keeps for the whole run."""

    truths: Float[Array, "N p"]  # the clusters' centres
    signals: Float[Array, "N p"]
    execution_delay: Int[Array, " M"]


class Arrival(NamedTuple):
    """What a replicate meets in one round; with a leading axis, in all of them."""

    task: Int[Array, ""]
    features: Float[Array, "p s"]
    truth: Float[Array, " p"]
    transfer_delay: Int[Array, " M"]
    perturbation: Float[Array, " M"]


class Carry(NamedTuple):
    """One replicate between two rounds."""

    experts: Float[Array, "M p"]
    gates: Float[Array, "M p"]
    gate_step: Float[Array, "M p"]  # of the tasks completed last, not yet taken
    busy_until: Int[Array, " M"]  # the round at whose start a server's task is done
    pending_change: Float[Array, "M p"]  # each server's task under way: what it will add to the model,
    pending_input: Float[Array, "M p"]  # the gate input it was routed by,
    pending_slopes: Float[Array, "M M"]  # and the derivatives of its pi in all gate outputs
    visits: Int[Array, " M"]
    residuals: Float[Array, "M p"]  # sum over a server's tasks i of w^(m) - w_i
    squared_error: Float[Array, ""]  # sum over all tasks i of |w^(m_i) - w_i|^2
    dropped: Int[Array, ""]
    misrouted: Int[Array, ""]
    time: Int[Array, ""]


def prepare(setting: Setting) -> Run:
    """All replicates of a setting in one program, each with a network and keys of its own."""
    constants = constants_of(edge.reading(READING).params(num_experts=setting.num_experts))

    def replicate(key: Key[Array, ""]) -> tuple[Carry, Float[Array, ""]]:
        network_key, key = jax.random.split(key)
        network = draw_network(network_key, setting, constants)

        def body(carry, key):
            return round_(constants, network, carry, draw(key, setting, constants, network))[0], None

        carry = jax.lax.scan(body, begin(constants, network), jax.random.split(key, setting.num_rounds))[0]
        return carry, carry.squared_error / jnp.maximum(jnp.sum(carry.visits), 1)

    return batch_first(replicate, setting)


def constants_of(params: edge.Params) -> Constants:
    """The numbers in `params`, none of them traced."""
    return Constants(*(np.asarray(getattr(params, name)).item() for name in Constants._fields))


def play(constants: Constants, network: Network, arrivals: Arrival) -> tuple[Carry, Trajectory]:
    """One replicate's rounds on given arrivals, every leaf (T, ...): how they leave it, and what they show."""

    def body(carry, arrival):
        return round_(constants, network, carry, arrival)

    return jax.lax.scan(body, begin(constants, network), arrivals)


def begin(constants: Constants, network: Network) -> Carry:
    """Before round 1: experts and gates are zero, all servers idle."""
    M, dtype = constants.num_experts, network.truths.dtype
    zeros = jnp.zeros((M, network.truths.shape[1]), dtype)
    count = jnp.zeros((), jnp.int32)
    return Carry(
        experts=zeros,
        gates=zeros,
        gate_step=zeros,
        busy_until=jnp.zeros(M, jnp.int32),
        pending_change=zeros,
        pending_input=zeros,
        pending_slopes=jnp.zeros((M, M), dtype),
        visits=jnp.zeros(M, jnp.int32),
        residuals=zeros,
        squared_error=jnp.zeros((), dtype),
        dropped=count,
        misrouted=count,
        time=count,
    )


def draw_network(key: Key[Array, ""], setting: Setting, constants: Constants) -> Network:
    """Centres N(0, sigma_0^2) entrywise, orthogonal signals of equal norm, and the servers' execution delays."""
    truth_key, signal_key, delay_key = jax.random.split(key, 3)
    N, p = setting.num_tasks, setting.num_features
    least, most = constants.min_execution_delay, constants.max_execution_delay
    return Network(
        truths=constants.truth_scale * jax.random.normal(truth_key, (N, p)),
        signals=constants.signal_scale * jnp.linalg.qr(jax.random.normal(signal_key, (p, N)))[0].T,
        execution_delay=jax.random.randint(delay_key, (setting.num_experts,), least, most + 1, jnp.int32),
    )


def draw(key: Key[Array, ""], setting: Setting, constants: Constants, network: Network) -> Arrival:
    """An arrival of Definition 1 with a truth of its own (6), its transfer delays, and the perturbation of (4)."""
    keys = jax.random.split(key, 7)
    p, s, servers = setting.num_features, setting.num_samples, (setting.num_experts,)
    task = jax.random.randint(keys[0], (), 0, setting.num_tasks)
    slot = jax.random.randint(keys[1], (), 0, s)
    strength = jax.random.uniform(keys[2], minval=constants.min_strength, maxval=constants.max_strength)
    noise = constants.noise_scale * jax.random.normal(keys[3], (p, s))
    least, most = constants.min_transfer_delay, constants.max_transfer_delay
    return Arrival(
        task=task,
        features=noise.at[:, slot].set(strength * network.signals[task]),
        truth=network.truths[task] + constants.cluster_spread * jax.random.normal(keys[4], (p,)),
        transfer_delay=jax.random.randint(keys[5], servers, least, most + 1, jnp.int32),
        perturbation=jax.random.uniform(keys[6], servers, maxval=constants.perturbation_scale),
    )


def round_(constants: Constants, network: Network, carry: Carry, arrival: Arrival) -> tuple[Carry, Trajectory]:
    """One round: last round's gate steps, completions, routing. Source: Eqs. (1)-(13), (20), Algorithm 1 of `edge`."""
    time, features = carry.time + 1, arrival.features
    gates = carry.gates - constants.learning_rate * carry.gate_step

    is_done = carry.busy_until == time
    moves = jnp.where(is_done[:, None], carry.pending_change, 0)
    gate_step = (jnp.linalg.norm(moves, axis=1)[:, None] * carry.pending_slopes).T @ carry.pending_input
    experts = carry.experts + moves
    residuals = carry.residuals + carry.visits[:, None] * moves
    squared_error = carry.squared_error + jnp.sum(moves * (carry.residuals + residuals))

    gate_input = features.sum(axis=1)
    outputs = gates @ gate_input
    is_idle = carry.busy_until <= time
    is_routed = is_idle.any()
    server = jnp.argmax(jnp.where(is_idle, outputs + arrival.perturbation, -jnp.inf))
    probabilities = jax.nn.softmax(outputs)
    slopes = probabilities[server] * (jax.nn.one_hot(server, constants.num_experts) - probabilities)
    missing = arrival.truth - experts[server]
    factor = jax.scipy.linalg.cho_factor(features.T @ features)
    change = features @ jax.scipy.linalg.cho_solve(factor, features.T @ missing)
    drives = network.signals @ gates[server]
    is_specialist = (drives[arrival.task] == drives.max()) & (jnp.sum(drives == drives.max()) == 1)

    at = jnp.where(is_routed, server, constants.num_experts)  # beyond the end, where writing does nothing
    visits = carry.visits.at[at].add(1, mode="drop")
    squared_error = squared_error + jnp.where(is_routed, jnp.sum(missing**2), 0)
    until = time + arrival.transfer_delay[server] + network.execution_delay[server]
    after = Carry(
        experts=experts,
        gates=gates,
        gate_step=gate_step,
        busy_until=carry.busy_until.at[at].set(until, mode="drop"),
        pending_change=carry.pending_change.at[at].set(change, mode="drop"),
        pending_input=carry.pending_input.at[at].set(gate_input, mode="drop"),
        pending_slopes=carry.pending_slopes.at[at].set(slopes, mode="drop"),
        visits=visits,
        residuals=residuals.at[at].add(-missing, mode="drop"),
        squared_error=squared_error,
        dropped=carry.dropped + ~is_routed,
        misrouted=carry.misrouted + (is_routed & ~is_specialist),
        time=time,
    )
    expert = jnp.where(is_routed, server, -1)
    return after, Trajectory(expert, squared_error / jnp.maximum(visits.sum(), 1))
