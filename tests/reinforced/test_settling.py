"""The statements on Algorithm 1 with a baseline: when a run counts as settled, and what their proofs would miss."""

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import reinforced
from moe_theory.core import baseline
from moe_theory.reinforced import experiments
from moe_theory.runs import Run

PROOFS = Path(reinforced.__file__).parent / "statements" / "proofs"
NUM_ROUNDS = 600


def settled_by_definition(outputs, lasts, perturbation_scale):
    """Whether (T, M, N) outputs and the tasks (T, M) that experts had last are those of a settled state, (T,)."""
    is_near = outputs >= outputs.max(axis=1, keepdims=True) - perturbation_scale
    had_it = lasts[:, :, None] == np.arange(outputs.shape[2])
    return np.all(had_it | ~is_near, axis=(1, 2)).tolist()


def test_settling_is_seen_in_the_round_in_which_it_happens():
    """Catches padded experts that count, a round too early or late, and a task that nobody has had."""
    dims = experiments.ONCE_SETTLED.dims
    system = experiments.system_with_settling(dims, baseline.repaired)
    own = experiments.ONCE_SETTLED.cells[experiments.AS_MANY]
    params = reinforced.reading("as-stated").params(**own)

    def observe(state, info):
        return state.state.gates @ state.pool.signals.T, state.last, info.update_norm

    with jax.enable_x64(True):
        state, (outputs, lasts, moves) = jax.device_get(
            mt.simulate_batch(system, mt.root_key(0), 8, params, NUM_ROUNDS, observe=observe)
        )
    num_experts, scale = own["num_experts"], own["perturbation_scale"]
    assert dims.max_experts > num_experts
    for lane in range(8):
        expected = settled_by_definition(outputs[:, :num_experts, :, lane], lasts[:, :num_experts, lane], scale)
        first = expected.index(True) + 1 if any(expected) else 0
        assert state.settled[lane] == first
        assert state.moved[lane] == (moves[first:, lane].max() / own["truth_scale"] if first else 0)
        assert all(expected[first:]) or not first
    assert (state.settled > 0).sum() >= 6
    run = Run(params, np.arange(1, NUM_ROUNDS + 1), np.arange(8), state, None)
    np.testing.assert_array_equal(
        experiments.settling_time(run), np.where(state.settled > 0, state.settled, NUM_ROUNDS)
    )


def test_a_setting_changes_what_it_names():
    """Catches sizes that stay as recorded, so that a search looks at one point for ever."""
    made = experiments.once_settled({"num_tasks": 5, "num_features": 9, "sigma_0": 0.01, "own": baseline.last_move})
    assert (made.dims.num_tasks, made.dims.num_features, made.dims.max_experts) == (5, 9, 10)
    assert {own["truth_scale"] for own in made.cells.values()} == {0.01}
    assert [own["num_experts"] for own in made.cells.values()] == [10, 5, 4]
    assert made.system is experiments.system_with_settling(made.dims, baseline.last_move)
    signals = {
        own["signal_scale"] ** 2 * own["truth_scale"] ** 2 * made.dims.num_features for own in made.cells.values()
    }
    np.testing.assert_allclose(list(signals), 1)


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        pytest.param("conservation.py", "c = length - b[m]", "c = length", marks=pytest.mark.thorough),  # no baseline
        ("absorption.py", "Fraction(5, 2))", "-Fraction(5, 2))"),  # a repeat that is charged
        ("experts_needed.py", "all(last[leaders[n]] == n", "any(last[leaders[n]] == n"),
        ("forgetting.py", "Fraction(settled - 1, t - 1)", "Fraction(settled, t)"),
    ],
)
def test_a_wrong_step_of_a_proof_is_found(file, right, wrong, tmp_path):
    text = (PROOFS / file).read_text(encoding="utf-8")
    assert text.count(right) == 1, right
    (tmp_path / file).write_text(text.replace(right, wrong), encoding="utf-8")
    found = subprocess.run([sys.executable, str(tmp_path / file)], capture_output=True, text=True, timeout=60)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "not proved" in found.stdout
