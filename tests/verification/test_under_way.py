"""Studies that are under way together: catches numbers that depend on which is done first, and one that ends others."""

import queue
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import pytest

from moe_theory.core.papers import Reading
from moe_theory.core.system import System
from moe_theory.runs import cells
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import session
from moe_theory.verification.archive import Archive
from moe_theory.verification.request import resolve
from moe_theory.verification.settings import Group

from .declarations import experiment, make

Params, State, Info = namedtuple("Params", ""), namedtuple("State", "round place"), namedtuple("Info", "place shown")
READING = Reading("one", "", Params())


def walk(length):
    """A system of its own: each is a program."""

    def init(key, params):
        return State(jnp.int32(0), jnp.float32(0))

    def step(key, state, params):
        place = state.place + length * jax.random.normal(key)
        return State(state.round + 1, place), Info(place, place)

    return System(init, step)


def studies(*lengths):
    groups = []
    for length in lengths:
        walks = experiment(
            name=f"walk {length}",
            system=walk(length),
            cells={"a": {}},
            observe=lambda state, info: info.place,
            replicates=512,
        )
        claim = make(
            id=f"test.walk-{length}",
            kind="upper_bound",
            experiment=walks,
            observe=lambda runs: runs["a"].records.T,
            predict=lambda runs: 1e-3,
        )
        groups.append(Group(walks, READING, [claim]))
    return resolve(groups, None, 5, 1e-3)


def numbers(report):
    return [verdict.to_json() for verdict in report.verdicts]


class Reversed(ThreadPoolExecutor):
    """Does last what was asked for first."""

    def __init__(self):
        super().__init__(1)
        self._work_queue = queue.LifoQueue()


def test_verdicts_do_not_depend_on_how_many_replicates_fit_into_memory_at_once(monkeypatch):
    """Would catch looks at replicates of which only some have been run, and samples counted twice."""
    request, made = studies(1), []
    expected = numbers(session.carry_out(request))

    class Counted(cells.CellBatch):
        def __init__(self, chosen, num_replicates, *, first, **options):
            made.append((first, first + num_replicates))
            super().__init__(chosen, num_replicates, first=first, **options)

    monkeypatch.setattr(session, "CellBatch", Counted)
    monkeypatch.setattr(session, "PART_BYTES", 1)
    assert numbers(session.carry_out(request)) == expected
    assert made == [(first, first + 64) for first in range(0, expected[0]["replicates"], 64)]
    assert len(made) > len(expected[0]["looks"])


def test_verdicts_do_not_depend_on_which_chunk_is_done_first(monkeypatch):
    request = studies(1, 2, 3)
    expected = numbers(session.carry_out(request))
    assert any(len(verdict["looks"]) > 2 for verdict in expected)
    with Reversed() as executor:
        pool = WorkerPool(executor, "one that does the last first", 8, are_threads=True)
        monkeypatch.setattr("moe_theory.runs.runner.device_pool", lambda: pool)
        assert numbers(session.carry_out(request)) == expected


def test_an_interrupt_keeps_the_samples_that_were_taken(tmp_path):
    def stop(verdict):
        raise KeyboardInterrupt

    archive, request = Archive(tmp_path), studies(1, 2, 3)
    with pytest.raises(KeyboardInterrupt):
        session.carry_out(request, archive=archive, on_verdict=stop)
    found = [archive.load(study.claims[0], study.reading, study.seed) for study in request.studies]
    assert any(found)
    assert all(samples.num_replicates >= 64 for samples, _ in filter(None, found))
    assert numbers(session.carry_out(request, archive=archive)) == numbers(session.carry_out(request))
