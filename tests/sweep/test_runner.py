"""Running sweeps: catches numbers that depend on how they were computed, and work done twice or refused too late."""

import dataclasses
import functools
import multiprocessing
import os
import platform
import queue
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import jax
import numpy as np
import pytest
from refusals import refusal
from stored import files, harm, rows

import moe_theory as mt
from moe_theory import continual, root_key, simulate_batch
from moe_theory.core.errors import InvalidValueError, UnknownNameError, WorkersError
from moe_theory.runs import Progress
from moe_theory.runs.store import unpack
from moe_theory.runs.workers import device_pool, executor_pool
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner
from moe_theory.sweep.results import Results, Sweep
from moe_theory.sweep.systems import sweepable

from .swept import ARGUMENTS, SWEEP

ONE_CELL = ARGUMENTS | {"axes": {"num_experts": [5], "learning_rate": [0.1]}, "replicates": 16}


class AtFirst(Progress):
    """Does something when the first result has come."""

    def __init__(self, act):
        self.act = act

    def advance(self, replicate_rounds):
        act, self.act = self.act, lambda: None
        act()


def test_two_workers_give_the_same_bytes(undisturbed, tmp_path):
    runner.run(SWEEP, tmp_path, pool=device_pool(2))
    assert rows(tmp_path) == undisturbed


@pytest.mark.thorough
def test_another_process_gives_the_same_bytes(undisturbed, tmp_path):
    """Would catch other numbers from other processes."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        assert runner.run(SWEEP, tmp_path, pool=executor_pool(executor)).counts.computed == 18
    assert rows(tmp_path) == undisturbed


@pytest.mark.thorough
def test_a_lost_process_ends_the_run_and_the_next_one_resumes(undisturbed, tmp_path):
    """Would catch other numbers from other processes, a wait for workers that are gone, and results lost with them."""

    def kill():
        for process in multiprocessing.active_children():
            process.kill()

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor, pytest.raises(WorkersError) as lost:
        SWEEP.run(tmp_path, executor=executor, progress=AtFirst(kill))
    assert "\n" not in str(lost.value)
    saved = rows(tmp_path)
    assert saved.items() <= undisturbed.items()
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        counts = runner.run(SWEEP, tmp_path, pool=executor_pool(executor)).counts
    assert (counts.present, counts.computed) == (len(saved), 18 - len(saved))
    assert rows(tmp_path) == undisturbed


def test_halves_on_two_days_give_the_same_bytes(undisturbed, tmp_path):
    runner.run(Sweep(**{**ARGUMENTS, "replicates": 16}), tmp_path)
    counts = runner.run(SWEEP, tmp_path).counts
    assert (counts.present, counts.computed) == (6, 12)
    assert rows(tmp_path) == undisturbed
    assert runner.run(SWEEP, tmp_path).counts.computed == 0


def test_three_parts_together_are_the_sweep(undisturbed, tmp_path):
    results = [SWEEP.run(tmp_path, part=f"{number}/3") for number in (1, 2, 3)]
    assert [each.coverage.chunks for each in results] == [6, 12, 18]
    assert [file.name for file in files(tmp_path)] == [f"results-{number}-of-3.sqlite" for number in (1, 2, 3)]
    assert rows(tmp_path) == undisturbed
    assert runner.run(SWEEP, tmp_path).counts.computed == 0


def test_what_names_no_part_is_refused():
    for text in ("", "1", "/", "0/2", "3/2", "-1/2", "1.0/2", "1/2/3", "a/b", "1 / 2"):
        assert refusal(InvalidValueError, runner.Part.parsed, text).argument == "part"


def test_parts_on_machines_that_are_not_alike_are_refused(tmp_path, monkeypatch):
    """Would catch parts whose chunks have other names than those that are looked for."""
    SWEEP.run(tmp_path, part="1/2")
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=SSE4_2")
    with pytest.raises(InvalidValueError, match="SSE4_2"):
        SWEEP.run(tmp_path, part="2/2")
    assert len(files(tmp_path)) == 1


def test_a_damaged_chunk_is_named_and_computed_again(undisturbed, tmp_path):
    runner.run(SWEEP, tmp_path)
    name = min(undisturbed)
    harm(tmp_path, name)
    counts = runner.run(SWEEP, tmp_path).counts
    assert (counts.present, counts.computed, counts.damaged.keys()) == (17, 1, {name})
    assert rows(tmp_path) == undisturbed
    assert runner.run(SWEEP, tmp_path).counts.damaged == {}


def test_a_damaged_manifest_is_written_anew_and_costs_nothing(tmp_path):
    sweep = Sweep(**ONE_CELL)
    runner.run(sweep, tmp_path)
    for text in ("", "{", "[]", '{"schema": "other"}', '{"schema": "moe-theory/sweep/3"}'):
        (tmp_path / runner.MANIFEST).write_text(text)
        refusal(InvalidValueError, Results.open, tmp_path)
        assert runner.run(sweep, tmp_path).counts.computed == 0
        assert Results.open(tmp_path).sweep == sweep


def test_a_chunk_holds_what_simulate_batch_gives(undisturbed):
    kind, cell = sweepable("continual"), SWEEP.grid.cells[3]
    chunk = planning.SweepPlan(SWEEP, planning.fingerprint("continual")).by_cell[3][1]
    observe = kind.observe(["forgetting", "generalization_error"])
    _, records = simulate_batch(
        kind.system(cell.dims, cell.choices), root_key(0), list(range(16, 32)), cell.params, 30, 10, observe=observe
    )
    stored = unpack(undisturbed[chunk.name])
    for name, values in records.items():
        np.testing.assert_allclose(stored[name], values, rtol=2e-5)


def test_a_name_depends_on_everything_that_decides_numbers():
    plan = planning.SweepPlan(SWEEP, planning.fingerprint("continual"))
    task = plan.chunks[0].task
    changes = {
        "system": "edge", "rounds": 31, "record_every": 5, "seed": 1, "precision": "float64", "width": 32, "batch": 8,
        "observables": ("forgetting",), "params": {**task.params, "learning_rate": 0.2},
        "dims": {**task.dims, "num_tasks": 7}, "choices": {"optimizer": "adam"},
        "fingerprint": {**task.fingerprint, "jaxlib": "0"},
    }  # fmt: skip
    assert changes.keys() == {field.name for field in dataclasses.fields(task)}
    tasks = [task, *(dataclasses.replace(task, **{name: value}) for name, value in changes.items())]
    chunks = [plan.chunks[0]._replace(task=task) for task in tasks]
    assert len({chunk.name for chunk in chunks}) == len(chunks)
    assert len({chunk.name for chunk in plan.chunks}) == len(plan.chunks)
    assert len({chunk.task.program for chunk in plan.chunks}) == 1  # cells of one shape


def test_a_worker_with_other_versions_refuses_and_names_its_machine():
    chunks = planning.SweepPlan(SWEEP, planning.fingerprint("continual") | {"jax": "0.1"}).chunks
    assert f"worker on {platform.node()}" in str(refusal(InvalidValueError, planning.compute, chunks[0]))


def test_too_many_chunks_are_refused_at_once():
    sweep = Sweep(**{**ARGUMENTS, "replicates": 2**31})
    refusal(InvalidValueError, planning.SweepPlan, sweep, planning.fingerprint("continual"))


def test_an_interrupt_saves_what_is_done_and_in_hand(undisturbed, tmp_path):
    asked = iter([False, False, True])
    with pytest.raises(KeyboardInterrupt):
        runner.run(SWEEP, tmp_path, pool=device_pool(1), is_stopped=lambda: next(asked))
    saved = rows(tmp_path)
    assert 0 < len(saved) < 18
    assert saved.items() <= undisturbed.items()
    assert runner.run(SWEEP, tmp_path).counts.present == len(saved)


class Faulty(Executor):
    """Workers that do not know the optimizer of cells with three experts."""

    def submit(self, call):
        if call.func is planning.compute:
            (chunk,) = call.args
            if chunk.task.params["num_experts"] == 3:
                chunk = chunk._replace(task=dataclasses.replace(chunk.task, choices={"optimizer": "no such"}))
            return answered(planning.compute, chunk)
        return answered(call)


def answered(call, *arguments):
    """A future that has ended."""
    future = Future()
    try:
        future.set_result(call(*arguments))
    except Exception as failure:
        future.set_exception(failure)
    return future


def test_an_error_ends_a_run_and_names_its_cell(undisturbed, tmp_path):
    with pytest.raises(UnknownNameError) as told:
        runner.run(SWEEP, tmp_path, pool=executor_pool(Faulty()))
    assert "'num_experts': 3" in "".join(told.value.__notes__)
    assert rows(tmp_path).items() < undisturbed.items()


class Client:
    """As a Dask client has it."""

    __module__ = "distributed.client"


def test_what_is_no_executor_is_refused_at_once(tmp_path):
    for executor in ("tcp://host:8786", Client(), queue.Queue()):
        assert refusal(InvalidValueError, SWEEP.run, tmp_path / "run", executor=executor).argument == "executor"


class Stale(Executor):
    """Workers with other code."""

    def submit(self, call):
        return answered(lambda: call() | {"code": "of last year"})


def test_an_executor_with_other_code_is_refused(tmp_path):
    """Would catch chunks that are named after code which this process does not run, and so cannot find again."""
    refusal(InvalidValueError, SWEEP.run, tmp_path, executor=Stale())
    assert files(tmp_path) == []


DIMS = continual.Dims(max_experts=4, num_tasks=3, num_features=6, num_samples=2)
SYSTEM, PARAMS = continual.system(DIMS), continual.Params(num_experts=2)


def test_a_setting_has_the_numbers_that_it_has_alone():
    data = mt.vary(SYSTEM, PARAMS, 7, 96, 3, seed=5, num_experts=[4, 1], learning_rate=(0.1, 0.5))
    assert data.generalization_error.dims == ("num_experts", "learning_rate", "round", "replicate")
    assert data["round"].values.tolist() == [3, 6, 7]
    for size in (1, 4):
        for rate in (0.1, 0.5):
            params = PARAMS._replace(num_experts=size, learning_rate=rate)
            _, info = mt.simulate_batch(SYSTEM, mt.root_key(5), 96, params, 7, 3)
            here = data.sel(num_experts=size, learning_rate=rate)
            for name, expected in info._asdict().items():
                np.testing.assert_array_equal(here[name], expected)


def test_labels_are_those_of_the_record():
    data = mt.vary(SYSTEM, PARAMS, 2, 8)
    assert data.generalization_error.long_name == "G_t, (16)"
    single = mt.vary(SYSTEM, PARAMS, 2, 8, observe=lambda state, info: info.error, num_experts=range(1, 4))
    assert single.value.dims == ("num_experts", "round", "replicate")
    by_name = mt.vary(SYSTEM, PARAMS, 2, 8, observe=lambda state, info: {"loads": state.visits}, num_experts=[2])
    assert by_name.loads.dims == ("num_experts", "round", "loads_0", "replicate")


def test_what_cannot_be_run_is_refused_at_once():
    many = (SYSTEM, PARAMS, 10**9, 8)
    assert refusal(UnknownNameError, mt.vary, *many, num_expert=[1]).argument == "parameter"
    for values in ([], [[1, 2]], [2, 2], 3, [1, 9]):
        assert refusal(InvalidValueError, mt.vary, *many, num_experts=values).argument == "num_experts"
    assert refusal(InvalidValueError, mt.vary, *many, terminate=[None, True]).argument == "terminate"
    refusal(InvalidValueError, mt.vary, SYSTEM, PARAMS, 2, 8, observe=lambda state, info: ())


def test_names_that_meet_are_kept_apart():
    """Would catch a quantity that another one of the same joined name replaces."""
    numbers = {"a_b": 2.0, "a": {"b": 1.0}, "round": 3.0, "round_": 4.0}
    data = mt.vary(SYSTEM, PARAMS, 2, 8, observe=functools.partial(repeated, numbers))
    assert sorted(float(values[0, 0]) for values in data.data_vars.values()) == [1.0, 2.0, 3.0, 4.0]


def repeated(numbers, state, info):
    """These numbers of every replicate."""
    return jax.tree.map(lambda number: number + 0 * info.error, numbers)
