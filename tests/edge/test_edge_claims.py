"""What claims of `edge` are made of, against the same said in plain loops."""

from typing import NamedTuple

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import edge
from moe_theory.edge import corrected, experiments
from moe_theory.edge.claims.convergence import (
    BINOMIAL,
    NORMAL,
    _other_gaps,
    _overfull,
    _same_gaps,
    _share_excess,
)
from moe_theory.edge.claims.lemmas import _any_disorder, _history_part, _smaller_shortfall
from moe_theory.runs import Run

DIMS = edge.Dims(max_experts=6, num_tasks=3, num_features=5, num_samples=3, max_delay=10)
SYSTEM = edge.system(DIMS)


def test_the_sum_over_a_history_is_that_of_its_lemma():
    """Would catch a wrong order of arrivals, a dropped task that counts, or experts mixed up, in (34)."""
    rng = np.random.default_rng(0)
    expert = rng.integers(-1, 3, (12, 2))
    truth = rng.normal(size=(12, experiments.HISTORY_DIMS.num_features, 2))
    ratio = 1 - experiments.HISTORY_DIMS.num_samples / experiments.HISTORY_DIMS.num_features
    expected = []
    for replicate in range(2):
        errors = []
        for task in range(12):
            server = expert[task, replicate]
            if server < 0:
                continue
            error = np.sum(truth[task, :, replicate] ** 2)
            for met in range(12):
                if expert[met, replicate] == server:
                    gap = np.sum((truth[met, :, replicate] - truth[task, :, replicate]) ** 2)
                    error = ratio * error + (1 - ratio) * gap
            errors.append(error)
        expected.append(np.mean(errors))
    np.testing.assert_allclose(_history_part(expert, truth), expected, rtol=1e-12)


def test_steps_are_those_that_the_gates_take():
    """Would catch a step of another expert, of another kind of task, or with the sign turned."""
    params = edge.reading("orthogonal-signal").params(num_experts=5)
    step = jax.jit(SYSTEM.step)
    key = mt.root_key(3)
    state, clear = SYSTEM.init(key, params), 0
    for time in range(1, 60):
        before = state
        state, info = step(jax.random.fold_in(key, time), state, params)
        shown = experiments.observe_steps(state, info)
        after, _ = step(jax.random.fold_in(key, time + 1), state, params)
        moved = (np.asarray(after.gates) - np.asarray(state.gates)) / params.learning_rate
        done = np.flatnonzero((before.pending_server >= 0) & (before.pending_until == time))
        if len(done) != 1:
            assert np.isnan(shown.own_change)
            continue
        clear += 1
        kind, server = int(before.pending_task[done[0]]), int(before.pending_server[done[0]])
        drives = moved[:5] @ np.asarray(state.pool.signals)[kind]
        assert shown.own_change == pytest.approx(drives[server], rel=1e-3, abs=1e-4)
        assert shown.others_change == pytest.approx(np.delete(drives, server).max(), rel=1e-3, abs=1e-4)
        all_drives = np.asarray(state.gates)[:5] @ np.asarray(state.pool.signals).T
        assert shown.signal_drive == pytest.approx(np.sqrt(np.mean(all_drives**2)), rel=1e-4, abs=1e-6)
        size = np.abs(state.gates).max()
        assert shown.gate_size == pytest.approx(size)
        spans = np.ptp(np.asarray(state.gates)[:5], axis=0)
        assert shown.gate_gap == pytest.approx(spans.max())
        shares = np.asarray(state.visits)[:5] / np.sum(state.visits)
        assert shown.load_gap == pytest.approx(np.abs(shares - 1 / 5).max(), rel=1e-5)
    assert clear > 10


def test_availability_counts_specialists_of_the_arriving_kind():
    """Would catch specialists of another kind, a padded server that specialises, or a tie that counts."""
    params = edge.reading("orthogonal-signal").params(num_experts=5)
    state, info = mt.simulate(SYSTEM, mt.root_key(1), params, 80, 80)
    last = jax.tree.map(lambda leaf: leaf[-1], info)
    shown = experiments.observe_availability(state, last)
    drives = np.asarray(state.gates)[:5] @ np.asarray(state.pool.signals).T
    own = drives[:, int(last.task)]
    expected = np.sum(own > np.delete(drives, int(last.task), axis=1).max(axis=1))
    assert int(shown.num_specialists) == expected
    assert bool(last.specialist_exists) == (expected > 0)


class Learned(NamedTuple):
    gates: np.ndarray
    gate_probabilities: np.ndarray
    gate_outputs: np.ndarray
    task: np.ndarray


class Pooled(NamedTuple):
    pool: edge.Pool


def learned(gates: np.ndarray, task: int) -> Run:
    """One replicate with these gates, signals along the axes and an arrival of this kind."""
    signals = np.eye(3)
    outputs = gates @ signals[task]
    probabilities = np.exp(outputs) / np.exp(outputs).sum()
    records = Learned(gates[None, :, :, None], probabilities[None, :, None], outputs[None, :, None], np.array([[task]]))
    pool = edge.Pool(np.zeros((3, 3, 1)), signals[:, :, None], np.zeros((3, 1)))
    return Run(edge.Params(num_experts=len(gates)), np.array([3000]), np.arange(1), Pooled(pool), records)


def test_gaps_of_probabilities_are_taken_between_the_right_experts():
    """Would catch gaps to oneself, or between two experts of other kinds."""
    close = learned(np.array([[2.0, 0, 0], [1.9, 0, 0], [0, 3.0, 0], [0, 0, 1.0]]), task=0)
    np.testing.assert_array_equal(experiments.specialists(close), [[True], [True], [False], [False]])
    assert not _same_gaps(close)[0]
    assert _other_gaps(close)[0]
    apart = learned(np.array([[9.0, 0, 0], [2.0, 0, 0], [0, 3.0, 0]]), task=0)
    assert _same_gaps(apart)[0]
    alone = learned(np.array([[9.0, 0, 0], [0, 2.0, 0], [0, 3.0, 0]]), task=0)
    assert not _same_gaps(alone)[0]
    assert not _other_gaps(alone)[0]
    nobody = learned(np.array([[0, 9.0, 0], [0, 2.0, 0], [0, 0, 0.0]]), task=0)
    assert not _same_gaps(nobody)[0]
    assert not _other_gaps(nobody)[0]
    assert _smaller_shortfall(apart) == pytest.approx(0.0)
    assert _share_excess(close) == 0


def test_disorder_is_seen_where_others_outbid_an_expert_for_its_kind():
    """Would catch an order of outputs taken for one of probabilities."""
    ordered = learned(np.array([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]]), task=0)
    outbid = learned(np.array([[2.0, 1.9, 0], [9.0, 0, 0], [0, 0, 9.0]]), task=0)
    assert not _any_disorder(ordered)[0]
    assert _any_disorder(outbid)[0]


class Tasks(NamedTuple):
    task: np.ndarray


def test_overfull_windows_are_counted_in_the_last_rounds_alone():
    """Would catch a window of another length or place."""
    tasks = np.ones((60, 2), int)
    tasks[:50, 0] = 0
    tasks[-3:, 1] = 0
    runs = {"M = 10": Run(None, None, None, None, Tasks(tasks))}
    np.testing.assert_array_equal(_overfull(NORMAL)(runs), [False, True])
    np.testing.assert_array_equal(_overfull(BINOMIAL)(runs), [False, False])


def test_theorem_1_with_early_tasks_is_its_sum_over_tasks():
    """Would catch an early task that fades, or a late one that keeps the error of blind routing."""
    gaps = edge.theory.Gaps(np.float64(5.0), np.float64(9.0), np.float64(0.5), np.float64(9.0))
    loads, explored, ratio = np.array([7.0, 3.0, 0.0]), np.array([2.0, 3.0, 0.0]), 1 / 3
    expected = 0.0
    for load, early in zip(loads, explored, strict=True):
        for arrival in range(int(load)):
            if arrival < early:
                expected += ratio**load * 5.0 + (1 - ratio**load) * 9.0
            else:
                expected += 0.5 + ratio ** (load - early) * 9.0
    bound = corrected.theorem_1(gaps, ratio, loads, explored, 10, 0.5)
    assert bound == pytest.approx(expected / 10)


def test_a_policy_that_is_none_is_refused_and_one_without_numbers_drops_nothing():
    """Would catch a name taken for a policy, scores of another shape, and NaN that loses every task."""
    with pytest.raises(ValueError, match=r"policy='adaptive' must be a function .* policies\.adaptive"):
        edge.system(DIMS, "adaptive")  # pyright: ignore[reportArgumentType]
    params = edge.Params(num_experts=6)
    with pytest.raises(ValueError, match=r"scores of shape \(6, 1\), not one a server: \(6,\)"):
        mt.simulate(edge.system(DIMS, lambda outputs, *_: outputs[:, None]), mt.root_key(0), params, 2)
    state, _ = mt.simulate(edge.system(DIMS, lambda outputs, *_: outputs * np.nan), mt.root_key(0), params, 5)
    assert int(state.dropped) == 0


def test_a_law_of_delays_is_cut_at_the_bounds_and_must_give_whole_rounds():
    """Would catch a user's law whose delays outgrow the arrays, end before they begin, or are cut to whole numbers."""
    params = edge.Params(num_experts=6, max_transfer_delay=2, min_execution_delay=1, max_execution_delay=3)
    for value in (-7, 90):
        network = edge.system(DIMS, transfer=lambda trip, params, value=value: np.full(6, value))
        _, info = mt.simulate(network, mt.root_key(0), params, 40)
        assert np.all((info.delay >= 1) & (info.delay <= 5) | (info.expert < 0))
    with pytest.raises(ValueError, match="not whole rounds, one a server"):
        mt.simulate(edge.system(DIMS, transfer=lambda trip, params: trip.uniform * 2), mt.root_key(0), params, 2)


def test_exact_errors_are_looked_up_inside_a_compiled_program():
    """Would catch a NumPy table that a traced load cannot index."""
    errors = np.array([0.0, 3.0, 2.0])
    assert jax.jit(lambda loads: corrected.by_loads(errors, loads))(np.array([1, 2])) == pytest.approx(7 / 3)
    assert np.isnan(jax.jit(lambda loads: corrected.by_loads(errors, loads))(np.array([1, 5])))


@pytest.mark.parametrize("change", [{"task": 3}, {"task": -1}, {"truth": np.full(5, np.nan)}])
def test_an_arrival_that_is_none_is_refused(change):
    """Would catch a kind beyond the pool's, or missing numbers, that would show as an error of 0."""
    params = edge.Params(num_experts=6)
    state = SYSTEM.init(mt.root_key(0), params)
    arrival = edge.draw(mt.root_key(1), DIMS, state.pool, state.positions, params, edge.delays.uniform)
    with pytest.raises(ValueError, match="must be"):
        edge.learn(state, arrival._replace(**change), params)
