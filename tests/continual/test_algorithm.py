"""A router's loss of one's own: catches one that is not looked at, or that reaches experts that were not chosen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import continual
from moe_theory.core.random import root_key

DIMS = continual.Dims(max_experts=4, num_tasks=2, num_features=5, num_samples=2)
PARAMS = continual.Params(num_experts=3, balance_weight=2.0, terminate=False)
POOL = continual.Pool(np.eye(5)[:2], np.eye(5)[:2], np.zeros(2, np.int32))


def nothing(visits, time, params):
    return jnp.zeros(visits.shape)


@pytest.mark.parametrize("make", [continual.system, lambda dims, **own: continual.on_pool(dims, POOL, **own)])
def test_a_loss_that_is_always_zero_is_a_weight_of_zero(make):
    own, paper = (jax.jit(system.step) for system in (make(DIMS, auxiliary=nothing), make(DIMS)))
    ours = theirs = continual.begin(DIMS, PARAMS, POOL)
    for time in range(4):
        key = jax.random.fold_in(root_key(0), time)
        ours, _ = own(key, ours, PARAMS)
        theirs, _ = paper(key, theirs, PARAMS._replace(balance_weight=0.0))
    np.testing.assert_allclose(ours.gates, theirs.gates, rtol=1e-5, atol=1e-7)
    assert np.abs(ours.gates).max() > 0.01
    with_the_paper_s, _ = paper(key, theirs, PARAMS)
    assert np.abs(with_the_paper_s.gates - own(key, theirs, PARAMS)[0].gates).max() > 0.01


def test_a_loss_is_that_of_the_expert_that_was_chosen():
    state = continual.begin(DIMS, PARAMS, POOL)
    features, noise = np.random.default_rng(0).normal(size=(5, 2)), np.array([0.0, 0.2, 0.1, 9.0])
    arrival = continual.Arrival(0, features)
    learn = jax.jit(continual.learn, static_argnames=("auxiliary",))
    free, _ = learn(state, arrival, noise, PARAMS, auxiliary=nothing)
    costly, info = learn(state, arrival, noise, PARAMS, auxiliary=lambda visits, time, params: 5.0 + visits)
    assert info.expert == 1  # of the three that exist
    # The gates begin at zero, so that pi = 1/3: a cost of 6 at one expert moves them by eta pi (1{m} - pi) 6.
    shares = np.array([-1 / 9, 2 / 9, -1 / 9, 0.0]) * 6 * PARAMS.learning_rate
    np.testing.assert_allclose(free.gates - costly.gates, shares[:, None] * features.sum(axis=1), rtol=1e-4, atol=1e-6)
