"""Samples taken elsewhere: catches numbers that depend on where, code that differs there, and losses that lose more."""

import functools
import sys
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor

import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError, WorkersError
from moe_theory.runs import quiet
from moe_theory.runs.store import Store
from moe_theory.verification import Status

CLAIM = "continual.lemma-4"  # an identity: it takes all its replicates, in several looks and blocks
OTHER = "generalization.lemma-6.growth"  # whose statement leaves a size free


def judged(claims, folder, **about):
    """Verdicts as plain data, and the bytes of the samples by their keys."""
    about = {"readings": "quick", "seed": 3, "replicates": 256, "progress": quiet, **about}
    verdicts = mt.verify(claims, folder=folder, **about)
    return [each.to_json() for each in verdicts], samples(folder)


def samples(folder):
    store = Store(folder / "samples")
    keys = store.keys()
    return {key: store.get(key) for key in keys}


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as executor:
        yield executor


class Changing(Executor):
    """Does at once what it is asked for, each task as `change` makes it."""

    def __init__(self, change):
        self.change = change

    def submit(self, call, /):
        future = Future()
        try:
            is_task = isinstance(call, functools.partial)
            future.set_result(call.func(*map(self.change, call.args)) if is_task else call())
        except Exception as failure:
            future.set_exception(failure)
        return future


@pytest.mark.parametrize(
    ("claims", "settings"),
    [
        pytest.param((CLAIM, OTHER), {}, marks=pytest.mark.thorough),
        (CLAIM, {"signal_scale": "2"}),
        (OTHER, {"num_features": "2"}),
    ],
)
def test_samples_taken_elsewhere_are_the_same(claims, settings, tmp_path):
    """To the byte; also at settings of parameters, and of what an experiment is built with."""
    expected = judged(claims, tmp_path / "here", settings=settings)
    tasks = []
    executor = Changing(lambda task: tasks.append(task) or task)
    assert judged(claims, tmp_path / "there", settings=settings, executor=executor) == expected
    assert expected[1]
    assert {task.claim for task in tasks} == {verdict["claim"] for verdict in expected[0]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": "other"}, rf"or other code of claim {CLAIM}, .*Install the same code"),
        ({"reading": "gone"}, "cannot find the claim or reading .*'gone'.*Install the same papers"),
    ],
)
def test_a_worker_whose_samples_would_be_others_takes_none(change, said, tmp_path):
    with pytest.raises(InvalidValueError, match=said):
        judged(CLAIM, tmp_path, executor=Changing(lambda task: task._replace(**change)))
    assert not samples(tmp_path)


def test_lost_workers_end_a_verification_that_then_resumes(tmp_path):
    """Would catch a loss that is taken for an error of a claim, and samples of looks before it that are thrown away."""
    asked = []

    def lose(task):
        asked.append(task)
        if len(asked) == 3:
            raise BrokenExecutor("gone")
        return task

    with pytest.raises(WorkersError, match=r"the workers of Changing are lost.*rerun the same command"):
        judged(CLAIM, tmp_path, executor=Changing(lose))
    assert samples(tmp_path)
    first = []
    again = judged(CLAIM, tmp_path, executor=Changing(lambda task: first.append(task.replicates[0]) or task))
    assert min(first) == asked[2].replicates[0] > 0
    assert again == judged(CLAIM, tmp_path / "whole", executor=Changing(lambda task: task))


def test_what_fails_in_the_runs_of_one_study_ends_no_other(tmp_path):
    def fail(task):
        if task.claim == OTHER:
            raise ZeroDivisionError("planted")
        return task

    expected, _ = judged((CLAIM, OTHER), tmp_path / "whole", executor=Changing(lambda task: task))
    verdicts, _ = judged((CLAIM, OTHER), tmp_path / "part", executor=Changing(fail))
    assert verdicts[0]["status"] == expected[0]["status"]
    assert verdicts[1]["status"] == Status.ERROR
    assert "ZeroDivisionError: planted" in verdicts[1]["reason"]


def test_what_workers_cannot_import_is_refused(executor):
    own = {"system": {"router": lambda *given: 0}, "executor": executor, "progress": quiet}
    refusal(InvalidValueError, mt.verify, "continual.lemma-11-more-experts", **own)
    refusal(InvalidValueError, mt.verify, OTHER, executor=executor, dask="local:2")


COMMAND = [sys.executable, "-m", "moe_theory", "verify", "continual.lemma-4", "generalization.lemma-6*"]
COMMAND += ["--reading", "quick,unit-signal", "--replicates", "256", "--json"]
