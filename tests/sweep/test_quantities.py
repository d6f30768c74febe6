"""Users' observables and papers' closed forms in a sweep: catches values of other runs, rounds or settings."""

import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge, merging
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.core.random import replicate_keys
from moe_theory.runs.progress import quiet
from moe_theory.sweep.systems import sweepable

OWN = """
import jax.numpy as jnp

def idle(state, info):
    return jnp.sum(state.visits == 0)

def visits(state, info):
    return state.visits
"""
SIZES = {"num_tasks": 3, "num_features": 4, "num_samples": 2}


def ran(folder, system, observables, **changes):
    arguments = {"rounds": 6, "record_every": 3, "replicates": 4, "keep": "replicates", "dims": SIZES, **changes}
    return mt.Sweep(system=system, observables=observables, **arguments).run(folder, devices=1, progress=quiet)


def test_observable_of_a_file_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    results = ran(tmp_path / "runs", "continual", ["loads", "mine.py:idle"], params={"num_experts": 4})
    data = results.to_xarray()
    np.testing.assert_array_equal(data["idle"], (data["loads"] == 0).sum("expert_index"))
    (tmp_path / "mine.py").unlink()  # saved results do without it
    assert mt.Results.open(tmp_path / "runs").to_xarray().identical(data)


def test_observable_of_a_changed_file_is_computed_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    before = ran(tmp_path / "runs", "continual", ["mine.py:idle"]).to_xarray()
    (tmp_path / "mine.py").write_text(OWN.replace("== 0", "> 0") + "\n# changed\n")
    after = ran(tmp_path / "runs", "continual", ["mine.py:idle"]).to_xarray()
    np.testing.assert_array_equal(before["idle"] + after["idle"], 10)  # experts in all


@pytest.mark.parametrize(
    ("observable", "error"),
    [
        ("mine.py:visits", InvalidValueError),
        ("mine.py:nothing", UnknownNameError),
        ("other.py:idle", DeclarationError),
        ("mine.py:replicate", DeclarationError),
        ("mine.py:forgetting", DeclarationError),
    ],
)
def test_observable_of_a_file_is_refused(tmp_path, monkeypatch, observable, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(error):
        ran(tmp_path / "runs", "continual", [observable])


@pytest.mark.parametrize(
    ("form", "theorem", "metric"),
    [
        ("theorem_1_forgetting", continual.theory.theorem_1, "forgetting"),
        ("theorem_2_error", continual.theory.theorem_2, "generalization_error"),
    ],
)
def test_closed_form_of_continual_is_the_theorem_for_each_replicate(tmp_path, form, theorem, metric):
    params = {"num_experts": 2, "learning_rate": 0.5}
    data = ran(tmp_path, "continual", [form], params=params).to_xarray()[form]
    system = continual.system(continual.Dims(max_experts=2, **SIZES))
    cell_params = sweepable("continual").readings["unit-signal"].defaults._replace(**params)
    for replicate in range(4):
        key = replicate_keys(mt.root_key(0), np.uint32([replicate]))[0]
        state, _ = mt.simulate(system, key, cell_params, 6)
        gaps = continual.theory.Gaps(*(np.float64(gap) for gap in continual.theory.gaps(state.pool)))
        loads = np.asarray(state.visits)
        bound = theorem(gaps, 0.5, loads, np.asarray(state.explored_visits), 6)
        assert data.sel(round=6, replicate=replicate).item() == pytest.approx(getattr(bound, metric), rel=1e-6)


def test_closed_form_of_edge_is_proposition_4_for_each_replicate(tmp_path):
    data = ran(tmp_path, "edge", ["proposition_4"], params={"num_experts": 3}).to_xarray()["proposition_4"]
    system = edge.system(edge.Dims(max_experts=3, **SIZES))
    params = sweepable("edge").readings[sweepable("edge").default_reading].defaults._replace(num_experts=3)
    for replicate in range(4):
        key = replicate_keys(mt.root_key(0), np.uint32([replicate]))[0]
        state, _ = mt.simulate(system, key, params, 6)
        gaps = edge.theory.Gaps(*map(np.float64, edge.theory.gaps(state.pool, params.cluster_spread)))
        bound = edge.theory.proposition_4(gaps, 0.5, np.asarray(state.visits), state.visits.sum())
        assert data.sel(round=6, replicate=replicate).item() == pytest.approx(float(bound), rel=1e-6)


def test_closed_form_of_merging_is_the_same_for_all_replicates(tmp_path):
    axes = {"smoothness_ratio": [0.5, 0.7]}
    data = ran(tmp_path, "merging", ["leaves", "leaf_bound"], axes=axes, dims={}, keep="statistics").to_xarray()
    for ratio in (0.5, 0.7):
        bound = merging.theory.leaf_bound(6.0, merging.Params(smoothness_ratio=ratio))
        assert data["leaf_bound"].sel(smoothness_ratio=ratio, round=6, statistic="mean").item() == pytest.approx(bound)


def test_observables_of_a_file_are_one_function_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    kind = sweepable("continual")
    before = kind.observe(["mine.py:idle"])
    assert kind.observe(["mine.py:idle"]) is before  # otherwise each chunk compiles
    (tmp_path / "mine.py").write_text(OWN + "\n")
    assert kind.observe(["mine.py:idle"]) is not before
