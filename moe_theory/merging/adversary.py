"""The tree alone as a `System`. An adversary picks leaves by the rules that are worst for the paper's statements.

The rule "deepest" is worst for the depth (Lemma 2). The rule "in-turn" splits the leaves of a level one after another,
which is worst for the number of leaves (Lemma 1) and for the discretization error sum_t nu_1 rho^(h_t).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.errors import unknown_name
from moe_theory.core.numerics import Scalar
from moe_theory.core.system import System
from moe_theory.merging import tree as trees
from moe_theory.merging.params import Dims, Params, check_params
from moe_theory.merging.tree import leaf_terms

SELECTIONS = (
    "shallowest",  # the shallowest leaf. Of equal ones the least pulled
    "deepest",  # the deepest leaf. Of equal ones the most pulled
    "in-turn",  # the shallowest leaf. Of equal ones the most pulled, until it is split
    "uniform",  # a random leaf
    "optimistic",  # the leaf with the largest value + nu_1 rho^h of the known `peaked_value`
)


class State(NamedTuple):
    tree: trees.Tree
    rule: Int[Array, ""]  # place among the `SELECTIONS`
    discretization: Float[Array, ""]  # sum of nu_1 rho^(h_t) so far
    rest: Float[Array, ""]  # by how much rounding has made the sum too large (Kahan)
    round: Int[Array, ""]  # slots done


class Info(NamedTuple):
    """Observables of a slot. The tree's values are those after the slot."""

    row: Int[Array, ""]  # row of the leaf picked
    depth: Int[Array, ""]  # h_t, of the leaf picked
    max_depth: Int[Array, ""]  # H(t)
    num_active: Int[Array, ""]  # N_t, leaves that meet the simplex
    num_leaves: Int[Array, ""]  # all leaves
    discretization: Float[Array, ""]  # nu_1 rho^(h_t)
    cumulative_discretization: Float[Array, ""]  # sum of these terms so far
    left_out: Int[Array, ""]  # splits without room. If there are any, no bound on the tree applies to this run


@functools.lru_cache
def one_rule(dims: Dims, selection: str) -> System:
    """Return the tree alone as a system, with leaves picked by one of the `SELECTIONS`."""
    if selection not in SELECTIONS:
        raise unknown_name("selection", selection, SELECTIONS)

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        zero = jnp.zeros((), jnp.result_type(float))
        rule = jnp.asarray(SELECTIONS.index(selection), jnp.int32)
        tree = trees.begin(key, dims, params)
        return State(tree, rule, discretization=zero, rest=zero, round=jnp.zeros((), jnp.int32))

    return System(init, _slot)


def peaked_value(points: Float[Array, "*n K"], num_experts: Int[Scalar, ""]) -> Float[Array, "*n"]:
    """Return 1 - max_k |x_k - c_k| with c_k proportional to k, the reward of the rule "optimistic"."""
    index = jnp.arange(points.shape[-1])
    ranks = jnp.where(index < num_experts, index + 1, 0).astype(points.dtype)
    return 1 - jnp.max(jnp.abs(points - ranks / jnp.sum(ranks)), axis=-1)


def select_leaf(key: Key[Array, ""], tree: trees.Tree, params: Params, rule: Int[Scalar, ""]) -> Int[Array, ""]:
    """Return the row of the leaf that the rule at place `rule` of the `SELECTIONS` picks, the first of equal leaves."""
    dtype = tree.lower.dtype
    depth = tree.depth.astype(dtype)
    count = tree.count.astype(dtype)
    value = peaked_value(tree.point, params.num_experts)
    optimistic = value + leaf_terms(tree.depth, params)
    scores_by_rule = jnp.stack(  # one row per rule, in the order of `SELECTIONS`
        [-depth, depth, -depth, jax.random.uniform(key, depth.shape, dtype), optimistic]
    )
    scores = jnp.where(tree.active, scores_by_rule[rule], -jnp.inf)
    scores_on_ties = jnp.where(jnp.asarray(rule) == SELECTIONS.index("shallowest"), -count, count)
    return jnp.argmax(jnp.where(scores == jnp.max(scores), scores_on_ties, -jnp.inf)).astype(jnp.int32)


def _slot(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
    pick_key, pull_key = jax.random.split(key)
    row = select_leaf(pick_key, state.tree, params, state.rule)
    depth = jnp.sum(jnp.where(jnp.arange(state.tree.depth.shape[0]) == row, state.tree.depth, 0), dtype=jnp.int32)
    discretization = leaf_terms(depth, params).astype(state.discretization.dtype)
    tree, _ = trees.split_leaf(pull_key, state.tree, row, state.round + 1, params)
    # Kahan's sum, because 2e5 terms in float32 would lose the differences from the bounds.
    term = discretization - state.rest
    total = state.discretization + term
    rest = (total - state.discretization) - term
    num_active = jnp.sum(tree.active, dtype=jnp.int32)
    info = Info(
        row=row,
        depth=depth,
        max_depth=jnp.max(jnp.where(tree.active, tree.depth, 0)),
        num_active=num_active,
        num_leaves=num_active + tree.inactive,
        discretization=discretization,
        cumulative_discretization=total,
        left_out=tree.left_out,
    )
    state = state._replace(tree=tree, discretization=total, rest=rest, round=state.round + 1)
    return state, info
