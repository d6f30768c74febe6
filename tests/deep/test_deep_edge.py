"""The edge experiment around its rounds: policies and laws that are refused, draws and padding.

Rounds themselves are compared with a NumPy loop in `test_deep_parity.py`.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import baseline
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.locality import Locality, distance_moved
from moe_theory.core.random import uniforms
from moe_theory.core.system import check_system, fields
from moe_theory.deep import edge, tasks, training
from moe_theory.deep.params import Dims, Params
from moe_theory.deep.tasks import on_device, pool_of
from moe_theory.edge import delays, policies

from .pictures import corners

CLASSES = (1, 3, 0)
DIMS = Dims(max_experts=3, num_classes=3, max_rounds=5, num_samples=4, num_tests=4, num_epochs=2, batch_size=4)
PARAMS = Params(num_experts=3, min_execution_delay=1, max_transfer_delay=2, gate_scale=3.0)
ROOT = mt.root_key(4)


def test_padding_changes_no_draw():
    """Of tasks, images, batches, noise, delays and experts; `test_deep_parity.py` sees that it changes no round."""
    dims = dataclasses.replace(DIMS, batch_size=2)
    wider = dataclasses.replace(dims, max_experts=5, max_rounds=8)
    drawn = [jax.device_get(draws(dims)) for dims in (dims, wider)]
    for one, other in zip(*map(jax.tree.leaves, drawn), strict=True):
        np.testing.assert_array_equal(one, other if one.shape == other.shape else other[: DIMS.max_experts])


def draws(dims):
    pool = on_device(pool_of(corners(), CLASSES))

    @jax.jit
    def drawn(key):
        arrival, place = tasks.draw(key, dims, pool, PARAMS)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.float32)
        sent = edge.sent(jax.random.fold_in(key, 2), arrival, place, positions, PARAMS, delays.by_distance)
        return sent, edge.begin(key, dims, PARAMS, pool).execution_delay, training.initial_experts(key, dims, pool)

    return drawn(ROOT)


def test_execution_delays_are_no_function_of_the_experts_weights():
    """Experts are drawn with a key each, folded from the state's; a delay drawn with one of those would tell."""
    params = PARAMS._replace(min_execution_delay=1, max_execution_delay=2**20)
    key = jax.random.key(9)
    found = jax.jit(lambda key: edge.system(DIMS, corners(), CLASSES).init(key, params).execution_delay)(key)
    for number in range(50):
        units = uniforms(jax.random.fold_in(key, number), 3, jnp.float32)
        assert not np.any(np.abs(np.asarray(units) - np.asarray(found) / 2**20) < 1e-4)


def lopsided(gate_outputs, state, arrival, params):
    return gate_outputs[:2]


@pytest.mark.parametrize(
    ("message", "kind", "changes", "choices"),
    [
        ("policy=4 must be below 4, the number of policies", InvalidValueError, {"policy": 4}, {}),
        ("policy=1 must be below 1", InvalidValueError, {"policy": 1}, {"policies": (policies.nearest,)}),
        ("policy='nearest' must be a function", InvalidValueError, {}, {"policies": ("nearest",)}),
        ("by_distance is a law of transfers", InvalidValueError, {}, {"execution": delays.by_distance}),
    ],
)
def test_policies_and_laws_that_do_not_fit_are_refused(message, kind, changes, choices):
    """Each would else be cut to the nearest that does, without a word."""
    with pytest.raises(kind, match=message):
        check_system(edge.system(DIMS, corners(), CLASSES, **choices), PARAMS._replace(**changes))


def test_a_policy_without_a_score_for_every_server_is_refused():
    system = edge.system(DIMS, corners(), CLASSES, (lopsided,))
    state = jax.eval_shape(system.init, ROOT, PARAMS)
    with pytest.raises(InvalidValueError, match=r"scores of shape \(2,\), not one an expert: \(3,\)"):
        jax.eval_shape(system.step, ROOT, state, PARAMS)


def test_servers_are_charged_as_a_locality_loss_of_ones_own_says():
    """Would catch a loss that is charged at routing, twice or to another server, or changes the printed run."""
    dims = dataclasses.replace(DIMS, max_rounds=12)
    none = Locality(lambda move, memory, arrival, params: (0 * move.costs, memory))
    seen = ("info.expert", "info.locality", "info.num_busy", "state.gates")
    runs = {}
    for name, locality in {"default": None, "printed": distance_moved, "none": none, "own": baseline.last_move}.items():
        system = edge.system(dims, corners(), CLASSES, locality=locality)
        runs[name] = jax.device_get(mt.simulate(system, ROOT, PARAMS, 12, observe=fields(*seen)))
    for one, other in zip(runs["default"][1], runs["printed"][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert abs(runs["default"][1].gates).max() > 0
    assert (runs["none"][1].gates == 0).all()
    state, records = runs["own"]
    begun = records.expert >= 0
    in_progress = int((state.pending_server >= 0).sum())
    assert int(state.memory.num_moves) == begun.sum() - in_progress
    for server in range(3):  # its last move that is done
        moves = records.locality[begun & (records.expert == server)]
        done = moves[:-1] if state.pending_server[server] >= 0 else moves
        np.testing.assert_allclose(state.memory.last[server], done[-1] if len(done) else 0, rtol=1e-6)
    with pytest.raises(InvalidValueError, match="must be a Locality"):
        edge.system(dims, corners(), CLASSES, locality=abs)
