"""What claims of `edge` are made of, against the same said in plain loops."""

import types
from typing import NamedTuple

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import edge
from moe_theory.core.tasks import has_small_truths
from moe_theory.edge import experiments, interventions
from moe_theory.edge.statements.lemma_5 import printed_shortfall, smaller_shortfall
from moe_theory.edge.statements.lemma_6 import any_disorder, gap_of_kinds
from moe_theory.edge.statements.lemma_9 import history_part
from moe_theory.edge.statements.proposition_2 import gap_between_sets, gap_in_a_set, share_out_of_order
from moe_theory.edge.statements.theorem_1 import late_errors
from moe_theory.runs import Cell, Run, run_cells

DIMS = edge.Dims(max_experts=6, num_tasks=3, num_features=5, num_samples=3, max_delay=10)
SYSTEM = edge.system(DIMS)
step = jax.jit(SYSTEM.step)


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
    observe_steps = jax.jit(experiments.observe_steps)
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
    key = mt.root_key(3)
    state = jax.jit(SYSTEM.init)(key, params)
    for time in range(1, 81):
        state, last = step(jax.random.fold_in(key, time), state, params)
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


class Pooled(NamedTuple):
    pool: edge.Pool


def learned(gates):
    """One replicate with these gates and signals along the axes; outputs are those for the first kind."""
    signals, outputs = np.eye(3), gates[:, 0]
    probabilities = np.exp(outputs) / np.exp(outputs).sum()
    records = Learned(gates[None, :, :, None], probabilities[None, :, None], outputs[None, :, None])
    pool = edge.Pool(np.zeros((3, 3, 1)), signals[:, :, None], np.zeros((3, 1)))
    return Run(edge.Params(num_experts=len(gates)), np.array([3000]), np.arange(1), Pooled(pool), records)


GATES = np.array([[2.0, 0, 0], [1.9, 0, 0], [0, 3.0, 0], [0, 0, 1.0]])


def test_gaps_of_probabilities_are_taken_between_the_right_experts():
    """Would catch gaps between experts of different sets for one set's, probabilities over kinds, or other kinds."""
    run = learned(GATES)
    own = experiments.is_specialist(experiments.signal_outputs(run))[:, :, 0]
    np.testing.assert_array_equal(own, np.eye(3, dtype=bool)[[0, 0, 1, 2]])
    probabilities = np.exp(GATES) / np.exp(GATES).sum(axis=0)  # (M, N): over experts, for each kind
    assert gap_in_a_set(run)[0] == pytest.approx(probabilities[0, 0] - probabilities[1, 0])
    apart = [abs(probabilities[m, n] - probabilities[k, n]) for n in range(3) for m in range(4) for k in range(4)
             if own[m, n] and not own[k, n]]  # fmt: skip
    assert gap_between_sets(run)[0] == pytest.approx(max(apart))
    assert gap_of_kinds(run)[0] == pytest.approx(np.ptp(probabilities, axis=1).max())
    nobody = learned(np.array([[0, 9.0, 0], [0, 2.0, 0], [0, 0, 1.0]]))
    assert not experiments.is_specialist(experiments.signal_outputs(nobody))[:, 0].any()
    assert np.isfinite([*gap_in_a_set(nobody), *gap_between_sets(nobody)]).all()
    assert smaller_shortfall(run) == pytest.approx(0.0)
    assert printed_shortfall(run) > 0


def test_pairs_are_out_of_order_as_said():
    """Would catch a pair of one set that counts, or two outputs of one expert compared."""
    assert share_out_of_order(learned(GATES)) == 0
    both = learned(np.array([[2.0, 1.0, 0], [3.0, 4.0, 0], [0, 0, 1.0], [0.5, 0, 0]]))
    # Of the four experts' five pairs of different sets two fail: the second leads the first and the last for kind 0.
    assert share_out_of_order(both) == pytest.approx(2 / 5)


def test_disorder_is_seen_where_others_outbid_an_expert_for_its_kind():
    """Would catch an order of outputs taken for one of probabilities."""
    ordered = learned(np.array([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]]))
    outbid = learned(np.array([[2.0, 1.9, 0], [9.0, 0, 0], [0, 0, 9.0]]))
    assert not any_disorder(ordered)[0]
    assert any_disorder(outbid)[0]


def test_late_errors_are_those_of_the_tasks_after_t1():
    """Would catch tasks before T1 that count, or models of another time, in the error of Theorem 1's limit."""
    params, num_rounds = edge.reading("orthogonal-signal").params(num_experts=5, learning_rate=1.0), 60
    cell = Cell("runs", SYSTEM, params, num_rounds, 1, lambda state, info: (state, info))
    run = run_cells([cell], 2)["runs"]
    states, infos = run.records
    first = experiments.explored_record(run)
    assert 5 < first < num_rounds - 5
    shown = run._replace(
        records=types.SimpleNamespace(
            gates=states.gates,
            experts=states.experts,
            residuals=states.residuals,
            squared_error=states.squared_error,
            loads=states.visits,
            misrouted=states.misrouted,
        )
    )
    late = np.arange(num_rounds) > first
    for replicate in range(2):
        routed = late & (infos.expert[:, replicate] >= 0)
        experts, truths = infos.expert[routed, replicate], infos.truth[routed, :, replicate]
        for errors, at in zip(late_errors(shown), (-1, first), strict=True):
            expected = np.mean(np.sum((states.experts[at][experts, :, replicate] - truths) ** 2, axis=1))
            assert errors[replicate] == pytest.approx(expected, rel=1e-4)


def test_other_routers_choose_the_server_that_their_names_say():
    """Would catch a cause that an intervention leaves in place, and a constant router that looks at gates."""
    rng = np.random.default_rng(7)
    gates, signals = (rng.normal(size=(rows, 4)).astype(np.float32) for rows in (5, 3))
    noise = rng.uniform(size=(2, 5)).astype(np.float32)
    gates[4] = 0  # which is in no set
    outputs = gates @ signals.T
    state = types.SimpleNamespace(gates=gates, pool=types.SimpleNamespace(signals=signals))
    for task in range(3):
        arrival = types.SimpleNamespace(task=task, perturbation=noise[0], uniform=noise[1])
        given = outputs[:, task], state, arrival, None
        assert np.argmax(interventions.own_kind(*given)) % 3 == task
        assert np.argmax(interventions.first_idle(*given)) == 0
        above = [outputs[server, task] - np.mean(outputs[server]) + noise[0, server] for server in range(5)]
        np.testing.assert_allclose(interventions.above_own_mean(*given), above, rtol=1e-5, atol=1e-6)
        in_set = [server for server in range(4) if np.argmax(outputs[server]) == task] or range(5)
        highest = max(in_set, key=lambda server: outputs[server, task] + noise[0, server])
        assert np.argmax(interventions.of_the_set(*given)) == highest


@pytest.mark.parametrize("is_variance", [False, True])
def test_truths_with_a_part_in_common_are_seen(is_variance):
    """Would catch a standing hypothesis on the truths' size that small differences meet."""
    params = types.SimpleNamespace(truth_scale=0.01, scale_is_variance=is_variance)
    truths = (0.1 if is_variance else 0.01) * np.random.default_rng(0).standard_normal((3, 5, 2))

    def run_with(pool):
        return types.SimpleNamespace(params=params, state=types.SimpleNamespace(pool=pool))

    assert has_small_truths(DIMS, run_with(types.SimpleNamespace(truths=truths)))
    assert not has_small_truths(DIMS, run_with(types.SimpleNamespace(truths=truths + np.eye(5)[:3, :, None])))
