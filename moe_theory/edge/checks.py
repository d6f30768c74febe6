"""What a round of mobile edge computing refuses before anything is computed: shapes always, values unless traced."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.edge.params import LONGEST_DELAY, Dims, Params, check_params
from moe_theory.edge.state import State
from moe_theory.edge.tasks import Arrival


def check_round(state: State, arrival: Arrival, params: Params, dims: Dims | None) -> Arrival:
    """Refuse what can be refused before anything is computed, values unless traced; the arrival as arrays.

    Raises: InvalidDimsError for arrays that do not fit the state or the dims; InvalidParamsError for parameters, delays
        or other values out of range.
    """
    (max_experts, num_features), num_tasks = state.experts.shape, state.pool.truths.shape[0]
    features = jnp.shape(arrival.features)
    if len(features) != 2 or features[0] != num_features:
        raise InvalidDimsError(f"features of shape {features} must be ({num_features}, s): a sample is a column.")
    if dims is None:
        require_no_dims(state)
    elif not _fits(state, dims):
        raise InvalidDimsError("the state has other dims than those passed: pass the dims that begin was given.")
    elif features[1] != dims.num_samples:
        raise InvalidDimsError(
            f"features of shape {features} must be ({num_features}, {dims.num_samples}), as num_samples="
            f"{dims.num_samples}. Change the arrival's features or Dims.num_samples."
        )
    fitting = dims or Dims(max_experts, num_tasks, num_features, features[1])
    check_params(fitting, params)
    shapes = {"truth": (num_features,), "task": ()}
    per_server = ("transfer_delay", "distance", "perturbation", "uniform")
    for name, shape in {**shapes, **dict.fromkeys(per_server, (max_experts,))}.items():
        if jnp.shape(getattr(arrival, name)) != shape:
            found = jnp.shape(getattr(arrival, name))
            raise InvalidDimsError(f"{name} of shape {found} must be {shape}. Change the arrival's {name}.")
    num_slots = state.pending_server.shape[0]
    longest = num_slots if dims is None and num_slots < max_experts else fitting.max_delay
    check_delays("transfer_delay", arrival.transfer_delay, (max_experts,), longest)
    check_totals(arrival.transfer_delay, state.execution_delay, params, longest)
    _check_values(arrival, num_tasks)
    dtype = state.experts.dtype
    return Arrival(
        *(
            jnp.asarray(leaf, jnp.int32 if name in ("task", "transfer_delay") else dtype)
            for name, leaf in arrival._asdict().items()
        )
    )


def require_no_dims(state: State) -> None:
    """Raise InvalidDimsError where the state has more than a round can know without the dims."""
    if state.reprise is not None or state.room is not None:
        raise InvalidDimsError("servers of this state hold several tasks, or tasks wait: pass dims, those of begin.")


def check_totals(transfer_delay: Any, execution_delay: Any, params: Params, longest: int | None) -> None:
    """Raise unless a transfer and an execution together, where known, take between 1 and `longest` rounds."""
    if not checks.is_known(transfer_delay, execution_delay, params.num_experts):
        return
    totals = (np.asarray(transfer_delay) + np.asarray(execution_delay))[: int(params.num_experts)]
    if totals.min() < 1:
        raise InvalidParamsError(
            f"server {totals.argmin()} has a delay of {totals.min()} rounds, transfer and execution together: a task "
            "takes at least 1 (1). Raise its transfer_delay or execution_delay."
        )
    if longest is not None and totals.max() > longest:
        raise InvalidParamsError(
            f"server {totals.argmax()} has a delay of {totals.max()} rounds, above max_delay={longest}, which the "
            "arrays are padded to. Lower the delay or raise Dims.max_delay."
        )


def check_delays(name: str, values: Any, shape: tuple[int, ...], longest: int | None) -> None:
    """Raise unless delays, where known, are whole numbers of rounds of at least 0 and at most `longest`, in `shape`."""
    if jnp.shape(values) != shape:
        raise InvalidDimsError(f"{name} of shape {jnp.shape(values)} must be {shape}, one a server. Change {name}.")
    if not checks.is_known(values):
        return
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise InvalidParamsError(f"{name} must hold whole numbers of rounds, not {values.dtype}. Change {name}.")
    is_wrong = ~np.isfinite(values) | (values < 0) | (values > LONGEST_DELAY) | (values != np.floor(values))
    if np.any(is_wrong):
        place = int(np.argmax(is_wrong))
        raise InvalidParamsError(
            f"{name}[{place}]={values[place]} must be a whole number of rounds in 0..{LONGEST_DELAY}. Change {name}."
        )
    if longest is not None and np.any(values > longest):
        place = int(np.argmax(values))
        raise InvalidParamsError(
            f"{name}[{place}]={values[place]} is above max_delay={longest}, which the arrays are padded to. Lower "
            f"{name} or raise Dims.max_delay."
        )


def _check_values(arrival: Arrival, num_tasks: int) -> None:
    if checks.is_known(arrival.task) and np.asarray(arrival.task) not in range(num_tasks):
        raise InvalidParamsError(
            f"task={arrival.task} must be a whole number in 0..{num_tasks - 1}: a kind of the pool."
        )
    for name in ("features", "truth", "distance", "perturbation", "uniform"):
        values = getattr(arrival, name)
        if checks.is_known(values) and not np.all(np.isfinite(np.asarray(values, float))):
            raise InvalidParamsError(f"{name} must be finite numbers. Change the arrival's {name}.")


def _fits(state: State, dims: Dims) -> bool:
    """Whether the state was begun with these dims, as far as they matter."""
    waiting = 0 if state.room is None else state.room.arrivals.task.shape[0]
    return (
        state.pending_slopes.shape == (dims.num_slots, dims.max_experts)
        and state.pool.truths.shape == (dims.num_tasks, dims.num_features)
        and (state.reprise is not None) == (dims.places > 1)
        and waiting == (dims.max_waiting if dims.when_busy == "wait" else 0)
    )
