"""Merging for a stream of one's own, slot by slot: a policy's weights, what they earn, what is learnt from it.

A `Stream` says what arrives and what a merge earns on it; it may be this package's testbed, a file of requests for one
of its models, or a Python file of yours around any checkpoint. Nothing of it runs inside a compiled program but the
policy, so that serving may do what it likes.
"""

import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.errors import InvalidRewardError, shortened, unknown_name
from moe_theory.core.random import root_key, step_key
from moe_theory.merging import monitor as monitors
from moe_theory.merging import policies
from moe_theory.merging.params import Dims, Params, check_params
from moe_theory.merging.policy import Feedback


class Served(NamedTuple):
    """What a slot's requests earned."""

    rewards: Float[np.ndarray, " V"]  # mean reward of each task, in [0, 1]; 0 where it had no requests
    counts: Int[np.ndarray, " V"]  # its requests

    @property
    def reward(self) -> float:
        """The mean over all requests."""
        return float(np.average(self.rewards, weights=self.counts))


class Stream(Protocol):
    """Slots of requests, and what merged experts earn on them."""

    @property
    def num_experts(self) -> int: ...

    @property
    def num_tasks(self) -> int: ...

    def slots(self) -> Iterator[Any]: ...

    def serve(self, slot: Any, weights: Float[np.ndarray, " K"]) -> Served: ...


class Row(NamedTuple):
    """One slot of a run."""

    slot: int  # from 1
    weights: Float[np.ndarray, " K"]
    estimated_mix: Float[np.ndarray, " V"]  # what the policy was told
    rewards: Float[np.ndarray, " V"]
    counts: Int[np.ndarray, " V"]
    reward: float  # of all requests
    mean_reward: float  # of all slots so far
    num_candidates: int
    depth: int
    seconds: float  # that the choice took


def merge_online(
    stream: Stream,
    policy: str,
    num_slots: int,
    params: Params | None = None,
    monitor: str = monitors.AVERAGE,
    seed: int = 0,
) -> Iterator[Row]:
    """Serve up to `num_slots` slots of a stream with the weights that a policy chooses, yielding each as it is done.

    Args:
        params: of the policy; the defaults unless given. The number of experts is the stream's.
        monitor: how the task mix is estimated from the slots before. The true one is not known here.
    Raises: UnknownNameError, InvalidDimsError or InvalidParamsError before the first slot; InvalidRewardError for a
        slot whose rewards are not numbers in [0, 1], one a task.
    """
    if monitor not in monitors.MONITORS or monitor == monitors.ORACLE:
        raise unknown_name("monitor", monitor, monitors.MONITORS.keys() - {monitors.ORACLE})
    params = Params() if params is None else params
    params = params._replace(num_experts=stream.num_experts, max_active=min(int(params.max_active), stream.num_experts))
    dims = Dims(max_experts=stream.num_experts, num_tasks=stream.num_tasks, max_rounds=num_slots)
    check_params(dims, params)
    chosen, watch = policies.named(policy, dims), monitors.MONITORS[monitor]
    choose, learn = _compiled(chosen.choose), _compiled(chosen.learn)
    key = root_key(seed)
    memory, watched = chosen.begin(step_key(key, jnp.int32(0)), dims, params), watch.begin(dims, params)
    return _slots(stream, num_slots, params, key, memory, watched, watch, choose, learn)


def _slots(
    stream: Stream,
    num_slots: int,
    params: Params,
    key: Any,
    memory: Any,
    watched: Any,
    watch: monitors.Monitor,
    choose: Callable[..., Any],
    learn: Callable[..., Any],
) -> Iterator[Row]:
    total = 0.0
    nothing = jnp.zeros((stream.num_tasks,))  # in place of the true mix, which no monitor here may look at
    for number, slot in zip(range(1, num_slots + 1), stream.slots(), strict=False):
        choose_key, learn_key = jax.random.split(step_key(key, jnp.int32(number)))
        estimate, now = watch.estimate(watched, nothing), jnp.int32(number)
        began = time.perf_counter()
        pick = jax.block_until_ready(choose(choose_key, memory, estimate, now, params))
        seconds = time.perf_counter() - began
        weights = np.asarray(pick.weights, np.float64)
        served = checked(stream.serve(slot, weights / weights.sum()), stream.num_tasks, number)
        feedback = Feedback(jnp.asarray(served.rewards, estimate.dtype), jnp.asarray(served.counts, jnp.int32))
        memory = learn(learn_key, memory, pick, estimate, feedback, now, params)
        watched = watch.watch(watched, feedback, params)
        total += served.reward
        yield Row(
            slot=number,
            weights=weights,
            estimated_mix=np.asarray(estimate, np.float64),
            rewards=served.rewards,
            counts=served.counts,
            reward=served.reward,
            mean_reward=total / number,
            num_candidates=int(pick.num_candidates),
            depth=int(pick.depth),
            seconds=seconds,
        )


def checked(served: Any, num_tasks: int, slot: int) -> Served:
    """What a stream's `serve` gave, as arrays.

    Raises: InvalidRewardError unless it is rewards in [0, 1] and whole counts, one a task, with a request at least.
    """
    try:
        rewards, counts = (np.asarray(part, np.float64) for part in served)
    except (TypeError, ValueError):
        raise InvalidRewardError(
            f"slot {slot}: serve must return (rewards, counts), one of each a task, not {shortened(served)}. Change it."
        ) from None
    for name, array in (("rewards", rewards), ("counts", counts)):
        if array.shape != (num_tasks,):
            raise InvalidRewardError(
                f"slot {slot}: {name} of shape {array.shape} must be of shape ({num_tasks},), one a task. Change serve."
            )
    if not (np.all(counts >= 0) and np.all(counts == np.floor(counts)) and counts.sum() >= 1):
        raise InvalidRewardError(
            f"slot {slot}: counts={counts} must be whole numbers, not all of them 0. Change serve."
        )
    rewards = np.where(counts > 0, rewards, 0)
    if not np.all((rewards >= 0) & (rewards <= 1)):
        place = int(np.argmax(~((rewards >= 0) & (rewards <= 1))))
        said = "NaN" if math.isnan(rewards[place]) else f"{rewards[place]:g}"
        raise InvalidRewardError(
            f"slot {slot}: the reward of task {place} is {said}, and must be a number in [0, 1]: the bounds of the "
            "bandit are for such. Change serve, say by a shift and a scale."
        )
    return Served(rewards, counts.astype(np.int64))


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function)
