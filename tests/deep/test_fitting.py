"""Presets fitted to a clock, a gate drive or a data set: catches choices that are not what was asked for or is said."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, InvalidRunError, UnknownNameError
from moe_theory.deep import datasets, fitting, presets, reading, runs
from moe_theory.deep.fitting import Sizes
from moe_theory.deep.params import Dims

from . import dataset_files as files

DIMS = Dims(4, 3, 12, num_samples=10, num_tests=8, num_epochs=2, batch_size=10)
TINY = dataclasses.replace(presets.preset("continual-mnist-small"), name="tiny", dims=DIMS, experts=(1, 4))
PUBLISHED = presets.preset("continual-mnist")


def plan_of(of=TINY, **changes):
    request = {"preset": of, "replicates": 2, "data": datasets.load("digits"), "reading": reading("balanced")} | changes
    return runs.Plan(**request)


def test_sizes_take_the_place_of_the_presets():
    found = fitting.resized(PUBLISHED, Sizes("mlp", num_epochs=7, num_samples=50, num_rounds=9, experts=(2, 5)))
    assert found.dims == Dims(5, 3, 9, 50, 1000, 7, 50, "mlp")  # a batch is never larger than the samples
    assert list(found.cells()) == ["M = 2", "M = 2, no termination", "M = 5", "M = 5, no termination"]
    assert {cell["num_rounds"] for cell in found.cells().values()} == {9}
    assert fitting.resized(PUBLISHED, Sizes()) == PUBLISHED


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        (Sizes(network="mpl"), UnknownNameError, "mlp"),
        (Sizes(num_epochs=0), InvalidDimsError, "num_epochs=0"),
        (Sizes(num_samples=50, batch_size=20), InvalidDimsError, "batch_size=20"),
        (Sizes(experts=()), InvalidRunError, "experts"),
        (Sizes(experts=(4, 4)), InvalidRunError, "experts"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes, error, said):
    with pytest.raises(error, match=said):
        fitting.resized(PUBLISHED, sizes)


def test_claims_are_about_the_numbers_of_experts_of_a_figure():
    from moe_theory.deep.experiments import claims_for

    assert claims_for(fitting.resized(PUBLISHED, Sizes("mlp", num_epochs=2)), "digits")
    assert claims_for(fitting.resized(PUBLISHED, Sizes(experts=(1, 2))), "digits") == []


def test_test_images_are_thinned_evenly():
    data = datasets.load("digits")
    few = fitting.thinned(data, 10)
    assert few.test.pixels.shape == (10, 8, 8, 1)
    np.testing.assert_array_equal(few.test.labels[[0, -1]], data.test.labels[[0, -1]])
    assert few.train is data.train
    assert fitting.thinned(data, 10**6) is data is fitting.thinned(data, None)
    with pytest.raises(InvalidRunError, match="test_images=0"):
        fitting.thinned(data, 0)


def test_a_folder_tells_which_data_set_it_has(tmp_path):
    assert datasets.found_in(tmp_path) == []
    files.mnist(tmp_path / "mnist")
    assert datasets.found_in(tmp_path)[0] == "mnist"  # neither as published: the first
    assert "fashion-mnist" in datasets.found_in(tmp_path / "mnist")


@pytest.mark.parametrize(
    ("name", "found", "chosen", "data"),
    [
        (None, ["fashion-mnist"], "continual-mnist", "fashion-mnist"),
        (None, ["cifar10"], "continual-cifar10", "cifar10"),
        ("edge-mnist", ["fashion-mnist"], "edge-mnist", "fashion-mnist"),
        ("continual-mnist-small", ["mnist", "fashion-mnist"], "continual-mnist-small", "mnist"),
        ("continual-mnist-small", None, "continual-mnist-small", "digits"),
        ("continual-mnist-small", [], "continual-mnist-small", "mnist"),  # which is then missed by its name
    ],
)
def test_a_preset_is_run_on_the_data_that_are_there(name, found, chosen, data):
    preset = presets.on_data(name, found)
    assert (preset.name, preset.data) == (chosen, data)


def test_a_folder_without_data_names_no_preset():
    with pytest.raises(InvalidRunError, match="Name PRESET"):
        presets.on_data(None, [])


def test_what_is_given_stays_on_every_step_of_the_ladder():
    steps = fitting.ladder(PUBLISHED, Sizes())
    assert steps[0] == Sizes()
    assert [step.network for step in steps][3:] == ["five-layer-small"] * 3 + ["mlp"] * 2
    assert [step.num_epochs for step in steps][3:] == [60, 20, 10, 60, 20]
    kept = fitting.ladder(PUBLISHED, Sizes(network="mlp", num_epochs=3))
    assert {(step.network, step.num_epochs) for step in kept} == {(None, None)}


@pytest.mark.parametrize("seeds", [8, 20, 64])
def test_what_seeds_decide_is_the_binomials_tail(seeds):
    said = fitting.deciding([seeds], 0.01)
    needed = [count for count in range(seeds + 1) if stats.binom.sf(count - 1, seeds, 0.5) <= 0.0025]
    assert f"in {needed[0]} of {seeds}" in said if needed else "too few" in said


def test_a_clocks_seeds_are_looked_at_in_halves():
    """So that seeds that decide all claims are enough; each look spends its own share of the error."""
    assert plan_of(replicates=127, is_sequential=True).looks == (31, 63, 127)
    assert plan_of(replicates=40, is_sequential=True).looks == (40,)
    assert plan_of(replicates=128).looks == (128,)
    assert "of 32 or 4" in fitting.deciding([32, 64], 0.01)
    first = next(count for count in range(33) if stats.binom.sf(count - 1, 32, 0.5) <= 0.0025 / 2)
    assert f"in {first} of 32" in fitting.deciding([32, 64], 0.01)


def times(monkeypatch, **seconds):
    """Pretends that a round takes so long with a network."""
    monkeypatch.setattr(fitting, "seconds_per_round", lambda plan: seconds[plan.preset.dims.network.replace("-", "_")])


def test_the_largest_sizes_that_enough_seeds_fit_are_chosen(monkeypatch):
    """Five cells of 60 rounds: 60 seeds of .1 s a round take 30 minutes."""
    times(monkeypatch, five_layer=3.0, five_layer_small=0.1, mlp=0.01)
    plan = plan_of(PUBLISHED)
    chosen, told, sizes = fitting.within(plan, Sizes(), 40.0, 4, 0.01)
    assert (chosen.preset.dims.network, sizes.network) == ("five-layer-small", "five-layer-small")
    assert chosen.replicates == int(0.8 * 40 * 60 / (5 * 60 * 0.1)) == 64
    assert len(told) == 5  # a line each of what was timed, and what was chosen
    assert chosen.looks == (64,)
    assert "64 seeds, about 32 of 40 minutes" in told[-1]
    chosen, *_ = fitting.within(plan, Sizes(), 4.0, 4, 0.01)
    assert (chosen.preset.dims.network, chosen.replicates) == ("mlp", 64)
    chosen, *_ = fitting.within(plan, Sizes(), 1200.0, 4, 0.01)
    assert (chosen.preset, chosen.replicates) == (PUBLISHED, 64)


def test_too_few_minutes_shorten_runs_and_then_are_refused(monkeypatch):
    times(monkeypatch, five_layer=3.0, five_layer_small=3.0, mlp=0.1)
    chosen, *_ = fitting.within(plan_of(PUBLISHED), Sizes(), 1.0, 4, 0.01)
    assert (chosen.replicates, chosen.preset.num_rounds) == (4, 24)
    with pytest.raises(InvalidRunError, match="take about 1"):
        fitting.within(plan_of(PUBLISHED), Sizes(), 0.5, 4, 0.01)
    with pytest.raises(InvalidRunError, match=r"minutes=0\.0"):
        fitting.check(plan_of(), 0.0, None)


def test_the_gates_scale_reaches_a_drive():
    """Kappa of the pilot at the scale that was chosen; were it not its square, it would be off by the factor itself."""
    plan = plan_of()
    for target in (0.5, 8.0):
        chosen, told, _ = fitting.at_drive(plan, target)
        records = runs.pilot(chosen, "M = 4", 10).records
        assert np.median(records.drive) == pytest.approx(target, rel=0.5)
        assert f"for {target:g}" in told[0]
    with pytest.raises(InvalidParamsError, match="kappa=0"):
        fitting.check(plan, None, 0.0)
    with pytest.raises(InvalidParamsError, match="drop one"):
        fitting.check(plan_of(settings={"gate_scale": 3.0}), None, 3.0)


def test_experts_that_diverge_get_smaller_steps_or_are_told_of():
    assert fitting.converging(plan_of()).told == []
    with pytest.raises(InvalidRunError, match="even at expert_rate"):
        fitting.converging(plan_of(settings={"expert_rate": 1e30, "final_rate": 1e30}))


def test_a_run_whose_experts_diverge_stops():
    plan = plan_of(settings={"expert_rate": 1e30, "final_rate": 1e30})
    with pytest.raises(InvalidRunError, match=r"seed \d: experts diverge in round \d+, at expert_rate=1e\+30"):
        runs.run_plan(plan, num_threads=1)


def test_a_choice_is_kept_for_the_same_request(monkeypatch, tmp_path):
    times(monkeypatch, mlp=0.01, five_layer=9.0, five_layer_small=9.0)
    plan, path = plan_of(PUBLISHED, folder=tmp_path / "runs"), tmp_path / fitting.CHOSEN
    choice = fitting.within(plan, Sizes(), 2.0, 4, 0.01)
    fitting.keep(path, choice, plan, Sizes(), 2.0, None)
    kept = fitting.kept_choice(path, plan, Sizes(), 2.0, None)
    assert (kept.plan.preset, kept.plan.replicates) == (choice.plan.preset, choice.plan.replicates)
    assert kept.told == ["as chosen before:", *choice.told]
    assert fitting.kept_choice(path, plan, Sizes(), 3.0, None) is None
    assert fitting.kept_choice(path, dataclasses.replace(plan, seed=1), Sizes(), 2.0, None) is None
    path.write_text(json.dumps({"request": 1}))
    assert fitting.kept_choice(path, plan, Sizes(), 2.0, None) is None
    assert fitting.kept_choice(tmp_path / "nothing", plan, Sizes(), 2.0, None) is None
