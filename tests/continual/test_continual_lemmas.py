"""What the claims of Lemmas 1, 2 and 5 to 10 are made of, computed another way, on states made by hand."""

import types

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.continual import gate_steps, grids, readings, routing
from moe_theory.continual.claims import loads, router, smooth, softmax
from moe_theory.continual.params import Dims, Params
from moe_theory.continual.system import draw, system
from moe_theory.core.random import root_key, step_key
from moe_theory.runs import Run, run_cells
from moe_theory.verify import registry
from moe_theory.verify.request import check_request

LEMMAS = [f"continual.{name}" for name in ("corollary-1.*", "lemma-[125-9].*", "lemma-10.*")]
ANY_LEMMA = ["continual.lemma-*", "continual.corollary-*"]


def made_run(num_replicates, first=0, **changes):
    """A run whose gates, signals and loads are drawn here, on the dims of the grid of scales."""
    dims, rng = grids.SCALE_DIMS, np.random.default_rng(3)
    params = readings.reading("unit-signal").params(**grids.scaled(0.04, **changes))
    gates = rng.normal(size=(dims.max_experts, dims.num_features, num_replicates))
    signals = rng.normal(size=(dims.num_tasks, dims.num_features, num_replicates))
    state = types.SimpleNamespace(gates=gates, pool=types.SimpleNamespace(signals=signals))
    return Run(params, np.array([1]), np.arange(first, first + num_replicates), state, None)


def test_two_experts_are_routed_by_the_triangular_distribution():
    leads = np.linspace(-1.5, 1.5, 31)  # (h_1 - h_2) / lambda
    inside = 0.5 + np.abs(leads) - leads**2 / 2
    upper = np.where(np.abs(leads) < 1, inside, 1.0)
    expected = np.where(leads >= 0, upper, 1 - upper)
    outputs = 0.3 * np.stack([leads, np.zeros_like(leads)], axis=1)
    np.testing.assert_allclose(routing.routing_probabilities(outputs, 0.3)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("num_experts", [2, 3, 7, 10])
def test_routing_probabilities_sum_to_one_and_know_no_common_shift(num_experts):
    outputs = np.random.default_rng(0).normal(size=(40, num_experts))
    probabilities = routing.routing_probabilities(outputs, 1.3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(routing.routing_probabilities(outputs + 5, 1.3), probabilities, atol=1e-12)


def test_equal_outputs_share_and_a_lead_of_lambda_takes_all():
    np.testing.assert_allclose(routing.routing_probabilities(np.zeros(3), 0.2), np.full(3, 1 / 3), atol=1e-14)
    np.testing.assert_allclose(routing.routing_probabilities(np.array([0.0, 0.2, 0.0]), 0.2), [0, 1, 0], atol=1e-14)


def test_routing_probabilities_are_the_frequencies_of_the_router():
    outputs, scale, count = np.array([0.0, 0.1, -0.2, 0.25]), 0.5, 200_000
    perturbed = outputs + scale * np.random.default_rng(1).uniform(size=(count, 4))
    frequencies = np.bincount(perturbed.argmax(axis=1), minlength=4) / count
    expected = routing.routing_probabilities(outputs, scale)
    assert np.all(np.abs(frequencies - expected) < 6 * np.sqrt(0.25 / count))


def test_a_probability_moves_by_at_most_the_sharp_constant_and_by_that_at_equal_outputs():
    scale, step = 0.4, 1e-6

    def steepness(outputs):  # sum_j |dp_1/dh_j| by central differences
        moves = step * np.eye(len(outputs))
        slopes = routing.routing_probabilities(outputs + moves, scale) - routing.routing_probabilities(
            outputs - moves, scale
        )
        return np.abs(slopes[:, 0]).sum() / (2 * step)

    rng = np.random.default_rng(2)
    bound = routing.sharp_constant(scale)
    assert max(steepness(scale * rng.uniform(-0.7, 0.7, size=5)) for _ in range(50)) <= bound * (1 + 1e-6)
    for num_experts in (3, 5, 9):
        assert steepness(np.zeros(num_experts)) == pytest.approx(bound, rel=1e-4)


def test_the_constant_of_lemma_2_is_not_violated_where_lambda_is_large():
    run = made_run(64, perturbation_scale=2.0)  # 2 / lambda = 1 is below lambda M^2 for every M
    assert not np.any(smooth.Lemma2.observe({smooth.SMOOTH_CELL: run}))
    assert np.all(smooth.Lemma2.observe({smooth.SMOOTH_CELL: made_run(64)}))


def task_loss(gates, gate_input, costs):
    outputs = gates @ gate_input
    weights = np.exp(outputs - outputs.max())
    return weights @ costs / weights.sum()


def finite_gradient(gates, gate_input, costs, step=1e-6):
    gradient = np.zeros_like(gates)
    for place in np.ndindex(gates.shape):
        move = np.zeros_like(gates)
        move[place] = step
        higher, lower = (task_loss(gates + sign * move, gate_input, costs) for sign in (1, -1))
        gradient[place] = (higher - lower) / (2 * step)
    return gradient


@pytest.mark.parametrize("locality_power", [1.0, 2.0])
def test_a_gate_step_is_that_of_finite_differences_of_the_task_loss(locality_power):
    dims = Dims(max_experts=5, num_tasks=4, num_features=6, num_samples=3)
    params = Params(num_experts=4, locality_power=locality_power, terminate=False)
    key, time = jax.random.fold_in(root_key(9), 0), 12
    with jax.enable_x64(True):
        before, _ = mt.simulate(system(dims), key, params, time)
        arrival, _ = draw(step_key(key, time + 1), dims, before.pool, params)
        after, info = system(dims).step(step_key(key, time + 1), before, params)
        stepped, steps = gate_steps.system_with_steps(dims).step(step_key(key, time + 1), before, params)
    for plain, shown in zip(jax.tree.leaves(after), jax.tree.leaves(stepped), strict=True):
        np.testing.assert_array_equal(plain, shown)

    chosen, gate_input = int(info.expert), np.asarray(arrival.features).sum(axis=1)
    fraction = int(after.visits[chosen]) / (time + 1)
    balance = np.where(np.arange(4) == chosen, 0.5 * 4 * fraction / (time + 1), 0)
    locality = np.where(np.arange(4) == chosen, float(info.update_norm) ** locality_power, 0)
    balance_gradient = finite_gradient(np.asarray(before.gates)[:4], gate_input, balance)
    gradient = finite_gradient(np.asarray(before.gates)[:4], gate_input, locality + balance)
    assert np.all(np.abs(gradient) >= np.abs(balance_gradient) - 1e-9)  # what Lemma 5's first case leans on
    changes = -params.learning_rate * gradient @ np.asarray(before.pool.signals).T  # (M, N)
    others, own = np.arange(4) != chosen, int(arrival.task)
    expected = {
        "least_balance_gradient": np.abs(balance_gradient).max(axis=1).min(),
        "largest_gradient": np.abs(gradient).max(),
        "chosen_change": np.abs(changes[chosen]).max(),
        "others_change": np.abs(changes[others]).max(),
        "chosen_rise": changes[chosen].max(),
        "own_rise": changes[chosen, own],
        "own_fall": -changes[others, own].min(),
        "gate_size": np.abs(np.asarray(after.gates)).max(),
        "gate_gap": max(np.abs(a - b).max() for a in np.asarray(after.gates)[:4] for b in np.asarray(after.gates)[:4]),
    }
    assert set(expected) == set(steps._fields)
    for name, value in expected.items():
        assert float(getattr(steps, name)) == pytest.approx(value, rel=1e-5, abs=1e-8), name
    np.testing.assert_allclose(after.gates - before.gates, np.pad(-0.5 * gradient, ((0, 1), (0, 0))), atol=1e-7)


def test_pairs_of_like_tasks_differ_by_the_noise_that_the_gates_let_through():
    run = made_run(4096, noise_scale=0.3)
    pairs = router.gate_output_pairs(run)
    deviations = 0.3 * np.sqrt(2 * 5) * np.sqrt(np.sum(run.state.gates**2, axis=1)).T
    squares = ((pairs[:, 0] - pairs[:, 1]) / deviations)[:, 0] ** 2  # of one expert: chi-squared of one degree
    assert abs(squares.mean() - 1) < 6 * np.sqrt(2 / len(squares))


def test_pairs_without_noise_are_of_one_task_or_of_one_cluster():
    for num_clusters, num_experts in ((6, 10), (3, 5)):
        run = made_run(64, noise_scale=0.0, num_clusters=num_clusters, num_experts=num_experts)
        outputs = np.einsum("mdb,ndb->bnm", run.state.gates[:num_experts], run.state.pool.signals)
        pairs = router.gate_output_pairs(run)
        tasks = np.abs(pairs[:, :, None] - outputs[:, None]).max(axis=3).argmin(axis=2)  # (B, 2)
        np.testing.assert_allclose(np.take_along_axis(outputs, tasks[:, :, None], axis=1), pairs, atol=1e-6)
        assert np.all(tasks[:, 1] == (tasks[:, 0] + num_clusters) % 6)
        assert len(np.unique(tasks[:, 0])) == 6


def test_the_load_gap_is_the_largest_distance_from_an_even_share():
    run = made_run(2, num_experts=4, learning_rate=0.4)  # T1 = 10
    visits = np.array([[4, 3], [2, 2], [2, 3], [2, 2], [0, 0]])
    run.state.explored_visits = visits
    runs = dict.fromkeys(loads.EXPERT_CELLS, run)
    np.testing.assert_allclose(loads.Lemma8Experts.observe(runs), np.repeat([[0.15], [0.05]], 4, axis=1))


def test_probabilities_at_a_gap_are_those_of_its_log_odds():
    probabilities = softmax.probabilities_at({softmax.CELL: made_run(16)}, (0.5, 3.0))
    odds = np.log(probabilities[..., 0] / probabilities[..., 1])
    np.testing.assert_allclose(odds, np.tile([0.5, 3.0], (16, 1)), atol=1e-9)
    assert np.all(probabilities.sum(axis=-1) < 1)


@pytest.mark.parametrize("reading", ["unit-signal", "independent-signal"])
def test_what_is_observed_of_a_replicate_does_not_depend_on_others(reading):
    for study in check_request(LEMMAS, reading).studies:
        runs = run_cells(study.cells, 6, seed=1, width=6)
        parts = [{name: part_of(run, part) for name, run in runs.items()} for part in (slice(0, 2), slice(2, 6))]
        for claim in study.claims:
            whole = np.asarray(claim.observe(runs), np.float64)
            joined = np.concatenate([np.asarray(claim.observe(part), np.float64) for part in parts])
            np.testing.assert_allclose(whole, joined, rtol=1e-9, atol=1e-12, err_msg=claim.id)


def part_of(run, part):
    state, records = jax.tree.map(lambda leaf: leaf[..., part], (run.state, run.records))
    return Run(run.params, run.rounds, run.replicates[part], state, records)


def test_formulas_are_ones_that_can_be_shown():
    converter = pytest.importorskip("latex2mathml.converter")
    for claim in registry.select_claims(ANY_LEMMA):
        assert claim.formula, claim.id
        assert "<math" in converter.convert(claim.formula), claim.id
