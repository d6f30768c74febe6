"""Runs of presets, kept and resumed: numbers depend on no interruption, and no row is another's."""

import contextlib
import dataclasses
import sqlite3

import chex
import numpy as np
import pytest

from moe_theory.core import engine
from moe_theory.deep import datasets, reading, runs
from moe_theory.deep.params import Dims
from moe_theory.deep.presets import preset
from moe_theory.runs.store import unpack

ROUNDS, EVERY = 6, 4  # in parts of 4 and of 2
DIMS = Dims(4, 3, ROUNDS, num_samples=10, num_tests=8, num_epochs=2, batch_size=10)
TINY = dataclasses.replace(preset("continual-mnist-small"), name="tiny", dims=DIMS, experts=(1, 4))
SERVERS = dataclasses.replace(preset("edge-mnist-small"), name="tiny-edge", dims=DIMS, experts=(4,))


def plan_of(folder=None, **changes):
    request = {"preset": TINY, "replicates": 2, "every": EVERY, "folder": folder} | changes
    return runs.Plan(data=datasets.load("digits"), reading=reading("balanced"), **request)


def key_of(plan, cell, replicate):
    return runs._key(runs._common_key(plan), cell, replicate, plan.params()[cell])


def saved(plan, cell, replicate=0):
    """The arrays that the store has of a run."""
    return unpack(plan.store.get(key_of(plan, cell, replicate)))


class CutError(Exception):
    """The power fails."""


def cut_after(number):
    """What ends a run at the end of its `number`-th part."""
    parts = []

    def on_step(step):
        parts.extend([] if step.is_begin else [step])
        if len(parts) == number:
            raise CutError

    return on_step


def resumed_at(plan):
    """The runs, and the rounds that the store had of each before."""
    found = {}

    def on_step(step):
        if step.is_begin:
            found[step.cell, step.replicate] = step.done

    return runs.run_plan(plan, on_step), found


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

    def on_step(step):
        arrays = saved(plan, step.cell) if step.done else {}
        sizes[step.cell, step.done] = sum(array.nbytes for array in arrays.values())

    runs.run_plan(plan, on_step, num_threads=1)
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
    assert {runs.load(plan, key_of(plan, cell, 0)).done for cell in plan.params()} == {ROUNDS}
    for changes in ({"settings": {"gate_scale": "3"}}, {"seed": 1}, *data):
        other = dataclasses.replace(plan, **changes)
        assert {runs.load(other, key_of(other, cell, 0)) for cell in other.params()} == {None}


def test_a_process_that_is_behind_loses_nothing_of_another_s_run(undisturbed, tmp_path):
    """Would catch a checkpoint in the place of a whole run, where it is the last that is written."""
    plan, other = plan_of(tmp_path, replicates=1), plan_of(tmp_path, replicates=1)

    def on_step(step):
        if step.is_begin and step.cell == "M = 4":
            assert step.done == 0
            runs.run_plan(other, num_threads=2)
        elif step.cell == "M = 4":
            raise CutError

    with pytest.raises(CutError):
        runs.run_plan(plan, on_step, num_threads=1)
    again, found = resumed_at(plan)
    assert set(found.values()) == {ROUNDS}
    for cell, run in again.items():
        np.testing.assert_array_equal(run.records.accuracy[:, :1], undisturbed[cell].records.accuracy[:, :1])
