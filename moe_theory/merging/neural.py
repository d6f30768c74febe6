"""What neural policies share: a network that predicts rewards, how sure it is, and what it has learnt from."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import checks
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.numerics import Scalar
from moe_theory.merging import history as histories
from moe_theory.merging import network, uncertainty
from moe_theory.merging.history import History
from moe_theory.merging.network import Weights
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback
from moe_theory.merging.uncertainty import Uncertainty


class Learner(NamedTuple):
    """theta, theta_0, Z and the rewards seen."""

    weights: Weights  # theta_{t-1}
    start: Weights  # theta_0
    certainty: Any  # Z_{t-1}, in the form that was chosen
    history: History


def begin(key: Key[Array, ""], form: Uncertainty, dims: Dims, params: Params) -> Learner:
    """A network that has seen nothing."""
    start = network.draw(key, dims)
    return Learner(start, start, form.begin(params), histories.begin(dims))


def judge(
    form: Uncertainty,
    learner: Learner,
    points: Float[Array, "C K"],
    wanted: Bool[Array, " C"],
    mix: Float[Array, " V"],
    time: Int[Scalar, ""],
    dims: Dims,
    params: Params,
) -> tuple[Float[Array, " C"], Float[Array, " C"]]:
    """The first and the last term of Eq. (4), psi' f and gamma |g / sqrt(w)| by Z^-1, of candidates that are wanted.

    Both are NaN in slots beyond `dims.max_rounds`, which there is no memory for, so that nobody misses it.
    Raises: InvalidRunError for such a slot, where it is concrete.
    """
    if checks.is_known(time) and int(time) > dims.max_rounds:
        raise InvalidRunError(
            f"slot {int(time)} must be at most max_rounds={dims.max_rounds}, which there is memory for. "
            "Raise Dims.max_rounds."
        )
    predictions, factors = network.factors(learner.weights, points, mix)
    norms = uncertainty.norms(form, learner.certainty, factors, wanted, params)
    remembered = jnp.where(time <= dims.max_rounds, 1, jnp.nan).astype(norms.dtype)
    return remembered * predictions, remembered * jnp.asarray(params.exploration, norms.dtype) * norms


def learn(
    form: Uncertainty,
    learner: Learner,
    arm: Int[Array, ""],
    point: Float[Array, " K"],
    mix: Float[Array, " V"],
    feedback: Feedback,
    dims: Dims,
    params: Params,
) -> Learner:
    """Algorithm 1, lines 13 and 14: Z with the gradient at theta_{t-1}, then J steps.

    Raises: InvalidRewardError for rewards that are concrete and not finite.
    """
    if checks.is_known(feedback):
        histories.check_rewards(feedback)
    _, factors = network.factors(learner.weights, point[None], mix)
    certainty = form.add(learner.certainty, jax.tree.map(lambda leaf: leaf[0], factors), params)
    history = histories.record(learner.history, arm, point, feedback)
    weights = histories.descend(history, learner.weights, learner.start, dims, params)
    return Learner(weights, learner.start, certainty, history)
