"""NUCB, the paper's rival: the same network and bounds, on random weights instead of a tree's.

Source: Sec. V-A, baseline iv: 20 feasible weights a slot, of which a neural UCB picks one.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.merging import neural, tree
from moe_theory.merging import uncertainty as uncertainties
from moe_theory.merging.neural import Learner
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback, Pick, Policy
from moe_theory.merging.weights import existing, uniform_weights


@functools.lru_cache
def nucb(dims: Dims, uncertainty: str = uncertainties.EXACT) -> Policy:
    """NUCB for these sizes, with Z in one of the forms of `uncertainty.UNCERTAINTIES`.

    A slot's candidates are new, `Dims.num_candidates` of them; of equal bounds the first wins.
    Raises: UnknownNameError for a form there is not.
    """
    form = uncertainties.named(uncertainty, dims)

    def begin(key: Key[Array, ""], dims: Dims, params: Params) -> Learner:
        return neural.begin(key, form, dims, params)

    def choose(
        key: Key[Array, ""], memory: Learner, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
    ) -> Pick:
        points = random_weights(key, dims, params)
        wanted = jnp.ones((dims.num_candidates,), bool)
        predictions, bonuses = neural.judge(form, memory, points, wanted, mix, time, dims, params)
        candidate = jnp.argmax(predictions + bonuses).astype(jnp.int32)
        zero = jnp.zeros((), jnp.int32)
        return Pick(
            weights=points[candidate],
            candidate=candidate,
            num_candidates=jnp.full((), dims.num_candidates, jnp.int32),
            depth=zero,
            max_depth=zero,
            bonus=bonuses[candidate],
            prediction=predictions[candidate],
            left_out=zero,
        )

    def learn(
        key: Key[Array, ""],
        memory: Learner,
        pick: Pick,
        mix: Float[Array, " V"],
        feedback: Feedback,
        time: Int[Array, ""],
        params: Params,
    ) -> Learner:
        del key, time
        return neural.learn(form, memory, memory.history.num_arms, pick.weights, mix, feedback, dims, params)

    return Policy(begin, choose, learn)


def random_weights(key: Key[Array, ""], dims: Dims, params: Params) -> Float[Array, "n K"]:
    """Weights uniform on the simplex of the experts that exist, then cut to the B largest.

    An expert's draws do not depend on how many experts there is room for.
    """
    exists = existing(dims.max_experts, params.num_experts)

    def one(key: Key[Array, ""]) -> Float[Array, " K"]:
        return tree.truncated(uniform_weights(key, exists), params.max_active)

    return jax.vmap(one)(jax.random.split(key, dims.num_candidates))
