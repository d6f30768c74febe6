"""What a router does: a linear map from a token, an example or a task's tag to probabilities of the experts."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from moe_theory.core.errors import InvalidDimsError, unknown_name
from moe_theory.merging.serving.dispatch import Dispatch
from moe_theory.merging.serving.soft import SoftMerge
from moe_theory.merging.testbed.transformer import Experts, MoE

TOKEN, EXAMPLE, TASK = LEVELS = ("token", "example", "task")
SOFT = 0  # in place of a number of active experts: all of them, merged


class Router(NamedTuple):
    """A linear map of one layer, i inputs: the features of a token or of an example's mean token, or V tags."""

    weights: Float[Array, "i K"]
    bias: Float[Array, " K"]


Routers = tuple[Router, ...]  # one a layer
Sampler = Callable[[Float[Array, "n t K"], int], Int[Array, "n t"]]  # (logits, layer) -> experts


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is routed, to how many experts, and how the router learns.

    Raises: UnknownNameError or InvalidDimsError for what there is not.
    """

    level: str  # TOKEN, EXAMPLE or TASK
    num_active: int = SOFT  # k, or SOFT
    is_reinforced: bool = False  # learnt by REINFORCE from right answers, with one expert a token, and no gates

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise unknown_name("level of routing", self.level, LEVELS)
        if self.num_active < 0 or (self.is_reinforced and self.num_active != 1):
            raise InvalidDimsError(
                f"num_active={self.num_active} must be at least 1, or SOFT (0) for a merge of all experts; a router "
                "that is reinforced samples 1. Change num_active."
            )


KINDS = {
    **{f"token-top-{k}": Kind(TOKEN, k) for k in (1, 2, 3)},
    **{f"task-top-{k}": Kind(TASK, k) for k in (1, 2, 3)},
    "rl": Kind(TOKEN, 1, is_reinforced=True),
    "smear-token": Kind(TOKEN),
    "smear-example": Kind(EXAMPLE),
}


def logits(
    router: Router, kind: Kind, tokens: Float[Array, "n t d"], tags: Int[Array, " n"] | None
) -> Float[Array, "n g K"]:
    """Of every token (g = t), or of every example (g = 1)."""
    if kind.level == TASK:
        assert tags is not None
        return (router.weights[tags] + router.bias)[:, None]
    seen = tokens if kind.level == TOKEN else jnp.mean(tokens, axis=1, keepdims=True)
    return seen @ router.weights + router.bias


def choose(kind: Kind, scores: Float[Array, "*n K"]) -> tuple[Int[Array, "*n k"], Float[Array, "*n k"]]:
    """The k likeliest experts and their gates, a softmax over themselves.

    The gate of a single expert is 1, where Switch multiplies by its probability: these experts are frozen, and were
    trained with gate 1.

    Source: Shazeer et al., 2017, Eq. (3) to (5).
    """
    rest, chosen = scores, []
    for _ in range(kind.num_active):  # sooner than a sort for a few of a few
        chosen.append(jnp.argmax(rest, axis=-1).astype(jnp.int32))
        rest = jnp.where(jax.nn.one_hot(chosen[-1], scores.shape[-1], dtype=bool), -jnp.inf, rest)
    experts = jnp.stack(chosen, axis=-1)
    return experts, jax.nn.softmax(jnp.take_along_axis(scores, experts, axis=-1))


def sparse(routers: Routers, kind: Kind, dispatch: Dispatch, tags: Int[Array, " n"] | None = None) -> MoE:
    """Every token to the k experts that its own router, or its example's tag, chooses."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        chosen, gates = choose(kind, logits(routers[layer], kind, tokens, tags))
        shape = (*tokens.shape[:2], kind.num_active)
        rows = [jnp.broadcast_to(part, shape).reshape(-1, kind.num_active) for part in (chosen, gates)]
        return dispatch(experts, tokens.reshape(-1, tokens.shape[-1]), rows[0], rows[1]).reshape(tokens.shape)

    return moe


def sampled(routers: Routers, kind: Kind, dispatch: Dispatch, sample: Sampler) -> MoE:
    """Every token to one expert that `sample` draws, with gate 1."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        chosen = sample(logits(routers[layer], kind, tokens, None), layer).reshape(-1, 1)
        gates = jnp.ones(chosen.shape, tokens.dtype)
        return dispatch(experts, tokens.reshape(-1, tokens.shape[-1]), chosen, gates).reshape(tokens.shape)

    return moe


def soft(routers: Routers, kind: Kind, build: SoftMerge) -> MoE:
    """A merge of all experts for every token, or for every example."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        weights = jax.nn.softmax(logits(routers[layer], kind, tokens, None))
        groups = tokens.reshape(-1, tokens.shape[1] // weights.shape[1], tokens.shape[-1])
        return build(experts, groups, weights.reshape(-1, weights.shape[-1])).reshape(tokens.shape)

    return moe


def of_one_task(routers: Routers, kind: Kind, tags: Int[Array, " n"]) -> MoE:
    """All tokens to the k experts of the first example's task: right for batches of a single task alone."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        chosen, gates = choose(kind, logits(routers[layer], kind, tokens[:1], tags[:1])[0, 0])
        own = Experts(*(part[chosen] for part in experts))
        flat = tokens.reshape(-1, tokens.shape[-1])
        hidden = jax.nn.relu(flat @ own.w_in + own.b_in[:, None])
        outputs = hidden @ own.w_out + own.b_out[:, None]
        return jnp.tensordot(gates, outputs, axes=1).reshape(tokens.shape)

    return moe


def loads(scores: Float[Array, "*n K"], chosen: Int[Array, "*n k"]) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """Each expert's share of the choices, and its mean probability."""
    num_experts = scores.shape[-1]
    picked = jax.nn.one_hot(chosen, num_experts, dtype=scores.dtype)
    return tuple(jnp.mean(part.reshape(-1, num_experts), axis=0) for part in (picked, jax.nn.softmax(scores)))  # pyright: ignore[reportReturnType]


def num_inputs(kind: Kind, width: int, num_tasks: int) -> int:
    """What a router of this kind is linear in."""
    return num_tasks if kind.level == TASK else width


def zeros(kind: Kind, widths: Sequence[int], num_experts: int, num_tasks: int) -> Routers:
    """Routers that do not yet prefer any expert, for layers of these widths."""
    return tuple(
        Router(
            jnp.zeros((num_inputs(kind, width, num_tasks), num_experts), jnp.float32),
            jnp.zeros(num_experts, jnp.float32),
        )
        for width in widths
    )
