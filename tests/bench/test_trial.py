"""Measuring a group: catches times under the wrong name, and what cannot be run taken for a failure."""

import dataclasses
import time

import numpy as np
import pytest
from bench_samples import TINY

from moe_theory.bench import engine, grid, trial
from moe_theory.bench.grid import Group, Member
from moe_theory.bench.setting import Contender

EFFORT = trial.Effort(passes=3, seconds=0.001)


def sleeping(seconds):
    def prepare(setting):
        def run():
            time.sleep(seconds)
            return np.zeros(setting.batch)

        return run

    return prepare


@pytest.fixture
def contenders(monkeypatch):
    added = (
        Contender("slow", "", ("continual",), sleeping(0.04)),
        Contender("one by one", "", ("continual",), sleeping(0.02), one_by_one=True),
        Contender("not here", "", ("continual",), sleeping(0.01), requires="no_such_module"),
    )
    for contender in added:
        monkeypatch.setitem(grid.CONTENDERS, contender.name, contender)
    return [contender.name for contender in added]


def measure(members, threads=1):
    told = []
    group = Group("peers", "a group", tuple(members))
    return trial.measure_group(group, "one", threads, EFFORT, told.append), told


def test_each_contender_has_its_own_times(contenders):
    measured, told = measure([Member(name, TINY) for name in ("slow", "one by one", "not here")], threads=2)
    slow, single, absent = measured
    assert [each.contender for each in measured] == contenders
    assert [each.replicates for each in measured] == [8, 1, 8]
    assert min(slow.seconds) >= 0.04 > 0.02
    assert min(single.seconds) >= 0.02
    assert len(slow.seconds) == len(slow.yardstick) == EFFORT.passes
    assert (absent.skipped, absent.seconds) == ("no_such_module is not installed", ())
    assert told == ["a group: preparing slow", "a group: preparing one by one", "a group: timing"]


def test_a_batch_that_sweeps_would_choose_is_measured_once():
    width = engine.automatic_width(TINY)
    chosen = dataclasses.replace(TINY, batch=width)
    planned = trial.plan(
        Group("grid", "a group", (Member(engine.NAME, chosen), Member(engine.NAME, TINY, is_automatic=True))), "one", 1
    )
    assert [(each.setting.batch, each.is_automatic) for each in planned] == [(width, True)]


def test_what_does_not_fit_the_memory_is_skipped(monkeypatch):
    needed = engine.bytes_needed(TINY, 2)
    monkeypatch.setattr(trial, "machine_memory", lambda: needed - 1)
    (measured,), told = measure([Member(engine.NAME, TINY)], threads=2)
    assert "GB of this machine's" in measured.skipped
    assert told == []
    monkeypatch.setattr(trial, "machine_memory", lambda: needed)
    (planned,) = trial.plan(Group("peers", "a group", (Member(engine.NAME, TINY),)), "one", 2)
    assert planned.skipped == ""


def test_compiling_is_told_from_running():
    (measured,), _ = measure([Member(engine.NAME, TINY)])
    assert measured.first_seconds > 10 * min(measured.seconds)
