import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge

KEY = mt.root_key(0)
SIZES = {"max_experts": 2, "num_tasks": 2, "num_features": 4, "num_samples": 2}
CASES = {
    "continual": (continual.system(continual.Dims(**SIZES)), continual.Params(num_experts=2)),
    "edge": (
        edge.system(edge.Dims(**SIZES, max_delay=6)),
        edge.Params(num_experts=2, cluster_spread=0.0, min_execution_delay=1, max_execution_delay=1),
    ),
}


@pytest.mark.parametrize("paper", CASES)
def test_gradient_is_finite_where_a_model_does_not_move(paper):
    system, params = CASES[paper]
    start = system.init(KEY, params)

    def total(truths):
        state = start._replace(pool=start.pool._replace(truths=truths))
        for time in range(1, 4):
            state, _ = system.step(jax.random.fold_in(KEY, time), state, params)
        return jnp.sum(state.gates), state.experts

    slope, models = jax.grad(total, has_aux=True)(jnp.zeros_like(start.pool.truths))
    assert not np.any(models)
    assert np.all(np.isfinite(slope))
