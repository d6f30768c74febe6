"""Runs of presets, kept and resumed: numbers depend on no interruption, and no row is another's."""

import contextlib
import dataclasses
import re
import sqlite3

import chex
import numpy as np
import pytest
import xarray as xr
from refusals import refusal

from moe_theory.core import engine
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import datasets, reading, runs
from moe_theory.deep.params import Dims
from moe_theory.deep.presets import preset
from moe_theory.deep.runs import dataset
from moe_theory.runs.files import digest, plain
from moe_theory.runs.progress import Progress
from moe_theory.runs.store import unpack

ROUNDS, EVERY = 6, 4  # in parts of 4 and of 2
DIMS = Dims(4, 3, ROUNDS, num_samples=10, num_tests=8, num_epochs=2, batch_size=10)
TINY = dataclasses.replace(preset("continual-mnist-small"), name="tiny", dims=DIMS, experts=(1, 4))
SERVERS = dataclasses.replace(preset("edge-mnist-small"), name="tiny-edge", dims=DIMS, experts=(4,))


def plan_of(folder=None, **changes):
    request = {"preset": TINY, "replicates": 2, "every": EVERY, "folder": folder} | changes
    return runs.Plan(data=datasets.load("digits"), reading=reading("balanced"), **request)


def key_of(plan, cell, replicate):
    params = plan.params()[cell]._asdict()
    return digest(plain({**runs._common_key(plan), "cell": cell, "replicate": replicate, "params": params}))


def saved(plan, cell, replicate=0):
    """The arrays that the store has of a run."""
    return unpack(plan.store.get(key_of(plan, cell, replicate)))


class CutError(Exception):
    """The power fails."""


class Told(Progress):
    """Calls `on_step` with a run, its completed rounds, and the rounds of a part, or 0 for its beginning."""

    def __init__(self, on_step):
        self.on_step = on_step
        self.begun = set()

    def at(self, place):
        self.place = re.fullmatch(r"(.*), seed (\d+), round (\d+) of \d+", place).groups()

    def advance(self, rounds):
        cell, seed, done = self.place
        run = cell, int(seed)
        is_begin = run not in self.begun
        self.begun.add(run)
        self.on_step(run, int(done), is_begin)


def cut_after(number):
    """What ends a run at the end of its `number`-th part."""
    parts = []

    def on_step(run, done, is_begin):
        parts.extend([] if is_begin else [done])
        if len(parts) == number:
            raise CutError

    return Told(on_step)


def resumed_at(plan):
    """The runs, and the rounds that the store had of each before."""
    found = {}

    def on_step(run, done, is_begin):
        if is_begin:
            found[run] = done

    return runs.run_plan(plan, Told(on_step)), found


def assert_same(ours, theirs):
    assert list(ours) == list(theirs)
    for cell in ours:
        chex.assert_trees_all_equal(ours[cell].records, theirs[cell].records)


@pytest.fixture(scope="module")
def undisturbed():
    return runs.run_plan(plan_of())


def test_a_resumed_run_equals_an_undisturbed_one(undisturbed, tmp_path):
    runs.run_plan(plan_of(replicates=1))  # between tests what was compiled may be freed
    plan, before = plan_of(tmp_path), engine.num_programs()
    for number in (1, 2, 2):  # of two parts a run
        with pytest.raises(CutError):
            runs.run_plan(plan, cut_after(number), num_threads=1)
    resumed, found = resumed_at(plan)
    assert set(found.values()) == {0, EVERY, ROUNDS}
    assert_same(resumed, undisturbed)
    assert engine.num_programs() == before, "cells, seeds, parts and what is restored have one program"
    again, found = resumed_at(plan)
    assert set(found.values()) == {ROUNDS}
    assert_same(again, undisturbed)
    longer, found = resumed_at(dataclasses.replace(plan, replicates=3))
    assert list(found.values()).count(ROUNDS) == 2 * len(undisturbed)
    for cell, run in longer.items():
        np.testing.assert_array_equal(run.records.accuracy[:, :2], undisturbed[cell].records.accuracy)


def test_a_complete_run_keeps_no_weights(undisturbed, tmp_path):
    del undisturbed
    plan = plan_of(tmp_path, replicates=1)
    sizes = {}

    def on_step(run, done, is_begin):
        arrays = saved(plan, run[0]) if done else {}
        sizes[run[0], done] = sum(array.nbytes for array in arrays.values())

    runs.run_plan(plan, Told(on_step), num_threads=1)
    assert 0 < sizes["M = 4", ROUNDS] < sizes["M = 4", EVERY] / 3
    assert not [name for name in saved(plan, "M = 4") if "state" in name]


def test_a_damaged_run_is_named_and_computed_again(undisturbed, tmp_path):
    plan = plan_of(tmp_path)
    runs.run_plan(plan)
    with contextlib.closing(sqlite3.connect(plan.store.file, isolation_level=None)) as database:
        where = "UPDATE results SET data = zeroblob(length(data)) WHERE key = ?"
        assert database.execute(where, (key_of(plan, "M = 4", 1),)).rowcount == 1
    again, found = resumed_at(plan)
    assert found.pop(("M = 4", 1)) == 0
    assert set(found.values()) == {ROUNDS}
    assert [*plan.store.damaged] == [key_of(plan, "M = 4", 1)]
    assert_same(again, undisturbed)
    assert set(resumed_at(plan)[1].values()) == {ROUNDS}


def test_another_setting_shares_no_row(undisturbed, tmp_path):
    plan = plan_of(tmp_path, replicates=1)
    runs.run_plan(plan)
    train = plan.data.train
    pixels, labels = train.pixels.copy(), train.labels.copy()
    pixels[-1, 0, 0] ^= 1
    labels[-1] = (labels[-1] + 1) % 10
    changed = [train._replace(pixels=pixels), train._replace(labels=labels)]
    data = [{"data": dataclasses.replace(plan.data, train=images)} for images in changed]
    assert {runs.load(plan, key_of(plan, cell, 0)).rounds_done for cell in plan.params()} == {ROUNDS}
    for changes in ({"settings": {"gate_scale": "3"}}, {"seed": 1}, *data):
        other = dataclasses.replace(plan, **changes)
        assert {runs.load(other, key_of(other, cell, 0)) for cell in other.params()} == {None}


def test_a_process_that_is_behind_loses_nothing_of_another_s_run(undisturbed, tmp_path):
    """Would catch a checkpoint in the place of a whole run, where it is the last that is written."""
    plan, other = plan_of(tmp_path, replicates=1), plan_of(tmp_path, replicates=1)

    def on_step(run, done, is_begin):
        if is_begin and run[0] == "M = 4":
            assert done == 0
            runs.run_plan(other, num_threads=2)
        elif run[0] == "M = 4":
            raise CutError

    with pytest.raises(CutError):
        runs.run_plan(plan, Told(on_step), num_threads=1)
    again, found = resumed_at(plan)
    assert set(found.values()) == {ROUNDS}
    for cell, run in again.items():
        np.testing.assert_array_equal(run.records.accuracy[:, :1], undisturbed[cell].records.accuracy[:, :1])


@pytest.mark.thorough
def test_servers_go_on_too(tmp_path):
    """Of `edge`, whose state has more in it: what is under way."""
    plan = plan_of(preset=SERVERS, replicates=1, every=3)
    undisturbed = runs.run_plan(plan)
    plan = dataclasses.replace(plan, folder=tmp_path)
    with pytest.raises(CutError):
        runs.run_plan(plan, cut_after(1), num_threads=1)
    resumed, found = resumed_at(plan)
    assert 3 in found.values()
    assert_same(resumed, undisturbed)


def test_labels(undisturbed):
    plan = plan_of()
    made = dataset(plan, undisturbed, "moe-theory deep")
    assert dict(made.sizes) == {"cell": 3, "round": ROUNDS, "replicate": 2, "expert_index": 4, "class": 3}
    assert made["class"].values.tolist() == ["1", "4", "7"]
    arrived = (made.task == xr.DataArray(np.arange(3), dims="class")).cumsum("round")
    np.testing.assert_array_equal(
        np.isnan(made.class_accuracies), (arrived == 0).transpose(*made.class_accuracies.dims)
    )
    np.testing.assert_allclose((made.class_accuracies * arrived).sum("class") / made["round"], made.accuracy, rtol=1e-5)
    found = made.gate_outputs.sel(cell="M = 4", round=5, expert_index=2, replicate=1)
    assert float(found) == undisturbed["M = 4"].records.gate_outputs[4, 2, 1]
    assert made.attrs["reading"] == "balanced"
    assert made.attrs["data"] == "digits"


def test_requests_are_refused_before_anything_runs():
    for changes in ({"replicates": 0}, {"every": 0}, {"seed": -1}):
        assert refusal(InvalidValueError, plan_of, **changes).argument in changes
    for settings in ({"num_experts": 2}, {"num_rounds": 2}, {"policy": 1}, {"nu": 1}):
        refusal(InvalidValueError, plan_of, settings=settings)
    for value in ("wide", -1):
        assert refusal(InvalidValueError, plan_of, settings={"gate_scale": value}).argument == "gate_scale"
