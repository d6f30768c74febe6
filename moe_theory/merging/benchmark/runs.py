"""Runs of policies on recorded streams: compiled ones, and plain objects, which see the slots of all streams in turn.

Every run gives the right answers in each slot of each stream. A stream's policy has a seed of its own, its number.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core import programs
from moe_theory.core.errors import OWN_CODE, InvalidSystemError, described
from moe_theory.core.random import root_key, step_key
from moe_theory.merging import monitor as monitors
from moe_theory.merging.benchmark.streams import KNOWN, NUM_SLOTS, Testbed, Traffic
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policies import Pick, Policy
from moe_theory.merging.rewards import Feedback
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import tasks as requests
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model
from moe_theory.merging.weights import ROUNDING

SLOTS_A_CALL = 32  # of a compiled policy: in between it is told how far it is
WATCH = monitors.MONITORS[monitors.AVERAGE]

Right = Int[np.ndarray, "B T"]  # right answers among the requests of a slot
Told = Callable[[int], None]  # of slots that were served since, all streams together


class PlainPolicy(Protocol):
    """A policy without JAX, for one stream: what `NAME(num_experts, num_tasks, seed)` in a user's file makes."""

    def choose(self, mix: Float[np.ndarray, " V"]) -> Float[np.ndarray, " K"]:
        """Merging weights of the slot that begins, on the simplex, for its mix as it is known or estimated."""
        ...

    def learn(self, rewards: Float[np.ndarray, " V"], counts: Int[np.ndarray, " V"]) -> None:
        """From the slot's mean reward of each task, 0 without requests, and its numbers of requests."""
        ...


Maker = Callable[[int, int, int], PlainPolicy]


def dims_of(of: Testbed) -> Dims:
    """Sizes of a policy for a testbed."""
    return Dims(max_experts=of.num_experts, num_tasks=of.num_tasks, max_rounds=NUM_SLOTS)


def params_of(of: Testbed, **settings: Any) -> Params:
    """Parameters of a policy for a testbed, all of whose experts may be merged."""
    return Params(num_experts=of.num_experts, max_active=of.num_experts, **settings)


def untold(slots: int) -> None:
    """Say nothing of the slots that were served."""


def serve_compiled(
    policy: Policy, params: Params, of: Testbed, served: Traffic, mix: str, told: Told = untold, place: str = "it"
) -> Right:
    """Right answers with the weights of a JAX policy.

    Args:
        mix: "known" or "estimated": what the policy is told of the task mix.
        place: what its user calls it, for errors.
    Raises: InvalidSystemError for a policy that fails, or weights outside the simplex.
    """
    keys = _keys(len(served.tasks))
    with blamed(place):
        carried = _begin(policy, dims_of(of), params, keys)
    tests = jax.tree.map(jnp.asarray, of.tests)

    def serve(carried: Any, part: Traffic, first: int) -> tuple[Any, Int[Array, "T B"]]:
        now = jnp.int32(first)
        with blamed(place):
            carried, right, weights = _serve(policy, params, of.model, tests, carried, keys, part, now, mix == KNOWN)
        for slot, own in enumerate(np.asarray(weights), first):
            _require_simplex(own, f"{place}, slot {slot},")
        return carried, right

    return in_parts(serve, carried, served, told)


def in_parts(
    serve: Callable[[Any, Traffic, int], tuple[Any, Int[Array, "T B"]]], carried: Any, served: Traffic, told: Told
) -> Right:
    """Right answers of a program that serves some slots of all streams at a time.

    Args:
        serve: (what it carries, the slots (T, B, ...), the number of the first) -> (what it carries on, right answers).
    """
    found: list[np.ndarray] = []
    for first in range(0, served.tasks.shape[1], SLOTS_A_CALL):
        part = Traffic(*(np.swapaxes(each[:, first : first + SLOTS_A_CALL], 0, 1) for each in served))
        carried, right = serve(carried, part, first + 1)
        found.append(np.asarray(right).T)
        told(found[-1].size)
    return np.concatenate(found, axis=1)


def _keys(num_streams: int) -> Any:
    return jax.vmap(lambda stream: jax.random.fold_in(root_key(0), stream))(jnp.arange(num_streams))


@functools.partial(programs.jit, static_argnums=(0, 1))
def _begin(policy: Policy, dims: Dims, params: Params, keys: Any) -> tuple[Any, Any]:
    def of_stream(key: Any) -> tuple[Any, Any]:
        return policy.begin(step_key(key, jnp.int32(0)), dims, params), WATCH.begin(dims, params)

    return jax.vmap(of_stream)(keys)


@functools.partial(programs.jit, static_argnums=0, donate_argnums=4)
def _serve(
    policy: Policy,
    params: Params,
    model: Model,
    tests: Examples,
    carried: tuple[Any, Any],
    keys: Any,
    slots: Traffic,  # of all streams, slot by slot (T, B, ...)
    first: Int[Array, ""],
    is_known: bool | Array,
) -> tuple[tuple[Any, Any], Int[Array, "T B"], Float[Array, "T B K"]]:
    def serve_stream(carried: tuple[Any, Any], key: Any, slot: Traffic, now: Array) -> tuple[tuple[Any, Any], Any]:
        memory, watched = carried
        choose_key, learn_key = jax.random.split(step_key(key, now))
        mix = jnp.where(is_known, slot.mix, WATCH.estimate(watched, jnp.asarray(slot.mix)))
        pick = policy.choose(choose_key, memory, mix, now, params)
        _require_pick(pick, merge.num_experts_of(model))
        feedback = answered(model, tests, pick.weights, slot)
        memory = policy.learn(learn_key, memory, pick, mix, feedback, now, params)
        return (memory, WATCH.watch(watched, feedback, params)), (num_right(feedback), pick.weights)

    def step(carried: tuple[Any, Array], slot: Traffic) -> tuple[tuple[Any, Array], Any]:
        own, now = carried
        own, found = jax.vmap(serve_stream, in_axes=(0, 0, 0, None))(own, keys, slot, now)
        return (own, now + 1), found

    (carried, _), (right, weights) = jax.lax.scan(step, (carried, first), slots)
    return carried, right, weights


def _require_pick(pick: Any, num_experts: int) -> None:
    """Raise TypeError, as it is traced, unless a policy gives a `Pick` of one weight an expert."""
    if not isinstance(pick, Pick):
        raise TypeError("choose gave no merging.Pick; `merging.policies.plain_pick(weights)` makes one")
    if jnp.shape(pick.weights) != (num_experts,):
        raise TypeError(f"choose gave weights of shape {jnp.shape(pick.weights)}, not one an expert: ({num_experts},)")


def answered(model: Model, tests: Examples, weights: Float[Array, " K"], slot: Traffic) -> Feedback:
    """Accuracy by task of experts merged with these weights on the requests of one slot of one stream."""
    served = merge.weighted(model, weights.astype(model.b_head.dtype))
    logits = transformer.forward(served, jnp.asarray(tests.inputs)[slot.places], merge.single)
    return graded(logits, tests, slot)


def graded(logits: Float[Array, "n C"], tests: Examples, slot: Traffic) -> Feedback:
    """Accuracy by task of these answers."""
    labels, kinds = jnp.asarray(tests.labels)[slot.places], jnp.asarray(slot.tasks)
    return Feedback(*requests.accuracies(logits, labels, kinds, slot.mix.shape[-1]))


def num_right(feedback: Feedback) -> Int[Array, ""]:
    """Right answers of a slot."""
    return jnp.sum(jnp.round(feedback.rewards * feedback.counts)).astype(jnp.int32)


def serve_plain(make: Maker, of: Testbed, served: Traffic, mix: str, told: Told = untold, place: str = "") -> Right:
    """Right answers with the weights of plain objects, one for each stream.

    Args:
        place: what the user calls it, for errors.
    Raises: InvalidSystemError for weights outside the simplex, or an object that fails.
    """
    num_streams, num_slots = served.tasks.shape[:2]
    params, dims, tests = params_of(of), dims_of(of), jax.tree.map(jnp.asarray, of.tests)
    watched = jax.vmap(lambda _: WATCH.begin(dims, params))(jnp.arange(num_streams))
    right = np.zeros((num_streams, num_slots), np.int64)
    with blamed(place):
        players = [make(of.num_experts, of.num_tasks, stream) for stream in range(num_streams)]
    for number in range(num_slots):
        slot = Traffic(*(each[:, number] for each in served))
        mixes = slot.mix if mix == KNOWN else np.asarray(jax.vmap(WATCH.estimate)(watched, jnp.asarray(slot.mix)))
        with blamed(f"{place}, slot {number + 1},"):
            chosen = [np.asarray(player.choose(own.copy())) for player, own in zip(players, mixes, strict=True)]
        weights = _stacked(chosen, of.num_experts, f"{place}, slot {number + 1},")
        feedback, watched, hits = _answer_all(of.model, tests, weights, slot, watched, params)
        right[:, number] = np.asarray(hits)
        rewards, counts = (np.asarray(part) for part in feedback)
        with blamed(f"{place}, slot {number + 1},"):
            for player, own, count in zip(players, rewards, counts, strict=True):
                player.learn(own.astype(np.float64), count.copy())
        told(num_streams)
    return right


@contextlib.contextmanager
def blamed(place: str) -> Iterator[None]:
    """A failure inside is of the user's object."""
    try:
        yield
    except OWN_CODE as failure:
        said = described(failure).partition("\n")[0].rstrip(".")
        raise InvalidSystemError(f"{place} failed: {said}. Change it.") from failure


def _stacked(chosen: Sequence[np.ndarray], num_experts: int, place: str) -> Float[np.ndarray, "B K"]:
    for weights in chosen:
        if weights.shape != (num_experts,):
            raise InvalidSystemError(
                f"{place} chose weights of shape {weights.shape}, not one an expert: ({num_experts},). Change it."
            )
    stacked = np.stack(chosen)
    _require_simplex(stacked, place)
    return stacked.astype(np.float32)


def _require_simplex(weights: np.ndarray, place: str) -> None:
    is_of = (weights >= 0).all(axis=1) & (np.abs(weights.sum(axis=1) - 1) <= ROUNDING)  # false of NaN
    if not is_of.all():
        stream = int(np.argmin(is_of))
        raise InvalidSystemError(
            f"{place} chose weights {np.round(weights[stream], 3).tolist()} on stream {stream}, which are not on the "
            "simplex: at least 0, with sum 1. Divide them by their sum."
        )


@programs.jit
def _answer_all(
    model: Model, tests: Examples, weights: Float[Array, "B K"], slot: Traffic, watched: Any, params: Params
) -> tuple[Feedback, Any, Int[Array, " B"]]:
    feedback = jax.vmap(answered, in_axes=(None, None, 0, 0))(model, tests, weights, slot)
    watched = jax.vmap(WATCH.watch, in_axes=(0, 0, None))(watched, feedback, params)
    return feedback, watched, jax.vmap(num_right)(feedback)
