"""What claims of `edge` are made of, against the same said in plain loops."""

from typing import NamedTuple

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import edge
from moe_theory.edge import experiments
from moe_theory.edge.statements.lemma_5 import smaller_shortfall
from moe_theory.edge.statements.lemma_6 import any_disorder
from moe_theory.edge.statements.lemma_9 import history_part
from moe_theory.edge.statements.proposition_1 import BINOMIAL, NORMAL, overfull
from moe_theory.edge.statements.proposition_2 import other_gaps, same_gaps, share_excess
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
    np.testing.assert_allclose(history_part(expert, truth), expected, rtol=1e-12)


def test_steps_are_those_that_the_gates_take():
    """Would catch a step of another expert, of another kind of task, or with the sign turned."""
    params = edge.reading("orthogonal-signal").params(num_experts=5)
    step, observe_steps = jax.jit(SYSTEM.step), jax.jit(experiments.observe_steps)
    key = mt.root_key(3)
    state, clear = jax.jit(SYSTEM.init)(key, params), 0
    for time in range(1, 60):
        before = state
        state, info = step(jax.random.fold_in(key, time), state, params)
        shown = observe_steps(state, info)
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
        size = np.abs(np.asarray(state.gates)).max()
        assert shown.gate_size == pytest.approx(size)
        spans = np.ptp(np.asarray(state.gates)[:5], axis=0)
        assert shown.gate_gap == pytest.approx(spans.max())
        shares = np.asarray(state.visits)[:5] / np.sum(np.asarray(state.visits))
        assert shown.load_gap == pytest.approx(np.abs(shares - 1 / 5).max(), rel=1e-5)
    assert clear > 10


def test_availability_counts_specialists_of_the_arriving_kind():
    """Would catch specialists of another kind, a padded server that specialises, or a tie that counts."""
    params = edge.reading("orthogonal-signal").params(num_experts=5)
    state, info = mt.simulate(SYSTEM, mt.root_key(1), params, 80, 80)
    last = jax.tree.map(lambda leaf: np.asarray(leaf)[-1], info)
    shown = jax.jit(experiments.observe_availability)(state, last)
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
    assert not same_gaps(close)[0]
    assert other_gaps(close)[0]
    apart = learned(np.array([[9.0, 0, 0], [2.0, 0, 0], [0, 3.0, 0]]), task=0)
    assert same_gaps(apart)[0]
    alone = learned(np.array([[9.0, 0, 0], [0, 2.0, 0], [0, 3.0, 0]]), task=0)
    assert not same_gaps(alone)[0]
    assert not other_gaps(alone)[0]
    nobody = learned(np.array([[0, 9.0, 0], [0, 2.0, 0], [0, 0, 0.0]]), task=0)
    assert not same_gaps(nobody)[0]
    assert not other_gaps(nobody)[0]
    assert smaller_shortfall(apart) == pytest.approx(0.0)
    assert share_excess(close) == 0


def test_disorder_is_seen_where_others_outbid_an_expert_for_its_kind():
    """Would catch an order of outputs taken for one of probabilities."""
    ordered = learned(np.array([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]]), task=0)
    outbid = learned(np.array([[2.0, 1.9, 0], [9.0, 0, 0], [0, 0, 9.0]]), task=0)
    assert not any_disorder(ordered)[0]
    assert any_disorder(outbid)[0]


class Tasks(NamedTuple):
    task: np.ndarray


def testoverfull_windows_are_counted_in_the_last_rounds_alone():
    """Would catch a window of another length or place."""
    tasks = np.ones((60, 2), int)
    tasks[:50, 0] = 0
    tasks[-3:, 1] = 0
    run = Run(None, None, None, None, Tasks(tasks))
    np.testing.assert_array_equal(overfull(NORMAL)(run), [False, True])
    np.testing.assert_array_equal(overfull(BINOMIAL)(run), [False, False])
