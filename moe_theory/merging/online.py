"""Online merging for a stream of requests. A policy chooses weights slot by slot and learns from rewards."""

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core import constraints, programs
from moe_theory.core.errors import DeclarationError, InvalidValueError, shortened
from moe_theory.core.random import root_key, step_key
from moe_theory.merging import policies
from moe_theory.merging.monitor import AVERAGE, MONITORS
from moe_theory.merging.params import READINGS, Dims, Params, Reading, check_params
from moe_theory.merging.rewards import Feedback, draw_tasks, mix_of
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import tasks as arrivals
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model


class Stream(Protocol):
    """Slots of requests, and the rewards that merged experts earn on them.

    Rewards are means in [0, 1] by task, and come with numbers of requests.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> class Coins(merging.Stream):
        ...     num_experts, num_tasks = 3, 1
        ...     def slots(self):
        ...         return iter([4, 2] * 20)  # requests
        ...     def serve(self, slot, weights):
        ...         return merging.Feedback(np.array([weights[0]]), np.array([slot]))
        >>> first = next(merging.merge_online(Coins(), "average", num_slots=2))
        >>> isinstance(first, merging.Row), first.reward, first.counts
        (True, 0.333..., array([4]))
    """

    @property
    def num_experts(self) -> int:
        """Number K."""
        ...

    @property
    def num_tasks(self) -> int:
        """Number V."""
        ...

    def slots(self) -> Iterator[Any]:
        """Return the slots in order of arrival."""
        ...

    def serve(self, slot: Any, weights: Float[np.ndarray, " K"]) -> Feedback:
        """Return rewards (V,) of the merged experts on a slot, and counts (V,) of its requests."""
        ...


class Row(NamedTuple):
    """One slot of a run."""

    slot: int  # counted from 1
    weights: Float[np.ndarray, " K"]
    estimated_mix: Float[np.ndarray, " V"]  # the mix that the policy receives
    rewards: Float[np.ndarray, " V"]
    counts: Int[np.ndarray, " V"]
    reward: float  # mean over all requests of the slot
    mean_reward: float  # mean over all slots so far
    num_candidates: int  # candidates among which the policy chose
    depth: int  # depth of the leaf picked, 0 without a tree
    seconds: float  # duration of the choice


def merge_online(
    stream: Stream, policy: str, num_slots: int, params: Params | None = None, seed: int = 0
) -> Iterator[Row]:
    """Serve up to `num_slots` slots of a stream with a policy's weights, and yield each as soon as it is done.

    Args:
        policy: a name in `policies.POLICIES`, to which you may add.
        params: parameters of the policy. The stream sets the number of experts.
    Raises: UnknownNameError or InvalidValueError before the first slot. InvalidValueError for a slot whose rewards are
        not one number in [0, 1] per task.
    """
    params = params or Params()
    params = params._replace(num_experts=stream.num_experts, max_active=min(int(params.max_active), stream.num_experts))
    dims = Dims(max_experts=stream.num_experts, num_tasks=stream.num_tasks, max_rounds=num_slots)
    check_params(dims, params)
    chosen_policy = policies.named(policy, dims)
    monitor = MONITORS[AVERAGE]  # the true mix is unknown here
    choose = _compiled(chosen_policy.choose)
    learn = _compiled(chosen_policy.learn)
    key = root_key(seed)
    start_memory = chosen_policy.begin(step_key(key, jnp.int32(0)), dims, params)

    def serve() -> Iterator[Row]:
        memory = start_memory
        monitor_state = monitor.begin(dims, params)
        total_reward = 0.0
        unknown_mix = jnp.zeros((stream.num_tasks,))  # takes the place of the true mix
        for number, slot in zip(range(1, num_slots + 1), stream.slots(), strict=False):  # reads no slot in excess
            choose_key, learn_key = jax.random.split(step_key(key, jnp.int32(number)))
            estimate = monitor.estimate(monitor_state, unknown_mix)
            now = jnp.int32(number)
            began = time.perf_counter()
            pick = jax.block_until_ready(choose(choose_key, memory, estimate, now, params))
            seconds = time.perf_counter() - began
            weights = np.asarray(pick.weights, np.float64)
            rewards, counts = checked_feedback(stream.serve(slot, weights / weights.sum()), stream.num_tasks, number)
            feedback = Feedback(jnp.asarray(rewards, estimate.dtype), jnp.asarray(counts, jnp.int32))
            memory = learn(learn_key, memory, pick, estimate, feedback, now, params)
            monitor_state = monitor.watch(monitor_state, feedback, params)
            reward = float(np.average(rewards, weights=counts))  # pyright: ignore[reportCallIssue, reportArgumentType]
            total_reward += reward
            yield Row(
                slot=number,
                weights=weights,
                estimated_mix=np.asarray(estimate, np.float64),
                rewards=rewards,  # pyright: ignore[reportArgumentType]
                counts=counts,  # pyright: ignore[reportArgumentType]
                reward=reward,
                mean_reward=total_reward / number,
                num_candidates=int(pick.num_candidates),
                depth=int(pick.depth),
                seconds=seconds,
            )

    return serve()  # a generator would raise no error before its first slot


def compare(
    open_stream: Callable[[], Stream],
    names: Sequence[str] | None = None,
    *,
    num_slots: int = 200,
    reading: Reading | None = None,
    max_active: int | None = None,
    seed: int = 0,
) -> dict[str, list[Row]]:
    """Serve the same slots with each policy's weights, and let each policy learn.

    Args:
        open_stream: opens the stream again for each policy.
        names: policies, by default all, without the policy "mix" unless there are as many experts as tasks.
        num_slots: largest number of slots.
        reading: how Tanbr splits boxes and places candidates, "random-split" by default.
        max_active: B, the largest number of experts in a merge, by default all.
    Returns: each policy's slots.
    Raises: UnknownNameError for an unknown policy, InvalidValueError for impossible numbers, seeds or rewards, or
        DeclarationError for a stream without slots.
    """
    stream = open_stream()
    if names is None:
        names = [name for name in policies.POLICIES if name != policies.MIX or stream.num_experts == stream.num_tasks]
    outcomes = {}
    for name in names:
        params = params_for(name, stream.num_experts, reading, max_active)
        outcomes[name] = list(merge_online(open_stream(), name, num_slots, params, seed))
    if not all(outcomes.values()):
        raise DeclarationError("the stream has no slots. Pass another stream.")
    return outcomes


class RewardEstimate(NamedTuple):
    """Mean reward of a policy over replicates, with a 95 % interval by Student's t."""

    mean: float
    low: float
    high: float
    rewards: Float[np.ndarray, " B"]  # mean reward of each replicate


def compare_replicates(
    open_stream: Callable[[int], Stream],
    replicates: int,
    names: Sequence[str] | None = None,
    *,
    num_slots: int = 200,
    reading: Reading | None = None,
    max_active: int | None = None,
) -> dict[str, RewardEstimate]:
    """Return each policy's mean reward over replicates, where replicate r serves `open_stream(r)` with seed r.

    Args:
        replicates: at least 2. All policies serve the same slots.
        names, num_slots, reading, max_active: as for `compare`.
    Raises: the errors of `compare`, and InvalidValueError for fewer than 2 replicates.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> class Coins(merging.Stream):
        ...     num_experts, num_tasks = 2, 1
        ...     def __init__(self, seed):
        ...         self.rng = np.random.default_rng(seed)
        ...     def slots(self):
        ...         return iter(self.rng.integers(1, 9, size=20))
        ...     def serve(self, slot, weights):
        ...         return merging.Feedback(self.rng.binomial(slot, weights[:1]) / slot, np.array([slot]))
        >>> estimate = merging.compare_replicates(Coins, 4, ["average"], num_slots=20)["average"]
        >>> estimate.low < estimate.mean < estimate.high, estimate.rewards.shape
        (True, (4,))
        >>> len(merging.compare(lambda: Coins(0), ["average"], num_slots=3)["average"])
        3
    """
    constraints.require(constraints.Whole(2), replicates=replicates)
    rewards: dict[str, list[float]] = {}
    for replicate in range(replicates):
        outcomes = compare(
            functools.partial(open_stream, replicate),
            names,
            num_slots=num_slots,
            reading=reading,
            max_active=max_active,
            seed=replicate,
        )
        for name, rows in outcomes.items():
            rewards.setdefault(name, []).append(rows[-1].mean_reward)
    return {name: _estimate(np.array(values)) for name, values in rewards.items()}


def _estimate(rewards: Float[np.ndarray, " B"]) -> RewardEstimate:
    from scipy import stats  # takes half a second to import, and only this function needs it

    mean = float(rewards.mean())
    reach = float(stats.t.ppf(0.975, len(rewards) - 1) * rewards.std(ddof=1) / math.sqrt(len(rewards)))
    return RewardEstimate(mean, low=mean - reach, high=mean + reach, rewards=rewards)


def params_for(policy: str, num_experts: int, reading: Reading | None = None, max_active: int | None = None) -> Params:
    """Return the parameters of `compare` for a policy, with its tuned values, but without `num_experts`."""
    active = num_experts if max_active is None else max_active
    constraints.require(constraints.Count, max_active=active)
    values = {"max_active": active, "num_experts": num_experts}
    constraints.require_ordered(values, "max_active", "num_experts", "a merge cannot use more experts than exist")
    paper_reading = reading or READINGS["random-split"]
    return paper_reading.params(max_active=active, **policies.TUNED.get(policy, {}))


def checked_feedback(served: Any, num_tasks: int, slot: int) -> Feedback:
    """Return what a stream's `serve` returned, with rewards of 0 for tasks without requests."""
    try:
        rewards, counts = served
        rewards = np.asarray(rewards, np.float64)
        counts = np.asarray(counts, np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"slot {slot}: serve must return (rewards, counts), each with one number per task, but returned "
            f"{shortened(served)}. Change serve."
        ) from None
    for name, array in (("rewards", rewards), ("counts", counts)):
        if array.shape != (num_tasks,):
            raise InvalidValueError(
                f"slot {slot}: {name} has shape {array.shape}, but must have shape ({num_tasks},). Change serve."
            )
    if not (np.all(counts >= 0) and np.all(counts == np.floor(counts)) and counts.sum() >= 1):
        raise InvalidValueError(f"slot {slot}: counts={counts} must be whole numbers, and not all 0. Change serve.")
    rewards = np.where(counts > 0, rewards, 0)
    is_in_range = (rewards >= 0) & (rewards <= 1)
    if not np.all(is_in_range):
        task = int(np.argmax(~is_in_range))  # the first such task
        shown_reward = f"{rewards[task]:g}".replace("nan", "NaN")
        raise InvalidValueError(
            f"slot {slot}: the reward of task {task} is {shown_reward}, but the bandit's bounds need a number in "
            "[0, 1]. Shift and scale it in serve."
        )
    return Feedback(rewards, counts.astype(np.int64))


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return programs.jit(function)


class Requests(NamedTuple):
    """A `Stream` of examples for a trained model."""

    model: Model
    num_experts: int
    num_tasks: int
    requests: Iterator[Examples]

    def slots(self) -> Iterator[Examples]:
        return self.requests

    def serve(self, slot: Examples, weights: Float[np.ndarray, " K"]) -> Feedback:
        shares = jnp.asarray(weights, jnp.float32)
        rewards, counts = _accuracies(self.model, shares, jax.tree.map(jnp.asarray, slot), self.num_tasks)
        return Feedback(np.asarray(rewards, np.float64), np.asarray(counts, np.int64))


@functools.partial(programs.jit, static_argnums=3)
def _accuracies(
    model: Model, weights: Float[Array, " K"], slot: Examples, num_tasks: int
) -> tuple[Float[Array, " V"], Int[Array, " V"]]:
    """Return each task's share of right answers and number of requests."""
    logits = transformer.forward(merge.weighted(model, weights), jnp.asarray(slot.inputs), merge.single)
    return arrivals.accuracies(logits, jnp.asarray(slot.labels), jnp.asarray(slot.tasks), num_tasks)


def drawn(model: Model, data: Examples, num_tasks: int, num_slots: int, size: int, seed: int) -> Requests:
    """Return a stream of slots with `size` examples each. The tasks' shares follow `mix_of`."""
    key = root_key(seed)
    params = Params(mix_drift=0.0)
    dims = Dims(num_tasks=num_tasks)
    tasks = draw_tasks(step_key(key, jnp.int32(0)), dims, params)
    examples = jax.tree.map(jnp.asarray, data)
    times = jnp.arange(1, num_slots + 1, dtype=jnp.int32)
    mixes = jax.vmap(lambda time: mix_of(tasks, time, params))(times)

    def requests() -> Iterator[Examples]:
        for number, mix in enumerate(mixes, 1):
            yield arrivals.draw_slot(step_key(key, jnp.int32(number)), examples, mix, size)

    return Requests(model, merge.num_experts_of(model), num_tasks, requests())
