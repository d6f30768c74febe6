"""Merging online for a stream of requests: a policy chooses weights slot by slot and learns from their rewards.

A `Stream` says what arrives and what merged experts earn on it: this package's testbed, a file of requests for one of
its models, or a Python file of yours around any checkpoint. Only the policy is compiled, so `serve` may do anything.
"""

import functools
import importlib.util
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from moe_theory.checkpoints import ExpertTensors, find_experts
from moe_theory.checkpoints.layouts import ExpertStack
from moe_theory.checkpoints.methods import add_weighted
from moe_theory.core import constraints, programs
from moe_theory.core.errors import OWN_CODE, InvalidRewardError, InvalidStreamError, described, shortened, unknown_name
from moe_theory.core.fields import documented
from moe_theory.core.random import root_key, step_key
from moe_theory.merging import monitor as monitors
from moe_theory.merging import policies
from moe_theory.merging.params import READINGS, Dims, Params, Reading, check_params
from moe_theory.merging.rewards import Feedback, draw_tasks, mix_of
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import tasks as arrivals
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model
from moe_theory.runs.arrays import read_arrays
from moe_theory.runs.reading import read_bytes

ARRAYS = ("inputs", "labels", "tasks", "slots")  # of a file of requests
MOST_TASKS = 1 << 10  # of a file of requests: a policy's memory and its picture have a part for each


class Stream(Protocol):
    """Slots of requests, and the rewards of merged experts on them: means in [0, 1] by task, and counts.

    Examples:
        Of three experts that are merged the first alone is good:

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
        >>> found = merging.compare(Coins, ["average", "tanbr"], num_slots=40)
        >>> found["tanbr"][-1].mean_reward > found["average"][-1].mean_reward
        True
    """

    @property
    def num_experts(self) -> int:
        """K."""
        ...

    @property
    def num_tasks(self) -> int:
        """V."""
        ...

    def slots(self) -> Iterator[Any]:
        """What arrives, slot by slot."""
        ...

    def serve(self, slot: Any, weights: Float[np.ndarray, " K"]) -> Feedback:
        """Rewards (V,) of the merged experts on a slot, and counts (V,) of its requests."""
        ...


@documented
class Row(NamedTuple):
    """One slot of a run."""

    slot: int  # from 1
    weights: Float[np.ndarray, " K"]
    estimated_mix: Float[np.ndarray, " V"]  # seen by the policy
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
    """Serve up to `num_slots` slots of a stream with a policy's weights, yielding each as it is done.

    Args:
        policy: its name, of one of yours too, once it is in `policies.POLICIES`.
        params: of the policy; the number of experts is the stream's.
        monitor: how the task mix is estimated from earlier slots. The true one is unknown here.
    Raises: UnknownNameError, InvalidDimsError, InvalidParamsError or InvalidRunError, for a seed, before the first
        slot; InvalidRewardError for a slot whose rewards are not numbers in [0, 1], one a task.
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
    begun = chosen.begin(step_key(key, jnp.int32(0)), dims, params), watch.begin(dims, params)

    def serve() -> Iterator[Row]:
        memory, watched = begun
        total = 0.0
        unknown = jnp.zeros((stream.num_tasks,))  # in place of the true mix, which no monitor here may use
        for number, slot in zip(range(1, num_slots + 1), stream.slots(), strict=False):
            choose_key, learn_key = jax.random.split(step_key(key, jnp.int32(number)))
            estimate, now = watch.estimate(watched, unknown), jnp.int32(number)
            began = time.perf_counter()
            pick = jax.block_until_ready(choose(choose_key, memory, estimate, now, params))
            seconds = time.perf_counter() - began
            weights = np.asarray(pick.weights, np.float64)
            rewards, counts = checked(stream.serve(slot, weights / weights.sum()), stream.num_tasks, number)
            feedback = Feedback(jnp.asarray(rewards, estimate.dtype), jnp.asarray(counts, jnp.int32))
            memory = learn(learn_key, memory, pick, estimate, feedback, now, params)
            watched = watch.watch(watched, feedback, params)
            reward = float(np.average(rewards, weights=counts))  # pyright: ignore[reportCallIssue, reportArgumentType]
            total += reward
            yield Row(
                slot=number,
                weights=weights,
                estimated_mix=np.asarray(estimate, np.float64),
                rewards=rewards,  # pyright: ignore[reportArgumentType]
                counts=counts,  # pyright: ignore[reportArgumentType]
                reward=reward,
                mean_reward=total / number,
                num_candidates=int(pick.num_candidates),
                depth=int(pick.depth),
                seconds=seconds,
            )

    return serve()  # a generator would refuse nothing before its first slot


def compare(
    open_stream: Callable[[], Stream],
    names: Sequence[str] | None = None,
    *,
    num_slots: int = 200,
    reading: Reading | None = None,
    max_active: int | None = None,
    monitor: str = monitors.AVERAGE,
    seed: int = 0,
) -> dict[str, list[Row]]:
    """Serve the same slots with each policy's weights, each learning as `merge_online` has it.

    Args:
        open_stream: opens the stream anew, for each policy.
        names: of policies; all unless given, but for the task mix where there are not as many experts as tasks.
        num_slots: at most.
        reading: how Tanbr splits and where its candidates are; "random-split" unless given.
        max_active: B, experts that a merge may use at most; all unless given.
        monitor: how the task mix is estimated from earlier slots.
    Returns: of each policy its slots.
    Raises: UnknownNameError for a policy or monitor that does not exist; InvalidParamsError and InvalidDimsError for
        numbers that cannot be, InvalidRunError for such a seed; InvalidRewardError for rewards outside [0, 1];
        InvalidStreamError for a stream without slots.
    """
    stream = open_stream()
    if names is None:
        names = [name for name in policies.POLICIES if name != policies.MIX or stream.num_experts == stream.num_tasks]
    found = {}
    for name in names:
        params = params_for(name, stream.num_experts, reading, max_active)
        found[name] = list(merge_online(open_stream(), name, num_slots, params, monitor, seed))
    if not all(found.values()):
        raise InvalidStreamError("the stream has no slots. Name another.")
    return found


def params_for(policy: str, num_experts: int, reading: Reading | None = None, max_active: int | None = None) -> Params:
    """Parameters of a policy under a reading, with the settings that were found best for it on the testbed.

    Args:
        max_active: B, experts that a merge may use at most; all unless given.
    Raises: InvalidParamsError unless it is from 1 to the number of experts.
    """
    active = num_experts if max_active is None else max_active
    constraints.require(constraints.Count, max_active=active)
    values = {"max_active": active, "num_experts": num_experts}
    constraints.require_ordered(values, "max_active", "num_experts", "there are no more to merge")
    chosen = READINGS["random-split"] if reading is None else reading
    return chosen.params(max_active=active, **policies.TUNED.get(policy, {}))


def equal_rewards(stream: Stream, num_slots: int) -> list[float]:
    """What equal weights earn in each of the first slots, over all requests."""
    weights = np.full(stream.num_experts, 1 / stream.num_experts)
    served = [stream.serve(slot, weights) for slot in itertools.islice(stream.slots(), num_slots)]
    return [float(np.average(each.rewards, weights=each.counts)) for each in served]


def checked(served: Any, num_tasks: int, slot: int) -> Feedback:
    """Output of a stream's `serve` as arrays, checked.

    Raises: InvalidRewardError unless it is rewards in [0, 1] and whole counts, one a task, with at least one request.
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
        shown = "NaN" if math.isnan(rewards[place]) else f"{rewards[place]:g}"
        raise InvalidRewardError(
            f"slot {slot}: the reward of task {place} is {shown}, but must be a number in [0, 1], which the "
            "bandit's bounds suppose. Shift and scale it in serve."
        )
    return Feedback(rewards, counts.astype(np.int64))


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return programs.jit(function)


class Requests(Stream):
    """Requests for a model of the testbed; rewards are accuracies."""

    def __init__(self, model: Model, num_tasks: int, requests: Iterator[Examples]) -> None:
        self._model, self._num_tasks, self._requests = model, num_tasks, requests

    @property
    def num_experts(self) -> int:
        return merge.num_experts_of(self._model)

    @property
    def num_tasks(self) -> int:
        return self._num_tasks

    def slots(self) -> Iterator[Examples]:
        return self._requests

    def serve(self, slot: Examples, weights: Float[np.ndarray, " K"]) -> Feedback:
        shares = jnp.asarray(weights, jnp.float32)
        rewards, counts = _accuracies(self._model, shares, *map(jnp.asarray, slot), self._num_tasks)
        return Feedback(np.asarray(rewards, np.float64), np.asarray(counts, np.int64))


@functools.partial(programs.jit, static_argnums=5)
def _accuracies(model: Model, weights: Any, inputs: Any, labels: Any, tasks: Any, num_tasks: int) -> tuple[Any, Any]:
    logits = transformer.forward(merge.weighted(model, weights), inputs, merge.single)
    return arrivals.accuracies(logits, labels, tasks, num_tasks)


def drawn(model: Model, data: Examples, num_tasks: int, num_slots: int, size: int, drift: float, seed: int) -> Requests:
    """Slots of `size` examples each, whose tasks follow the mix of `mix_of` with this `Params.mix_drift`.

    Raises: InvalidParamsError for a negative or non-finite drift.
    """
    key = root_key(seed)
    params, dims = Params(mix_drift=drift), Dims(num_tasks=num_tasks)
    check_params(dims, params)
    tasks = draw_tasks(step_key(key, jnp.int32(0)), dims, params)
    examples = jax.tree.map(jnp.asarray, data)
    mixes = jax.vmap(lambda time: mix_of(tasks, time, params))(jnp.arange(1, num_slots + 1, dtype=jnp.int32))

    def requests() -> Iterator[Examples]:
        for number, mix in enumerate(mixes, 1):
            yield arrivals.draw_slot(step_key(key, jnp.int32(number)), examples, mix, size)

    return Requests(model, num_tasks, requests())


def from_file(path: Path, model: Model) -> Requests:
    """Requests from an .npz: `inputs` (n, s, p), and `labels`, `tasks` and `slots` (n,), whole numbers from 0.

    Raises: InvalidStreamError for a file that cannot be read or has other arrays.
    """
    try:
        arrays = read_arrays(path, ARRAYS)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InvalidStreamError(f"{path} cannot be read as an .npz of arrays ({reason}). Name another.") from None
    if missing := [name for name in ARRAYS if name not in arrays]:
        raise InvalidStreamError(
            f"{path} has no array {missing[0]!r}: a stream needs {', '.join(ARRAYS)}. Write it with np.savez."
        )
    count = arrays["inputs"].shape[:1]
    if count in ((), (0,)) or any(
        arrays[name].shape != count or arrays[name].dtype.kind not in "iu" for name in ARRAYS[1:]
    ):
        shapes = ", ".join(f"{name} {array.shape} {array.dtype}" for name, array in arrays.items())
        raise InvalidStreamError(
            f"{path} has {shapes}: labels, tasks and slots must be whole numbers, one for each input. Change it."
        )
    tokens, features = model.positions.shape[0], model.w_embedding.shape[0]
    if arrays["inputs"].shape[1:] != (tokens, features):
        raise InvalidStreamError(
            f"{path} has inputs of shape {arrays['inputs'].shape[1:]}, but the checkpoint reads {tokens} tokens of "
            f"{features} features. Name the checkpoint that the stream is for."
        )
    for name, most in {"labels": model.b_head.shape[0], "tasks": MOST_TASKS, "slots": None}.items():
        lowest, highest = int(arrays[name].min()), int(arrays[name].max())
        if lowest < 0:
            raise InvalidStreamError(f"{path}: {name} must be counted from 0, but one is {lowest}. Change it.")
        if most is not None and highest >= most:
            raise InvalidStreamError(f"{path}: {name} must be below {most}, but one is {highest}. Change it.")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(arrays["inputs"].astype(np.float32)).all()
    if not is_finite:
        raise InvalidStreamError(f"{path} has inputs that are no finite numbers in single precision. Change it.")

    def requests() -> Iterator[Examples]:
        for slot in np.unique(arrays["slots"]):
            here = arrays["slots"] == slot
            inputs = arrays["inputs"][here].astype(np.float32)
            yield Examples(inputs, arrays["labels"][here].astype(np.int32), arrays["tasks"][here].astype(np.int32))

    return Requests(model, int(arrays["tasks"].max()) + 1, requests())


def from_module(path: Path, checkpoint: Path, pattern: str | Sequence[str] | None, seed: int) -> Stream:
    """A stream that a Python file defines around the experts of any checkpoint.

    The file has `num_tasks`, a whole number; `slots(seed)`, which yields slots of any kind; and `serve(experts, slot)`,
    which returns rewards in [0, 1] and counts, one a task. `experts` are the merged arrays, by layer and by name within
    the expert, in single precision and not to be written to.
    Raises: InvalidStreamError for a file that fails or lacks one of them; InvalidCheckpointError.
    """
    specification = importlib.util.spec_from_file_location(path.stem, path)
    try:
        read_bytes(path)  # importing would wait for a pipe, and read a file of any size
    except OSError:
        specification = None
    if specification is None or specification.loader is None:
        raise InvalidStreamError(f"{path} is no Python file. Name one that has num_tasks, slots and serve.")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except OWN_CODE as failure:
        raise InvalidStreamError(f"{path} failed: {described(failure)}. Change it.") from None
    for name in ("num_tasks", "slots", "serve"):
        if not hasattr(module, name):
            raise InvalidStreamError(
                f"{path} has no {name}: a stream needs num_tasks, slots(seed), serve(experts, slot)."
            )
    if not isinstance(module.num_tasks, int) or module.num_tasks < 1:
        raise InvalidStreamError(
            f"{path}: num_tasks={module.num_tasks!r} must be a whole number of at least 1. Change it."
        )
    experts = find_experts(checkpoint, pattern)
    counts = {layer: own.num_experts for layer, own in experts.layers.items()}
    if len(set(counts.values())) > 1:
        raise InvalidStreamError(
            f"{checkpoint} has layers of different numbers of experts, {counts}: a slot's weights are the same in all "
            "layers. Select some of them by the pattern."
        )
    return _ModuleStream(module, experts, seed)


_MOST_CHANGES = 32  # of a merge by differences, after which it is merged anew: each adds its rounding


class _ModuleStream(Stream):
    def __init__(self, module: Any, experts: ExpertTensors, seed: int) -> None:
        self._module, self._experts, self._seed = module, experts, seed
        self._weights, self._num_changes = np.zeros(self.num_experts), 0
        self._merged: dict[int | str, dict[str, np.ndarray]] | None = None

    @property
    def num_experts(self) -> int:
        return next(iter(self._experts.layers.values())).num_experts

    @property
    def num_tasks(self) -> int:
        return self._module.num_tasks

    def slots(self) -> Iterator[Any]:
        return iter(self._module.slots(self._seed))

    def serve(self, slot: Any, weights: Float[np.ndarray, " K"]) -> Feedback:
        if self._merged is None or not np.array_equal(weights, self._weights):
            self._merged = self._merge(weights)
        return self._module.serve({layer: dict(own) for layer, own in self._merged.items()}, slot)

    def _merge(self, weights: Float[np.ndarray, " K"]) -> dict[int | str, dict[str, np.ndarray]]:
        """One pass over the experts whose weights have changed, or over those that have any where these are fewer."""
        changes = weights - self._weights
        is_anew = (
            self._merged is None
            or self._num_changes == _MOST_CHANGES
            or np.count_nonzero(changes) >= np.count_nonzero(weights)
        )
        self._weights, self._num_changes = weights.copy(), 0 if is_anew else self._num_changes + 1
        begin = None if is_anew else self._merged
        return {
            layer: {
                name: _summed(stack, weights, None) if begin is None else _summed(stack, changes, begin[layer][name])
                for name, stack in own.stacks.items()
            }
            for layer, own in self._experts.layers.items()
        }


def _summed(stack: ExpertStack, weights: np.ndarray, begin: np.ndarray | None) -> np.ndarray:
    try:
        return add_weighted(stack.experts(), weights, begin)
    except FloatingPointError:
        raise stack.not_finite(weights) from None
