"""Policies, which choose a slot's merging weights and learn from its rewards.

A policy is for one replicate and needs no `System`. Your own loop calls it with its observations::

    policy = policies.named("tanbr", dims)
    memory = policy.begin(key, dims, params)
    choose, learn = jax.jit(policy.choose), jax.jit(policy.learn)
    for t in range(1, num_slots + 1):
        now, later = jax.random.split(jax.random.fold_in(key, t))
        mix = ...                                               # psi_t, estimated shares of the tasks (V,)
        pick = choose(now, memory, mix, t, params)
        rewards, counts = serve_a_slot_with(pick.weights)       # mean reward and number of requests of each task
        feedback = Feedback(jnp.asarray(rewards), jnp.asarray(counts))
        network.check_rewards(feedback)                         # a compiled `learn` can only ignore bad rewards
        memory = learn(later, memory, pick, mix, feedback, t, params)

Weights (K,) are padded with 0 beyond `num_experts`.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core.constraints import AT_LEAST_0, SHARE, is_known
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.gating import best_expert
from moe_theory.core.numerics import Scalar
from moe_theory.merging import network, tree
from moe_theory.merging import uncertainty as uncertainties
from moe_theory.merging.network import Factors, History, NetworkWeights
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback, check_experts, is_empty_slot, slot_reward
from moe_theory.merging.tree import Tree, truncated
from moe_theory.merging.uncertainty import EXACT as EXACT
from moe_theory.merging.uncertainty import UNCERTAINTIES as UNCERTAINTIES
from moe_theory.merging.uncertainty import GradientNorm, NormCache, Uncertainty
from moe_theory.merging.weights import equal_weights, existing, like_tasks, uniform_weights

TANBR = "tanbr"  # a name of `POLICIES`
NUCB = "nucb"  # a name of `POLICIES`
UNIFORM = "uniform"  # a name of `POLICIES`
AVERAGE = "average"  # a name of `POLICIES`
MIX = "mix"  # a name of `POLICIES`
BEST_EXPERT = "best-expert"  # a name of `POLICIES`
GRADIENT = "gradient"  # a name of `POLICIES`
# `benchmarks/tune_testbed.py` found these best among equally many random settings of each policy, on other streams.
TUNED: dict[str, Mapping[str, float]] = {
    TANBR: {
        "exploration": 0.19,
        "learning_rate": 1.0,
        "smoothness": 0.88,
        "split_constant": 0.14,
        "smoothness_ratio": 0.7,
    },
    NUCB: {"exploration": 0.045, "learning_rate": 2.9},
}
WARM_SLOTS = 10  # first slots of a warm start, which use weights equal to the task mix
GRADIENT_NOISE = 0.5  # standard deviation of the logits
GRADIENT_RATE = 0.3  # step size on the logits' weights
BASELINE_RATE = 0.05  # weight of the last slot in the baseline

PRNGKey = Key[Array, ""]  # key of one replicate
Mix = Float[Array, " V"]  # psi, estimated shares of the tasks
Slot = Int[Array, ""]  # number of the slot, from 1
Memory = Any  # a NamedTuple of arrays. Its structure and types stay the same from slot to slot


class Pick(NamedTuple):
    """Weights chosen for a slot, and the numbers behind the choice."""

    weights: Annotated[Float[Array, " K"], SHARE]  # x_t on the simplex, at most B of them above 0
    candidate: Annotated[Int[Array, ""], AT_LEAST_0]  # index among the policy's candidates, 0 if there is only one
    num_candidates: Int[Array, ""]  # N_t
    depth: Int[Array, ""]  # h_t of the leaf picked, 0 without a tree
    max_depth: Int[Array, ""]  # H(t) of the tree, 0 without one
    bonus: Annotated[Float[Array, ""], AT_LEAST_0]  # last term of (4), gamma |g / sqrt(w)| by Z^-1, 0 without a network
    prediction: Float[Array, ""]  # psi' f(x, theta), 0 without a network
    left_out: Annotated[Int[Array, ""], AT_LEAST_0]  # splits that the tree had no room for, so far
    found: Any = None  # results of the choice that `learn` can reuse. They are not in an `Info`


class Policy(NamedTuple):
    """Rule that chooses weights. It is hashable, and equal for equal arguments.

    Examples:
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import merging
        >>> dims, params = merging.Dims(max_experts=2, num_tasks=2), merging.Params(num_experts=2, max_active=2)
        >>> policy, key = merging.policies.named("average", dims), mt.root_key(0)
        >>> mix, slot = jnp.array([0.5, 0.5]), jnp.array(1)
        >>> pick = policy.choose(key, policy.begin(key, dims, params), mix, slot, params)
        >>> pick.weights.tolist()
        [0.5, 0.5]
    """

    begin: Callable[[PRNGKey, Dims, Params], Memory]
    choose: Callable[[PRNGKey, Memory, Mix, Slot, Params], Pick]  # (key, memory, mix, t, params), in slot t
    # (key, memory, pick, mix, feedback, t, params)
    learn: Callable[[PRNGKey, Memory, Pick, Mix, Feedback, Slot, Params], Memory]


@functools.lru_cache
def named(policy: str, dims: Dims, uncertainty: str = EXACT) -> Policy:
    """Return the policy called `policy`. Equal arguments give the same object.

    Args:
        uncertainty: how a neural policy computes the norm by Z^-1.
    Raises: UnknownNameError for an unknown name.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.merging import Dims, Params, policies
        >>> dims = Dims(max_experts=2, num_tasks=2)
        >>> tanbr = policies.named("tanbr", dims)
        >>> memory = tanbr.begin(mt.root_key(0), dims, Params(num_experts=2, max_active=2))
        >>> int(memory.tree.active.sum())  # the root alone
        1
        >>> policies.named("tanbar", dims)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.UnknownNameError: unknown policy 'tanbar'. Did you mean 'tanbr'? ...
    """
    if policy not in POLICIES:
        raise unknown_name("policy", policy, POLICIES)
    if uncertainty not in UNCERTAINTIES:
        raise unknown_name("uncertainty", uncertainty, UNCERTAINTIES)
    return POLICIES[policy](dims, uncertainty)


class Learner(NamedTuple):
    """State of a neural policy: theta, theta_0, Z and the observed rewards."""

    weights: NetworkWeights  # theta_{t-1}
    start: NetworkWeights  # theta_0
    certainty: Any  # Z_{t-1}, in the chosen form
    history: History


class TanbrMemory(NamedTuple):
    """State that Tanbr carries from slot to slot."""

    learner: Learner
    tree: Tree
    arms: Int[Array, " C"]  # index of each leaf's candidate in the history, -1 before its first pull
    judged: NormCache | None  # last norms of the leaves' candidates, row by row, and of the warm start's candidate


def _tanbr(dims: Dims, uncertainty: str) -> Policy:
    """Return Algorithm 1. Candidates are the tree's rows, then the weights of the warm start. Ties go to the first."""
    form = uncertainties.named(uncertainty, dims)

    def begin(key: PRNGKey, dims: Dims, params: Params) -> TanbrMemory:
        network_key, tree_key = jax.random.split(key)
        return TanbrMemory(
            learner=_begin_learner(network_key, form, dims, params),
            tree=tree.begin(tree_key, dims, params),
            arms=jnp.full((dims.max_leaves,), -1, jnp.int32),
            judged=uncertainties.empty_cache(form, dims, dims.max_leaves + 1, params),
        )

    def choose(key: PRNGKey, memory: TanbrMemory, mix: Mix, time: Slot, params: Params) -> Pick:
        del key
        leaves = memory.tree
        is_warm = jnp.asarray(params.warm_start, bool)
        weights_like_mix = truncated(like_tasks(mix, dims.max_experts), params.max_active)
        points = jnp.concatenate([leaves.point, weights_like_mix.astype(leaves.point.dtype)[None]])
        predictions, factors = _predict(memory.learner, points, mix, time, dims)
        leaf_sizes = jnp.append(tree.leaf_terms(leaves.depth, params).astype(predictions.dtype), 0)
        is_tried_first = is_warm & (time <= WARM_SLOTS) & (jnp.arange(len(points)) == dims.max_leaves)
        values = jnp.where(is_tried_first, jnp.inf, predictions + leaf_sizes)
        exists = jnp.append(leaves.active, is_warm)
        candidate, norm, work = uncertainties.best(
            form, memory.learner.certainty, memory.judged, factors, values=values, wanted=exists, params=params
        )
        return Pick(
            weights=points[candidate],
            candidate=candidate,
            num_candidates=jnp.sum(leaves.active, dtype=jnp.int32) + is_warm,
            depth=jnp.append(leaves.depth, 0)[candidate],
            max_depth=jnp.max(jnp.where(leaves.active, leaves.depth, 0)),
            bonus=_bonus(norm, time, dims, params),
            prediction=predictions[candidate],
            left_out=leaves.left_out,
            found=work,
        )

    def learn(
        key: PRNGKey, memory: TanbrMemory, pick: Pick, mix: Mix, feedback: Feedback, time: Slot, params: Params
    ) -> TanbrMemory:
        is_leaf = pick.candidate < dims.max_leaves  # or else the warm start's candidate
        leaf = jnp.where(is_leaf, pick.candidate, 0)
        earlier_arm = jnp.where(is_leaf, memory.arms[leaf], -1)
        arm = jnp.where(earlier_arm >= 0, earlier_arm, memory.learner.history.num_arms)
        judged = memory.judged
        norm = None
        if pick.found is not None:
            judged, norm = pick.found
        learner = _update(
            form, dims, params, memory.learner, arm=arm, point=pick.weights, mix=mix, feedback=feedback, norm=norm
        )
        leaves, split = tree.split_leaf(key, memory.tree, leaf, jnp.asarray(time, jnp.int32), params)
        arms = memory.arms.at[leaf].set(jnp.where(split.happened, -1, arm))
        unchanged = (memory.tree, memory.arms)  # if no leaf was pulled
        leaves, arms = jax.tree.map(lambda new, old: jnp.where(is_leaf, new, old), (leaves, arms), unchanged)
        return TanbrMemory(learner, leaves, arms, judged)

    return Policy(begin, choose, learn)


def _nucb(dims: Dims, uncertainty: str) -> Policy:
    """Return Tanbr's network and bounds, on `Dims.num_candidates` new random weights per slot. Source: Sec. V-A, iv."""
    form = uncertainties.named(uncertainty, dims)

    def begin(key: PRNGKey, dims: Dims, params: Params) -> Learner:
        return _begin_learner(key, form, dims, params)

    def choose(key: PRNGKey, memory: Learner, mix: Mix, time: Slot, params: Params) -> Pick:
        points = _random_weights(key, dims, params)
        predictions, factors = _predict(memory, points, mix, time, dims)
        norms = jnp.sqrt(form.squared_norms(memory.certainty, factors, params))
        bonuses = _bonus(norms, time, dims, params)
        candidate = jnp.argmax(predictions + bonuses).astype(jnp.int32)
        pick = plain_pick(points[candidate], candidate, dims.num_candidates)
        return pick._replace(bonus=bonuses[candidate], prediction=predictions[candidate])

    def learn(
        key: PRNGKey, memory: Learner, pick: Pick, mix: Mix, feedback: Feedback, time: Slot, params: Params
    ) -> Learner:
        del key, time
        new_arm = memory.history.num_arms
        return _update(form, dims, params, memory, arm=new_arm, point=pick.weights, mix=mix, feedback=feedback)

    return Policy(begin, choose, learn)


def _random_weights(key: PRNGKey, dims: Dims, params: Params) -> Float[Array, "n K"]:
    exists = existing(dims.max_experts, params.num_experts)
    keys = jax.random.split(key, dims.num_candidates)
    return jax.vmap(lambda key: truncated(uniform_weights(key, exists), params.max_active))(keys)


def _begin_learner(key: PRNGKey, form: Uncertainty, dims: Dims, params: Params) -> Learner:
    start = network.draw(key, dims)
    return Learner(start, start=start, certainty=form.begin(params), history=network.empty_history(dims))


def _predict(
    learner: Learner, points: Float[Array, "C K"], mix: Mix, time: Int[Scalar, ""], dims: Dims
) -> tuple[Float[Array, " C"], Factors]:
    """Return psi' f, the first term of Eq. (4), NaN past the memory's last slot, and the gradients of psi' f."""
    if is_known(time) and int(time) > dims.max_rounds:
        raise InvalidValueError(
            f"slot {int(time)} must be at most max_rounds={dims.max_rounds}, for which memory was allocated. "
            "Raise Dims.max_rounds."
        )
    predictions, factors = network.factors(learner.weights, points, mix)
    return _nan_past_memory(predictions, time, dims), factors


def _bonus(norms: Float[Array, "*C"], time: Int[Scalar, ""], dims: Dims, params: Params) -> Float[Array, "*C"]:
    """Return gamma |g / sqrt(w)| by Z^-1, the last term of Eq. (4), NaN past the memory's last slot."""
    return _nan_past_memory(jnp.asarray(params.exploration, norms.dtype) * norms, time, dims)


def _nan_past_memory(values: Float[Array, "*C"], time: Int[Scalar, ""], dims: Dims) -> Float[Array, "*C"]:
    return jnp.where(time <= dims.max_rounds, values, jnp.nan)


def _update(
    form: Uncertainty,
    dims: Dims,
    params: Params,
    learner: Learner,
    arm: Int[Array, ""],
    point: Float[Array, " K"],
    mix: Mix,
    feedback: Feedback,
    norm: GradientNorm | None = None,
) -> Learner:
    """Update Z with the gradient at theta_{t-1}, then take J gradient steps (Alg. 1, lines 13 and 14)."""
    if is_known(feedback):
        network.check_rewards(feedback)
    _, factors = network.factors(learner.weights, point[None], mix)
    factors = jax.tree.map(lambda leaf: leaf[0], factors)
    if form.measure is not None:
        measure = functools.partial(form.measure, learner.certainty, factors, params)
        # A norm by the Z of another slot is measured again.
        norm = measure() if norm is None else lax.cond(norm.slots == learner.certainty.slots, lambda: norm, measure)
    certainty = form.add(learner.certainty, factors, norm, params)
    history = network.record(learner.history, arm, point, feedback)
    weights = network.descend(history, learner.weights, learner.start, dims, params)
    return Learner(weights, start=learner.start, certainty=certainty, history=history)


class _Exists(NamedTuple):
    exists: Bool[Array, " K"]  # False for padded experts


class _ExpertRewards(NamedTuple):
    exists: Bool[Array, " K"]
    counts: Int[Array, " K"]  # slots, not empty, that an expert served alone
    sums: Float[Array, " K"]  # of these slots' mean rewards


class _Logits(NamedTuple):
    exists: Bool[Array, " K"]
    weights: Float[Array, "K V+1"]  # W, whose last column multiplies a constant 1
    baseline: Float[Array, ""]  # moving average of rewards
    noise: Float[Array, " K"]  # noise of the next slot's logits, standard normal


def plain_pick(
    weights: Float[Array, " K"], candidate: Int[Array, ""] | None = None, num_candidates: int | Int[Array, ""] = 1
) -> Pick:
    """Return the pick of a policy without a tree or a network.

    Args:
        candidate: index of these weights among the `num_candidates`.

    Examples:
        >>> import jax.numpy as jnp
        >>> from moe_theory.merging import policies
        >>> pick = policies.plain_pick(jnp.array([0.5, 0.5]))
        >>> int(pick.candidate), int(pick.num_candidates), float(pick.bonus)
        (0, 1, 0.0)
    """
    zero = jnp.zeros((), weights.dtype)
    whole_zero = jnp.zeros((), jnp.int32)
    return Pick(
        weights=weights,
        candidate=whole_zero if candidate is None else candidate,
        num_candidates=jnp.asarray(num_candidates, jnp.int32),
        depth=whole_zero,
        max_depth=whole_zero,
        bonus=zero,
        prediction=zero,
        left_out=whole_zero,
    )


def _begin(key: PRNGKey, dims: Dims, params: Params) -> _Exists:
    del key
    return _Exists(existing(dims.max_experts, params.num_experts))


def _begin_mix(key: PRNGKey, dims: Dims, params: Params) -> _Exists:
    check_experts("policy 'mix'", dims, params)
    return _begin(key, dims, params)


def _without_learning(
    weights_of: Callable[[PRNGKey, Bool[Array, " K"], Mix], Float[Array, " K"]],
    begin: Callable[[PRNGKey, Dims, Params], _Exists] = _begin,
) -> Policy:
    def choose(key: PRNGKey, memory: _Exists, mix: Mix, time: Slot, params: Params) -> Pick:
        del time
        return plain_pick(truncated(weights_of(key, memory.exists, mix), params.max_active))

    return Policy(begin, choose, learn=lambda key, memory, *observed: memory)


def _learn_experts(
    key: PRNGKey, memory: _ExpertRewards, pick: Pick, mix: Mix, feedback: Feedback, time: Slot, params: Params
) -> _ExpertRewards:
    del key, mix, time, params
    is_tried = jnp.arange(memory.counts.shape[0], dtype=jnp.int32) == pick.candidate
    is_tried &= ~is_empty_slot(feedback)
    sums = memory.sums + jnp.where(is_tried, slot_reward(feedback), 0)
    return _ExpertRewards(memory.exists, memory.counts + is_tried.astype(jnp.int32), sums)


def _begin_experts(key: PRNGKey, dims: Dims, params: Params) -> _ExpertRewards:
    del key
    exists = existing(dims.max_experts, params.num_experts)
    counts = jnp.zeros(exists.shape, jnp.int32)
    return _ExpertRewards(exists, counts=counts, sums=jnp.zeros(exists.shape, jnp.result_type(float)))


def _choose_expert(key: PRNGKey, memory: _ExpertRewards, mix: Mix, time: Slot, params: Params) -> Pick:
    """Return the weights of one expert, which UCB1 chooses. Experts without a slot come first."""
    del key, mix, params
    counts = memory.counts.astype(memory.sums.dtype)
    divisors = jnp.maximum(counts, 1)
    bonus = jnp.sqrt(2 * jnp.log(time.astype(counts.dtype)) / divisors)
    scores = jnp.where(counts > 0, memory.sums / divisors + bonus, jnp.inf)
    index, is_best = best_expert(scores, memory.exists)
    return plain_pick(is_best.astype(counts.dtype), index, num_candidates=jnp.sum(memory.exists, dtype=jnp.int32))


def _begin_gradient(key: PRNGKey, dims: Dims, params: Params) -> _Logits:
    exists = existing(dims.max_experts, params.num_experts)
    dtype = jnp.result_type(float)
    weights = jnp.zeros((dims.max_experts, dims.num_tasks + 1), dtype)
    noise = jax.random.normal(key, exists.shape, dtype)
    return _Logits(exists, weights=weights, baseline=jnp.zeros((), dtype), noise=noise)


def _choose_softmax(key: PRNGKey, memory: _Logits, mix: Mix, time: Slot, params: Params) -> Pick:
    """Return x = softmax(W (psi, 1) + noise), truncated to the B largest."""
    del key, time
    logits = jnp.sum(memory.weights * _with_constant(mix), axis=1) + GRADIENT_NOISE * memory.noise
    weights = jax.nn.softmax(jnp.where(memory.exists, logits, -jnp.inf))
    return plain_pick(truncated(weights, params.max_active))


def _learn_gradient(
    key: PRNGKey, memory: _Logits, pick: Pick, mix: Mix, feedback: Feedback, time: Slot, params: Params
) -> _Logits:
    """Step by REINFORCE along (r - baseline) grad_W log p(logits), where p is the Gaussian of the noisy logits."""
    del pick, params
    reward = jnp.where(is_empty_slot(feedback), memory.baseline, slot_reward(feedback))
    gain = jnp.where(time > 1, reward - memory.baseline, 0)
    score = jnp.where(memory.exists, memory.noise, 0) / GRADIENT_NOISE
    rate = jnp.where(time > 1, BASELINE_RATE, 1).astype(reward.dtype)  # the first reward is the first baseline
    return _Logits(
        exists=memory.exists,
        weights=memory.weights + GRADIENT_RATE * gain * score[:, None] * _with_constant(mix),
        baseline=memory.baseline + rate * (reward - memory.baseline),
        noise=jax.random.normal(key, memory.noise.shape, memory.noise.dtype),
    )


def _with_constant(mix: Mix) -> Float[Array, "1 V+1"]:
    return jnp.concatenate([mix, jnp.ones((1,), mix.dtype)])[None, :]


def _always(policy: Policy) -> Callable[[Dims, str], Policy]:
    return lambda dims, uncertainty: policy


# Name -> function that builds the policy from sizes and the name of an uncertainty.
POLICIES: dict[str, Callable[[Dims, str], Policy]] = {
    TANBR: _tanbr,
    NUCB: _nucb,
    UNIFORM: _always(_without_learning(lambda key, exists, mix: uniform_weights(key, exists))),
    AVERAGE: _always(_without_learning(lambda key, exists, mix: equal_weights(exists))),
    MIX: _always(_without_learning(lambda key, exists, mix: like_tasks(mix, exists.shape[0]), _begin_mix)),
    BEST_EXPERT: _always(Policy(_begin_experts, _choose_expert, _learn_experts)),
    GRADIENT: _always(Policy(_begin_gradient, _choose_softmax, _learn_gradient)),
}
