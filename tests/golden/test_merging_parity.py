"""Tanbr against the plain NumPy loop, a slot at a time from the same state, in x64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.merging import network, policies, uncertainty
from moe_theory.merging.params import CYCLIC_SPLIT, Dims, Params
from moe_theory.merging.rewards import Feedback

from . import merging_loop as loop

TOLERANCE = 1e-10
SLOTS = 25


@pytest.mark.parametrize(
    ("num_hidden", "form", "arms_a_block"),
    [(1, uncertainty.FULL, 256), (2, uncertainty.DUAL, 4)],
)
def test_a_slot_of_tanbr_is_the_loops(num_hidden, form, arms_a_block, monkeypatch):
    """Would catch a term of (4), a threshold, a candidate, an arm, a block, a step or an absent task done otherwise."""
    monkeypatch.setattr(network, "ARMS_A_BLOCK", arms_a_block)
    dims = Dims(5, 3, SLOTS, max_leaves=16, width=6, num_hidden=num_hidden, num_steps=3)
    params = Params(
        num_experts=4,
        max_active=3,
        smoothness=0.5,
        smoothness_ratio=0.8,
        split_constant=0.15,
        confidence=0.9,
        exploration=4.0,
        regularization=0.7,
        split_rule=CYCLIC_SPLIT,
    )
    tree = {"nu": params.smoothness, "rho": params.smoothness_ratio}
    steps = {"C": params.split_constant, "delta": params.confidence}
    steps |= {"rate": params.learning_rate, "regularization": params.regularization}
    policy, rng, key = policies.named("tanbr", dims, form), np.random.default_rng(0), mt.root_key(2)
    with jax.enable_x64(True):
        begin = jax.jit(lambda key: policy.begin(key, dims, params))
        choose, learn = (jax.jit(part) for part in (policy.choose, policy.learn))
        memory = begin(key)
        bandit = loop.begin(own(memory.learner.weights), 4, 3, params.regularization)
        for t in range(1, SLOTS + 1):
            bandit.layers = own(memory.learner.weights)
            psi = rng.dirichlet(np.ones(3))
            feedback = Feedback(rng.uniform(size=3), rng.integers(0, 3, 3).astype(np.int32))
            pick = choose(key, memory, psi, t, params)
            values = loop.bounds(bandit, psi, gamma=params.exploration, **tree)
            chosen = int(np.argmax(values))
            assert (pick.candidate, pick.num_candidates) == (chosen, len(values))
            assert pick.depth == bandit.leaves[chosen].depth
            assert pick.max_depth == max(leaf.depth for leaf in bandit.leaves)
            size = params.smoothness * params.smoothness_ratio**pick.depth
            assert abs(pick.prediction + size + pick.bonus - values[chosen]) < TOLERANCE
            np.testing.assert_allclose(pick.weights[:4], bandit.leaves[chosen].point, rtol=0, atol=TOLERANCE)
            memory = learn(key, memory, pick, psi, jax.tree.map(jnp.asarray, feedback), t, params)
            loop.learn(bandit, chosen, psi, feedback.rewards, feedback.counts, t, J=3, B=3, **steps, **tree)
            for one, other in zip(own(memory.learner.weights), bandit.layers, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)
        assert len(bandit.leaves) > 5
        assert max(leaf.depth for leaf in bandit.leaves) > 2
        assert memory.learner.history.num_arms < SLOTS
        expected = np.linalg.slogdet(bandit.Z / params.regularization)[1]
        assert abs(uncertainty.named(form, dims).log_det(memory.learner.certainty, params) - expected) < 1e-9


def own(weights):
    """Layers for the loop, without the column of the expert that does not exist."""
    first, *others = (np.array(layer, np.float64) for layer in weights.layers)
    return [first[:, :4], *others]
