"""Training of sparse-MoE classifiers under the engine: what it reaches, and how it is run."""

import functools

import jax
import numpy as np

import moe_theory as mt
from moe_theory.core import engine
from moe_theory.generalization import Dims, Params, data
from moe_theory.generalization.training import empirical_risk, gap, system, true_risk

ROOT = mt.root_key(17)
DIMS = Dims(max_experts=4, num_features=3, max_samples=24)


def watch(state, info):
    return {"gap": gap(state), "empirical": empirical_risk(state), "true": true_risk(state), "info": info}


@functools.partial(jax.jit, static_argnums=(0, 1, 3), compiler_options={"xla_backend_optimization_level": 0})
def fit(dims, name, params, rounds):
    """A few replicates by a plain loop, which compiles sooner than the engine's."""

    def one(key):
        trained = system(dims, name)
        start = trained.init(key, params)
        state, infos = jax.lax.scan(lambda state, _: trained.step(key, state, params), start, length=rounds)
        return start, state, watch(start, None), watch(state, jax.tree.map(lambda leaf: leaf[-1], infos))

    return jax.vmap(one)(jax.random.split(ROOT, 8))


def test_one_program_fits_random_labels_at_every_sparsity():
    """Would catch k, T or m that recompiles; a fit that does not fit; a risk of 1/2 that is only estimated."""
    programs = []
    for num_experts, num_active, num_samples in ((4, 1, 24), (4, 2, 24), (4, 4, 12), (1, 1, 24)):
        params = Params(num_experts, num_active, num_samples, expert_norm=5.0, router_norm=8.0)
        state, seen = mt.simulate_batch(system(DIMS), ROOT, 16, params, 80, 4, observe=watch)
        programs.append(engine.num_programs())
        assert np.all(seen["true"] == 0.5)
        np.testing.assert_allclose(seen["gap"], np.abs(seen["empirical"] - 0.5), atol=1e-6)
        gaps = seen["gap"].mean(axis=1)
        assert gaps[-1] > gaps[0] > 0
        assert gaps[-1] > 0.1
        assert np.all(seen["info"].error.mean(axis=1) < 0.5)
        squares = seen["info"].mean_square_gate
        assert np.all((squares >= 1 / num_active - 1e-5) & (squares <= 1 + 1e-5))
        assert np.linalg.norm(state.weights.experts[0], axis=1).max() < 5 + 1e-4
        assert np.linalg.norm(state.weights.router[0], axis=1).max() < 8 + 1e-4
    assert len(set(programs)) == 1


def test_networks_learn_a_teacher():
    """Would catch layers of experts or of the router that get no step, at one active expert most of all."""
    dims = Dims(max_experts=3, num_features=3, max_samples=32, expert_width=4, router_width=5)
    params = Params(3, 1, 32, expert_norm=3.0, router_norm=6.0, learning_rate=0.02)
    start, state, before, after = fit(dims, data.TEACHER, params, 60)
    assert after["empirical"].mean() < before["empirical"].mean() - 0.1
    assert after["true"].mean() < before["true"].mean() - 0.1
    assert np.all(after["true"] > 0)
    for layer, first in zip(jax.tree.leaves(state.weights), jax.tree.leaves(start.weights), strict=True):
        assert np.all(np.abs(layer - first).reshape(8, -1).max(axis=1) > 0.01)


def test_a_sweep_observes_what_training_shows(tmp_path):
    """Would catch a system, or a choice of its data, that specifications cannot name."""
    sweep = mt.Sweep(
        system="generalization",
        rounds=4,
        record_every=4,
        replicates=3,
        axes={"num_active": [1, 2]},
        params={"num_experts": 2, "num_samples": 20},
        dims={"num_features": 64, "max_samples": 24},
        choices={"data": data.DIGITS},
        observables=["gap", "true_risk", "empirical_risk"],
        keep="replicates",
    )
    found = sweep.run(tmp_path).to_xarray()
    assert np.max(np.abs(np.abs(found["true_risk"] - found["empirical_risk"]) - found["gap"])) < 1e-6
    assert np.all((found["true_risk"] > 0) & (found["true_risk"] < 1) & (found["true_risk"] != 0.5))
