"""Sweeps that keep no replicates: catches statistics that are other ones, made-up replicates, and large files."""

import numpy as np
import pytest
from packed import entries

import moe_theory as mt
from moe_theory.core.errors import InvalidRunError, InvalidSpecError, MissingChunkError
from moe_theory.runs.packs import Packs
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner

ARGUMENTS = {
    "system": "continual",
    "rounds": 30,
    "record_every": 10,
    "axes": {"num_experts": [2, 3]},
    "replicates": 300,  # four full batches of a core's cache, and one that is not
    "observables": ["forgetting", "loads"],
}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    return [mt.Sweep(**ARGUMENTS, keep=keep).run(folder / keep) for keep in ("statistics", "statistics only")]


def test_the_statistics_are_the_same_to_the_last_digit(both):
    whole, only = (results.to_xarray().load() for results in both)
    assert whole.equals(only)
    assert int(whole["forgetting"].sel(statistic="count").min()) == 300


def test_no_replicate_is_kept_and_none_is_made_up(both):
    whole, only = both
    sizes = [sum(map(len, entries(results.packs.folder).values())) for results in both]
    assert sizes[1] < sizes[0] / 2
    for ask in (only.run_of, only.replicates_of, only.cell):
        with pytest.raises(InvalidRunError, match=r"statistics only, and no replicates: set keep = 'statistics'"):
            ask(0)
    assert whole.run_of(0).records.forgetting.shape == (3, 300)


def test_a_width_of_chunks_is_refused():
    with pytest.raises(InvalidSpecError, match=r"chunk_width=32 is for sweeps that keep replicates.*Take it away"):
        mt.Sweep(**ARGUMENTS, keep="statistics only", chunk_width=32)


def test_a_cell_that_does_not_fit_says_how_many_replicates_do(monkeypatch, tmp_path):
    sweep = mt.Sweep(**{**ARGUMENTS, "replicates": 100_000}, keep="statistics only")
    plan = planning.SweepPlan(sweep, planning.fingerprint("continual"))
    need = planning.memory_of(plan.chunks[0].task).of(100_000)
    monkeypatch.setattr(planning, "machine_memory", lambda: need - 1)
    with pytest.raises(InvalidRunError, match=r"Set replicates to \d+ or less"):
        runner.run(sweep, tmp_path)


def test_statistics_are_kept_beside_chunks_and_read_without_them(tmp_path, monkeypatch):
    """Would catch statistics of other chunks, and a sweep of which all replicates are read for a slice."""
    sweep = mt.Sweep(**{**ARGUMENTS, "replicates": 40})
    results = sweep.run(tmp_path)
    again = mt.Results.open(tmp_path)
    seen = []
    read = again.packs.read
    monkeypatch.setattr(again.packs, "read", lambda name: seen.append(name) or read(name))
    values = again.to_xarray().load()
    chunks = {chunk.name for chunk in again.plan.chunks}
    assert seen
    assert not chunks & set(seen)
    for place in range(2):
        for name, own in results._statistics(place).items():
            np.testing.assert_array_equal(values[name].values[place][: own.shape[0], ..., :], own)
    more = mt.Sweep(**{**ARGUMENTS, "replicates": 41}).run(tmp_path)
    assert int(more.to_xarray()["forgetting"].sel(statistic="count").min()) == 41


def test_statistics_of_a_part_of_the_replicates_are_not_kept(tmp_path):
    """Would catch statistics that, once all replicates are there, are still those of a part of them."""
    sweep = mt.Sweep(**{**ARGUMENTS, "replicates": 40}, chunk_width=16)
    outcome = runner.run(sweep, tmp_path)
    outcome.packs.remove([outcome.plan.by_cell[0][1].name])
    with pytest.raises(MissingChunkError, match="5 of 6 chunks"):
        mt.Results.open(tmp_path, partial=True).keep_statistics()
    assert int(sweep.run(tmp_path).to_xarray()["forgetting"].sel(statistic="count").min()) == 40


def test_a_failure_leaves_no_claim_behind(tmp_path, monkeypatch):
    """Would catch another thread on the same folder that waits for ever for statistics which nobody takes."""
    outcome = runner.run(mt.Sweep(**{**ARGUMENTS, "replicates": 40}), tmp_path)
    other = Packs(tmp_path)
    assert other.claim("something else")  # so that the folder's lock file stays open in this process
    results = mt.Results(outcome.plan, outcome.packs)
    monkeypatch.setattr(results, "_statistics", lambda place: {}[place])
    with pytest.raises(KeyError):
        results.keep_statistics()
    assert all(other.claim(results._blocks.name(block)) for block in range(len(results._blocks)))
    other.close()
