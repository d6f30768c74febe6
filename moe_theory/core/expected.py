"""Expected distances of an expert to the ground truth of each task, and how learning a task changes them.

Experts influence the gates only through the locality loss, which needs only these distances. Write D_nk = |w_n -
w_k|^2, u_n = v_n/|v_n|, c = (d - s)/(d - 1). For an expert w let

    e_k = E|w - w_k|^2,  a_k = E w.u_k,  k = 1, ..., N.

Task n always reveals the part x = (w - w_n).u_n of the residual, and on average a fraction 1 - c of the rest:

    |w' - w|^2 = x^2 + (1 - c) (e_n - x^2)
    e_k <- D_nk + c [e_k - (a_n - w_k.u_n)^2 - D_nk + ((w_n - w_k).u_n)^2]
    a_k <- a_k + (1 - c) (w_n.u_k - a_k) - c x (u_n.u_k)

Let an arrival's ground truth be w_n + z, where the entries of z are N(0, tau^2), and let it have the signal of its task
type. Then x^2 increases by tau^2, e_n in the move by d tau^2, and e_k by d tau^2 - c (d - 1) tau^2 = s tau^2. This is
an approximation, because the square root and the squares are applied to means, not to values.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from moe_theory.core.tasks import Pool, select_row


def untaught(pool: Pool, num_experts: int) -> tuple[Float[Array, "M N"], Float[Array, "M N"]]:
    """Return e and a of every expert before the first task, when all experts are 0."""
    zeros = jnp.zeros((num_experts, len(pool.truths)), pool.truths.dtype)
    return zeros + jnp.sum(pool.truths**2, axis=1)[None, :], zeros


def taught_to(
    chosen: Bool[Array, " M"],
    pool: Pool,
    task: Int[Array, ""],
    errors: Float[Array, "M N"],
    projections: Float[Array, "M N"],
    contraction: float,
    spread: Float[ArrayLike, ""] | None = None,
) -> tuple[Float[Array, "M N"], Float[Array, "M N"], Float[Array, ""]]:
    """Return e, a and E|w' - w|^2 as in `taught`, for all experts, after one of them has learned a task."""
    mask = chosen[:, None]
    own_errors = jnp.sum(jnp.where(mask, errors, 0), axis=0)
    own_projections = jnp.sum(jnp.where(mask, projections, 0), axis=0)
    after = taught(pool, task, own_errors, own_projections, contraction=contraction, spread=spread)
    own_errors, own_projections, squared_move = after
    errors = jnp.where(mask, own_errors[None, :], errors)
    projections = jnp.where(mask, own_projections[None, :], projections)
    return errors, projections, squared_move


def taught(
    pool: Pool,
    task: Int[Array, ""],
    errors: Float[Array, " N"],
    projections: Float[Array, " N"],
    contraction: float,
    spread: Float[ArrayLike, ""] | None = None,
) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, ""]]:
    """Return an expert's e and a after it has learned a task, and E|w' - w|^2.

    Args:
        errors, projections: e and a before the task.
        contraction: c.
        spread: tau, the standard deviation of an arrival's ground truth about that of its task type, or None.
    Source: derivation above, from the corrected Lemma 16 of `continual`.
    """
    units = pool.signals / jnp.sqrt(jnp.sum(pool.signals**2, axis=1))[:, None]
    truth = select_row(pool.truths, task)
    unit = select_row(units, task)
    is_task = jnp.arange(len(errors)) == task
    gaps = jnp.sum((truth[None, :] - pool.truths) ** 2, axis=1)  # D_nk
    along = jnp.sum(pool.truths * unit[None, :], axis=1)  # w_k.u_n
    own_projection = jnp.sum(jnp.where(is_task, projections, 0))  # a_n
    own_error = jnp.sum(jnp.where(is_task, errors, 0))  # e_n
    truth_projection = jnp.sum(jnp.where(is_task, along, 0))  # w_n.u_n
    residual = own_projection - truth_projection  # x
    revealed = residual**2  # x^2
    hidden = own_error - residual**2  # e_n - x^2
    own_spread_error = jnp.zeros_like(own_error)  # s tau^2
    if spread is not None:
        num_features = pool.truths.shape[1]
        variance = jnp.square(jnp.asarray(spread, errors.dtype))
        revealed = revealed + variance
        hidden = hidden + (num_features - 1) * variance
        own_spread_error = (num_features - contraction * (num_features - 1)) * variance
    squared_move = revealed + (1 - contraction) * jnp.maximum(hidden, 0)  # e_n - x^2 may fall below 0
    forgettable = errors - (own_projection - along) ** 2 - gaps + (truth_projection - along) ** 2  # in [...] above
    differences = jnp.sum(truth[None, :] * units, axis=1) - projections  # w_n.u_k - a_k
    cosines = jnp.sum(unit[None, :] * units, axis=1)  # u_n.u_k
    return (
        jnp.maximum(gaps + contraction * forgettable, 0) + own_spread_error,
        projections + (1 - contraction) * differences - contraction * residual * cosines,
        squared_move,
    )
