"""Algorithm 1 against a baseline: its rounds as a plain loop has them, what it conserves, and where it stays."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge, reinforced
from moe_theory.continual import baseline
from moe_theory.continual.interventions import whole_truth
from moe_theory.core.baseline import LOCALITIES
from moe_theory.edge.sweeps import SWEEPABLE
from moe_theory.reinforced import experiments
from moe_theory.runs import run_cells
from tests.continual.cases import refuse

NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 3, 8, 3


def loop(arrivals, truths, num_experts, learning_rate, own):
    """Models, gates, routes of Algorithm 1 without auxiliary loss and end; (6) has |dw| - own b_m - (1 - own) mean."""
    w = np.zeros((num_experts, truths.shape[1]))
    theta, b, moves, routes = np.zeros_like(w), np.zeros(num_experts), [], []
    for n, X, r in arrivals:
        x = X.sum(axis=1)
        h = theta @ x
        m = int(np.argmax(h + r))
        pi = np.exp(h) / np.exp(h).sum()
        change = X @ np.linalg.pinv(X.T @ X) @ X.T @ (truths[n] - w[m])
        w[m] += change
        length = np.linalg.norm(change)
        cost = length - own * b[m] - (1 - own) * (np.mean(moves) if moves else 0)
        for j in range(num_experts):
            theta[j] -= learning_rate * cost * pi[m] * ((j == m) - pi[j]) * x
        b[m] = length
        moves.append(length)
        routes.append(m)
    return w, theta, routes


@pytest.mark.parametrize("own", [baseline.OWN, 1.0, 0.0])
def test_rounds_are_those_of_a_plain_loop(own):
    """Would catch a baseline of the wrong expert or the wrong round, and a mean that forgets or counts twice."""
    rng, num_experts, num_rounds = np.random.default_rng(4), 4, 60
    truths = rng.normal(size=(NUM_TASKS, NUM_FEATURES))
    arrivals = [
        (int(rng.integers(NUM_TASKS)), rng.normal(size=(NUM_FEATURES, NUM_SAMPLES)), 0.3 * rng.random(num_experts))
        for _ in range(num_rounds)
    ]
    w, theta, routes = loop(arrivals, truths, num_experts, 0.05, own)
    dims = continual.Dims(num_experts, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES)
    params = continual.Params(num_experts=num_experts, learning_rate=0.05, balance_weight=0.0, terminate=False)
    with jax.enable_x64(True):
        locality = baseline.compared(own)
        learn = jax.jit(lambda *given: continual.learn(*given, params, locality=locality))
        pool = continual.Pool(truths, truths, np.arange(NUM_TASKS))
        state, found = continual.begin(dims, params, pool, locality=locality), []
        for n, X, r in arrivals:
            state, info = learn(state, continual.Arrival(n, X), r)
            found.append(int(info.expert))
    assert found == routes
    assert len(set(routes)) == num_experts
    np.testing.assert_allclose(state.experts, w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.gates, theta, rtol=1e-8, atol=1e-9)


def orthogonal_noise(key, dims, state, params):
    """Arrivals whose noise is orthogonal to all signals, which are the first unit vectors."""
    pool, arrival, perturbation = continual.stationary(key, dims, state, params)
    signal = jnp.sum(jnp.where(jnp.arange(NUM_TASKS)[:, None] == arrival.task, pool.signals, 0), axis=0)
    noise = jax.random.normal(key, (dims.num_features, dims.num_samples - 1)).at[:NUM_TASKS].set(0)
    return pool, arrival._replace(features=jnp.concatenate([signal[:, None], noise], axis=1)), perturbation


def halfway(models, arrival, params):
    return 0.5 * continual.minimum_norm(models, arrival, params)


def conserved(gates, signals, last, learning_rate):
    """-(eta |v|^2 / M) (b_m - mean b): what an expert's outputs for all signals add up to while pi = 1/M."""
    square = np.square(signals[0]).sum()
    return -learning_rate * square / len(gates) * (last - last.mean())


def drawn_pool(scale=2.0):
    rng = np.random.default_rng(6)
    return continual.Pool(
        rng.normal(size=(NUM_TASKS, NUM_FEATURES)), scale * np.eye(NUM_TASKS, NUM_FEATURES), np.arange(NUM_TASKS)
    )


@pytest.mark.parametrize("fit", [pytest.param(continual.minimum_norm, marks=pytest.mark.thorough), halfway])
def test_experts_trade_outputs_between_tasks_and_gain_none(fit):
    """Conservation: with orthogonal signals and small outputs an expert's charges telescope, whatever it learns."""
    dims, pool = continual.Dims(5, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES), drawn_pool()
    params = continual.Params(
        num_experts=5, learning_rate=1e-7, balance_weight=0.0, terminate=False, perturbation_scale=1e-6
    )
    sums = []
    with jax.enable_x64(True):
        for locality in (baseline.last_move, baseline.repaired):
            system = continual.on_pool(dims, pool, stream=orthogonal_noise, fit=fit, locality=locality)
            state, _ = mt.simulate(system, mt.root_key(2), params, 200)
            expected = conserved(state.gates, pool.signals, np.asarray(state.memory.last), params.learning_rate)
            sums.append((np.asarray(state.gates) @ pool.signals.T).sum(axis=1) / expected)
    np.testing.assert_allclose(sums[0], 1, rtol=1e-4)
    assert np.abs(sums[1] - 1).max() > 0.1  # the mixture's do not telescope


@pytest.mark.thorough
def test_servers_trade_outputs_between_kinds_whatever_their_delays():
    dims = edge.Dims(5, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES, max_delay=8)
    params = edge.Params(num_experts=5, learning_rate=1e-7, perturbation_scale=1e-6, gate_lag=0)

    def stream(key, dims, state, params):
        arrival = edge.draw(key, dims, state.pool, state.positions, params, edge.delays.uniform)
        signal = jnp.sum(jnp.where(jnp.arange(NUM_TASKS)[:, None] == arrival.task, state.pool.signals, 0), axis=0)
        noise = jax.random.normal(key, (dims.num_features, dims.num_samples - 1)).at[:NUM_TASKS].set(0)
        return state.pool, arrival._replace(features=jnp.concatenate([signal[:, None], noise], axis=1))

    with jax.enable_x64(True):
        pool = drawn_pool()
        network = edge.on_pool(dims, pool, np.array([1, 3, 2, 1, 2]), stream=stream, locality=baseline.last_move)
        state, info = mt.simulate(network, mt.root_key(2), params._replace(max_transfer_delay=3), 200)
        expected = conserved(state.gates, pool.signals, np.asarray(state.memory.last), params.learning_rate)
        found = (np.asarray(state.gates) @ pool.signals.T).sum(axis=1)
    assert info.delay.max() > 2
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def settled_start(lasts, leads, last_moves):
    """A state of experts that know the tasks that they had last, with these outputs (M, N) for unit signals."""
    pool = drawn_pool(scale=1.0)
    dims = continual.Dims(len(lasts), NUM_TASKS, NUM_FEATURES, NUM_SAMPLES)
    params = continual.Params(
        num_experts=len(lasts),
        learning_rate=1e-7,
        balance_weight=0.0,
        terminate=False,
        perturbation_scale=1e-8,
        noise_scale=0.0,
    )
    return dims, params, pool, jnp.asarray(leads * 1e-8 @ pool.signals), jnp.asarray(last_moves)


@pytest.mark.parametrize(
    "locality",
    [
        pytest.param(baseline.last_move, id="last-move"),
        pytest.param(baseline.repaired, id="repaired", marks=pytest.mark.thorough),
    ],
)
def test_settled_experts_stay_settled(locality):
    """Absorption, without noise: where all within lambda of the largest output for a task had it last, no expert moves
    any more, the chosen one rises, all others fall alike. Would catch a baseline that charges a repeat.
    """
    lasts, lead = np.array([0, 0, 1, 2, 2]), 1.5
    leads = np.where(lasts[:, None] == np.arange(NUM_TASKS), lead, 0.0) + 0.4 * np.random.default_rng(1).random((5, 3))
    moves = np.random.default_rng(2).random(5)
    with jax.enable_x64(True):
        dims, params, pool, gates, last_moves = settled_start(lasts, leads, moves)
        system = continual.on_pool(dims, pool, fit=whole_truth, locality=locality)
        state = system.init(mt.root_key(0), params)
        memory = state.memory._replace(last=last_moves, mean=last_moves.mean(), num_moves=state.memory.num_moves + 5)
        state = state._replace(experts=jnp.asarray(pool.truths[lasts]), gates=gates, memory=memory)

        def outputs(state, info):
            return info, state.gates @ state.pool.signals.T

        end, (info, found) = jax.device_get(
            mt.simulate(system, mt.root_key(3), params, 300, state=state, observe=outputs)
        )
        before = np.asarray(gates) @ pool.signals.T
    assert (info.update_norm == 0).all()
    assert (lasts[info.expert] == info.task).all()
    steps, rounds = np.diff(np.concatenate([before[None], found]), axis=0), np.arange(300)  # (T, M, N)
    rises = steps[rounds, info.expert, info.task]
    assert (rises >= 0).all()
    assert (rises[:5] > 0).any()
    expected = np.zeros_like(steps)
    expected[rounds, :, info.task] = -rises[:, None] / 4  # pi = 1/M
    expected[rounds, info.expert, info.task] = rises
    np.testing.assert_allclose(steps, expected, rtol=1e-4, atol=1e-20)
    if locality is baseline.last_move:
        assert (end.memory.last[np.unique(info.expert)] == 0).all()  # each is rewarded once


def after_one_arrival(outputs, chosen):
    """Outputs for task 0 once the chosen expert has had it again, whose last move was of length 1; lambda = 1."""
    dims, params, pool, _, _ = settled_start(np.array([0, 0, 1]), np.zeros((3, NUM_TASKS)), np.zeros(3))
    params = params._replace(learning_rate=0.5, perturbation_scale=1.0)
    state = continual.begin(dims, params, pool, locality=baseline.last_move)
    gates = jnp.asarray(np.outer(outputs, pool.signals[0]))
    memory = state.memory._replace(last=jnp.where(jnp.arange(3) == chosen, 1.0, 0.0))
    state = state._replace(experts=jnp.asarray(pool.truths[[0, 0, 1]]), gates=gates, memory=memory)
    arrival = continual.Arrival(0, np.outer(pool.signals[0], np.eye(NUM_SAMPLES)[0]))
    perturbation = 0.9 * (np.arange(3) == chosen)
    learn = functools.partial(continual.learn, params=params, fit=whole_truth, locality=baseline.last_move)
    state, info = jax.jit(learn)(state, arrival, perturbation)
    assert (int(info.expert), float(info.update_norm)) == (chosen, 0.0)
    return np.asarray(state.gates) @ pool.signals[0]


def test_what_absorption_supposes_beyond_small_outputs():
    """The largest output falls by more than a smaller one if another expert is chosen, so that an expert just beyond
    lambda comes within it; not so where the one with the largest is alone within lambda.
    """
    outputs = np.array([3.0, 2.5, 1.99])
    after = after_one_arrival(outputs, chosen=1)
    assert outputs[0] - outputs[2] > 1 > after.max() - after[2]
    alone = np.array([3.0, 1.99, 1.9])
    after = after_one_arrival(alone, chosen=0)
    assert (after[0] - after[1:] > alone[0] - alone[1:]).all()


@pytest.mark.thorough
def test_an_expert_that_is_near_and_had_another_task_unsettles():
    lasts = np.array([0, 1, 2, 2])
    leads = np.where(lasts[:, None] == np.arange(NUM_TASKS), 1.5, 0.0)
    leads[3, 0] = 1.2  # of the last expert, for a task that it did not have
    with jax.enable_x64(True):
        dims, params, pool, gates, _ = settled_start(lasts, leads, np.zeros(4))
        system = continual.on_pool(dims, pool, fit=whole_truth, locality=baseline.repaired)
        state = system.init(mt.root_key(0), params)._replace(experts=jnp.asarray(pool.truths[lasts]), gates=gates)
        _, info = jax.device_get(mt.simulate(system, mt.root_key(3), params, 300, state=state))
    assert info.update_norm.max() > 0


def test_once_settled_nothing_more_is_forgotten():
    """Corollary 2 of docs/pages/derivations/repaired.md: F_t falls like (T_s - 1)/(t - 1), G_t like T_s / t. With fewer
    experts than tasks there is no such round, Corollary 1.
    """
    found, dims, pool = {}, continual.Dims(6, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES), drawn_pool(scale=1.0)
    system = continual.on_pool(dims, pool, fit=whole_truth, locality=baseline.repaired)
    for num_experts in (6, 2):
        params = continual.Params(
            num_experts=num_experts,
            learning_rate=1e-3,
            balance_weight=0.0,
            terminate=False,
            perturbation_scale=1e-3,
            noise_scale=0.0,
        )
        with jax.enable_x64(True):
            _, info = jax.device_get(mt.simulate(system, mt.root_key(5), params, 4000))
        found[num_experts] = info
    info, last = found[6], int(np.flatnonzero(found[6].update_norm)[-1]) + 1  # T_s, 1-based
    assert 10 < last < 2000
    later = np.arange(last, 4001)
    forgetting, error = info.forgetting[later - 1], info.generalization_error[later - 1]
    np.testing.assert_allclose(forgetting * (later - 1), forgetting[0] * (last - 1), rtol=1e-9)
    np.testing.assert_allclose(error * later, error[0] * last, rtol=1e-9)
    assert (found[2].update_norm[-100:] > 0).any()


def test_a_share_is_between_0_and_1():
    refuse("own", baseline.compared, 1.5)


def test_experts_specialise_against_a_baseline_and_not_as_printed():
    """Slow learners with noise: with the printed loss tasks go on to change experts."""
    names = [experiments.cell_name(variant, 0.01) for variant in ("repaired", "printed")]
    cells = experiments.BESIDE_PRINTED.cells_under(reinforced.reading("as-stated"))
    runs = run_cells([cell for cell in cells if cell.name in names], 64, seed=0)
    against_baseline, printed = (experiments.relative_error(runs[name]) for name in names)
    assert np.quantile(against_baseline, 0.9) < 0.3
    assert np.quantile(printed, 0.1) > 0.6


def test_servers_have_the_losses_of_experts_and_the_printed_one_without_a_memory():
    losses = SWEEPABLE.choices["locality"]
    assert losses["printed"] is None
    assert losses["repaired"] is baseline.repaired
    assert losses.keys() == LOCALITIES.keys()


@pytest.mark.thorough
@pytest.mark.parametrize("module", [continual, edge])
def test_a_sweep_names_locality_losses(module, tmp_path):
    """Would catch a choice that does not reach the system, a printed loss that is another than by default, and
    replicates that share a memory in chunks.
    """
    sizes = {"max_experts": 4, "num_tasks": NUM_TASKS, "num_features": NUM_FEATURES, "num_samples": NUM_SAMPLES}
    sizes |= {"max_delay": 10} if module is edge else {}
    sweep = mt.Sweep(
        system=module.__name__.rpartition(".")[2],
        rounds=40,
        axes={"locality": ["printed", "repaired"]},
        params={"num_experts": 4},
        dims=sizes,
        replicates=96,
        chunk_width=64,
        observables=["generalization_error"],
        keep="replicates",
    )
    swept = sweep.run(tmp_path).to_xarray().generalization_error.isel(round=-1)
    for name in ("printed", "repaired"):
        chosen = {"locality": baseline.repaired} if name == "repaired" else {}
        system = module.system(module.Dims(**sizes), **chosen)
        _, info = mt.simulate_batch(system, mt.root_key(0), 96, module.Params(num_experts=4), 40)
        np.testing.assert_allclose(swept.sel(locality=name).values, info.generalization_error[-1], rtol=1e-4)
    assert not np.allclose(swept.sel(locality="printed"), swept.sel(locality="repaired"))
