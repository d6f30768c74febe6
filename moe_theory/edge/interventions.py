"""Runs of Algorithm 1 that lack a cause: one that we suppose for a statement's failure, or one that it credits.

These runs use the grids of the limits. With another router, signals are orthogonal and strengths equal, so that one run
serves all readings.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.core.tasks import ORTHOGONAL
from moe_theory.edge import policies
from moe_theory.edge.algorithm import State, system
from moe_theory.edge.arrivals import Arrival
from moe_theory.edge.experiments import BY_RATE, BY_SCALE
from moe_theory.edge.params import Params
from moe_theory.verification.claim import Overrides, Selection

TIER = "interventions"  # a quick check skips this tier


def own_kind(gate_outputs: Float[Array, " M"], state: State, arrival: Arrival, params: Params) -> Float[Array, " M"]:
    """Return scores that prefer idle servers of the arriving task type, where server m has type m mod N."""
    del params
    kinds = jnp.arange(gate_outputs.shape[0]) % state.pool.signals.shape[0]
    return jnp.where(kinds == arrival.task, 1, 0) + arrival.uniform / 2  # below 1, to break ties by chance


def of_the_set(gate_outputs: Float[Array, " M"], state: State, arrival: Arrival, params: Params) -> Float[Array, " M"]:
    """Return scores that prefer idle servers of the arriving type's set (15), ranked by (4)."""
    outputs = state.gates @ state.pool.signals.T
    is_own = (jnp.argmax(outputs, axis=1) == arrival.task) & (jnp.ptp(outputs, axis=1) > 0)
    preference = jnp.where(is_own, 1000, 0)  # far above the scores of (4) in these runs
    return preference + policies.adaptive(gate_outputs, state, arrival, params)


def above_own_mean(
    gate_outputs: Float[Array, " M"], state: State, arrival: Arrival, params: Params
) -> Float[Array, " M"]:
    """Return a server's output for the arriving type minus its mean over types (15), perturbed as in (4)."""
    del gate_outputs, params
    signals = state.pool.signals
    is_kind = (jnp.arange(signals.shape[0]) == arrival.task)[:, None]
    signal = jnp.sum(jnp.where(is_kind, signals, 0), axis=0)
    return state.gates @ (signal - jnp.mean(signals, axis=0)) + arrival.perturbation


def first_idle(gate_outputs: Float[Array, " M"], state: State, arrival: Arrival, params: Params) -> Float[Array, " M"]:
    """Return scores by which the idle server with the lowest index gets every task."""
    del state, arrival, params
    return -jnp.arange(gate_outputs.shape[0], dtype=gate_outputs.dtype)


def variant(
    selection: Selection, name: str, changes: Callable[[float], Overrides] = lambda scale: {}, **replacements: Any
) -> Selection:
    """Return a limit's runs with parameters that depend on sigma_0 and with other fields changed."""
    cells = {cell: {**params, **changes(params["truth_scale"])} for cell, params in selection.experiment.cells.items()}
    changed = dataclasses.replace(selection.experiment, name=name, cells=cells, tier=TIER, **replacements)
    return dataclasses.replace(selection, experiment=changed)


def with_policy(selection: Selection, name: str, policy: policies.Policy) -> Selection:
    signals = {"signal_law": ORTHOGONAL, "min_strength": 1.0}
    return variant(selection, name, lambda scale: signals, system=system(selection.experiment.dims, policy))


# Gates at T1 are of order eta sigma_0 = sigma_0^1.5, outputs |v|^2 times that. These signals keep outputs at order 1.
WITHOUT_SMALL_OUTPUTS = variant(BY_SCALE, "limit-long-signals", lambda scale: {"signal_scale": 3 * scale**-0.75})
WITHOUT_NOISE = variant(BY_SCALE, "limit-no-noise", lambda scale: {"perturbation_scale": 0.0})  # r = 0 in (4)
OWN_KIND = with_policy(BY_SCALE, "limit-own-kind", own_kind)
OF_THE_SET = with_policy(BY_SCALE, "limit-of-the-set", of_the_set)
ABOVE_OWN_MEAN = with_policy(BY_SCALE, "limit-above-own-mean", above_own_mean)
FIRST_IDLE = with_policy(BY_SCALE, "limit-first-idle", first_idle)
FIRST_IDLE_BY_RATE = with_policy(BY_RATE, "limit-rate-first-idle", first_idle)
