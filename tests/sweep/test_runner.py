"""Running sweeps: catches numbers that depend on how they were computed, and work done twice or refused too late."""

import json
import multiprocessing
import os
import platform
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import jax
import numpy as np
import pytest
from packed import entries, harm, keep, packs

from moe_theory import root_key, simulate_batch
from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.runs import Progress
from moe_theory.runs.files import digest, unpack
from moe_theory.runs.packs import Packs
from moe_theory.runs.workers import DevicePool, ExecutorPool
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner, versions
from moe_theory.sweep.estimate import estimate
from moe_theory.sweep.manifest import read_manifest, runs_in, version_of, versions_in
from moe_theory.sweep.results import Results, Sweep
from moe_theory.sweep.systems import sweepable

from .swept import ARGUMENTS, SWEEP


class Reversed(ThreadPoolExecutor):
    """Does last what was asked for first."""

    def __init__(self):
        super().__init__(1)
        self._work_queue = queue.LifoQueue()


def test_two_workers_give_the_same_bytes(undisturbed, tmp_path):
    runner.run(SWEEP, tmp_path, pool=DevicePool(2))
    assert entries(tmp_path) == undisturbed


def test_the_order_does_not_matter(undisturbed, tmp_path):
    with Reversed() as executor:
        runner.run(SWEEP, tmp_path, pool=ExecutorPool(executor, num_workers=100))
    assert entries(tmp_path) == undisturbed


def test_other_processes_give_the_same_bytes(undisturbed, tmp_path):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        runner.run(SWEEP, tmp_path, pool=runner.pool_of(executor))
    assert entries(tmp_path) == undisturbed


def test_two_cpu_devices_give_the_same_bytes(undisturbed, tmp_path):
    code = f"""
import jax
jax.config.update("jax_num_cpu_devices", 2)
from moe_theory.sweep import runner, versions
from moe_theory.sweep.manifest import read_manifest
from moe_theory.sweep.results import Sweep
assert len(jax.local_devices()) == 2
runner.run(Sweep(**{ARGUMENTS!r}), {str(tmp_path)!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert entries(tmp_path) == undisturbed


def test_halves_on_two_days_give_the_same_bytes(undisturbed, tmp_path):
    runner.run(Sweep(**{**ARGUMENTS, "replicates": 16}), tmp_path)
    first = {path: path.stat().st_mtime_ns for path in packs(tmp_path)}
    counts = runner.run(SWEEP, tmp_path).counts
    assert (counts.present, counts.computed) == (6, 12)
    assert entries(tmp_path) == undisturbed
    assert all(path.stat().st_mtime_ns == written for path, written in first.items())


def test_more_replicates_of_a_partly_used_chunk_cost_nothing(tmp_path):
    runner.run(Sweep(**{**ARGUMENTS, "replicates": 33}), tmp_path)
    assert runner.run(Sweep(**{**ARGUMENTS, "replicates": 48}), tmp_path).counts.computed == 0


def test_a_chunk_holds_what_simulate_batch_gives(undisturbed):
    kind, cell = sweepable("continual"), SWEEP.grid.cells[3]
    chunk = planning.SweepPlan(SWEEP, planning.fingerprint("continual")).by_cell[3][1]
    observe = kind.observe(["forgetting", "generalization_error"])
    _, records = simulate_batch(
        kind.system(cell.dims, cell.choices), root_key(0), list(range(16, 32)), cell.params, 30, 10, observe=observe
    )
    stored = unpack(undisturbed[chunk.name])[1]
    for name, values in records.items():
        np.testing.assert_allclose(stored[name], values, rtol=2e-5)


def test_a_name_depends_on_everything_that_decides_numbers():
    plan = planning.SweepPlan(SWEEP, planning.fingerprint("continual"))
    task = plan.chunks[0].task
    changes = {
        "rounds": 31, "record_every": 5, "seed": 1, "precision": "float64", "first": 16, "width": 32, "batch": 8,
        "observables": ["forgetting"], "params": task["params"] | {"learning_rate": 0.2},
        "dims": task["dims"] | {"num_tasks": 7}, "choices": {"optimizer": "adam"},
        "fingerprint": task["fingerprint"] | {"jaxlib": "0"},
    }  # fmt: skip
    assert changes.keys() | {"system", "version"} == task.keys()
    assert len({digest(task), *(digest(task | {key: value}) for key, value in changes.items())}) == 13
    assert [chunk.name for chunk in plan.chunks] == [digest(chunk.task)[:40] for chunk in plan.chunks]
    assert len({chunk.name for chunk in plan.chunks}) == len(plan.chunks)
    assert len(plan.programs) == 1  # cells of one shape


def test_double_precision_is_the_specification_s_choice(tmp_path):
    outcome = runner.run(Sweep(**{**ARGUMENTS, "precision": "float64"}), tmp_path)
    chunk = outcome.plan.chunks[0]
    assert outcome.packs.read(chunk.name)["forgetting"].dtype == np.float64
    assert jax.numpy.result_type(float) == np.float32 or jax.config.jax_enable_x64


def test_a_worker_with_other_versions_refuses():
    chunks = planning.SweepPlan(SWEEP, planning.fingerprint("continual") | {"jax": "0.1"}).chunks
    with pytest.raises(InvalidRunError, match=r"jax .* and not 0\.1"):
        planning.compute(planning.parts_of(chunks[:1]))


@pytest.mark.parametrize(
    ("flag", "changes_numbers"),
    [
        ("--xla_cpu_max_isa=SSE4_2", True),
        ("--xla_cpu_enable_fast_math=true", True),
        ("--xla_force_host_platform_device_count=4", False),
    ],
)
def test_flags_that_change_numbers_change_the_fingerprint(monkeypatch, flag, changes_numbers):
    before = planning.fingerprint("continual")
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {flag}")
    assert (planning.fingerprint("continual") != before) is changes_numbers


def test_too_many_chunks_are_refused_at_once():
    sweep = Sweep(**{**ARGUMENTS, "replicates": 2**31})
    with pytest.raises(InvalidRunError, match=r"Set chunk_width to \d+"):
        planning.SweepPlan(sweep, planning.fingerprint("continual"))


def test_an_interrupt_that_python_dropped_still_ends_the_run(tmp_path):
    asked = iter([False, False, True])
    with pytest.raises(KeyboardInterrupt):
        runner.run(SWEEP, tmp_path, pool=DevicePool(1), is_stopped=lambda: next(asked))
    assert 0 < len(entries(tmp_path)) < 18


def test_threads_of_one_process_share_the_work_of_one_folder(undisturbed, tmp_path):
    for place in (tmp_path / "first", tmp_path / "again"):  # in the first one they mostly wait for a program
        runs = [threading.Thread(target=runner.run, args=(SWEEP, place)) for _ in range(3)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        assert entries(place) == undisturbed
        assert sum(run["computed"] for run in runs_in(place)) == 18


class Releasing(Progress):
    """Keeps what another process is at, and ends its claim, once it is waited for."""

    def __init__(self, other, found):
        self.other, self.found = other, found

    def running(self, what):
        if what.startswith("nothing: ") and self.found:
            keep(self.other.folder, self.found)
            for name in self.found:
                self.other.release(name)
            self.found = {}


def test_what_others_have_kept_meanwhile_ends_a_run(undisturbed, tmp_path):
    """Would catch a run that waits for ever, as it forgot what it had not claimed while it waited for others."""
    plan = planning.SweepPlan(SWEEP, planning.fingerprint("continual"))
    other, until = Packs(tmp_path), time.monotonic() + 60
    held = {chunk.name: undisturbed[chunk.name] for chunk in plan.chunks[:2]}
    assert all(map(other.claim, held))

    def is_stopped():
        """Asked first when it is known what is missing, and nothing is claimed yet."""
        if not packs(tmp_path):
            keep(tmp_path, {name: data for name, data in undisturbed.items() if name not in held})
        return time.monotonic() > until

    progress = Releasing(other, held)
    counts = runner.run(SWEEP, tmp_path, pool=DevicePool(1), progress=progress, is_stopped=is_stopped).counts
    assert (counts.present, counts.elsewhere, counts.computed) == (0, 18, 0)
    other.close()


class Failing(Executor):
    """Loses its workers at the given submissions, and fails for good at others."""

    def __init__(self, losses=(), failure=None):
        self.count, self.losses, self.failure = 0, losses, failure

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_running_or_notify_cancel()
        if function is planning.compute:
            self.count += 1
        if function is planning.compute and self.count in self.losses:
            future.set_exception(BrokenProcessPool("a worker died"))
        elif function is planning.compute and self.failure is not None:
            future.set_exception(self.failure)
        else:
            future.set_result(function(*arguments))
        return future


class Returning(ExecutorPool):
    """Workers that come back."""

    num_opened = 0

    def open(self):
        self.num_opened += 1
        return self._executor


def test_lost_workers_cost_only_what_they_had(undisturbed, tmp_path):
    executor = Failing(losses=(2, 7, 8))
    pool = Returning(executor, 1)
    counts = runner.run(SWEEP, tmp_path, pool=pool).counts
    assert counts.computed == 18
    assert executor.count > 8
    assert pool.num_opened >= 4
    assert entries(tmp_path) == undisturbed


def test_workers_lost_again_and_again_end_the_run(tmp_path):
    pool = Returning(Failing(losses=range(3, 1000)), 1)
    with pytest.raises(ExecutorLostError, match="2 of 18 chunks are kept"):
        runner.run(SWEEP, tmp_path, pool=pool)
    assert len(entries(tmp_path)) == 2


def test_an_executor_of_the_caller_s_own_is_not_reopened(tmp_path):
    with pytest.raises(ExecutorLostError, match="Run again with a new executor"):
        runner.run(SWEEP, tmp_path, pool=runner.pool_of(Failing(losses=(2,))))


class Client:
    """As a Dask client has it."""

    __module__ = "distributed.client"


class AutoExecutor:
    __module__ = "submitit.auto.auto"


@pytest.mark.parametrize(
    ("executor", "way_out"),
    [
        ("tcp://host:8786", "executor=str is no .*: an address of a Dask cluster is given as dask="),
        (Client(), "give the address of its scheduler, as dask="),
        (AutoExecutor(), r"executor\.map_array\(sweep\.run, "),
        (queue.Queue(), "executor=Queue is no .*: use ProcessPoolExecutor"),
    ],
)
def test_what_is_no_executor_is_refused_at_once(executor, way_out, tmp_path):
    with pytest.raises(InvalidRunError, match=way_out):
        SWEEP.run(tmp_path / "run", executor=executor)
    assert not (tmp_path / "run").exists()


class Jobs(Executor):
    """Returns what cannot be waited for."""

    def submit(self, function, /, *arguments, **options):
        return object()


def test_an_executor_whose_tasks_are_no_futures_is_refused(tmp_path):
    with pytest.raises(
        InvalidRunError, match=r"executor=Jobs submits tasks that are no concurrent\.futures\.Future: use"
    ):
        runner.run(SWEEP, tmp_path, pool=runner.pool_of(Jobs()))


class Stale(Executor):
    """Workers with other code."""

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_result(function(*arguments) | {"code": "of last year"})
        return future


def test_an_executor_with_other_code_is_refused(tmp_path):
    """Would catch chunks that are named after code which this process does not run, and so cannot find again."""
    with pytest.raises(InvalidRunError, match=r"the workers of Stale have code of last year and not \w+: install"):
        runner.run(SWEEP, tmp_path, pool=runner.pool_of(Stale()))
    assert not packs(tmp_path)


def test_a_pool_that_does_not_answer_is_named(monkeypatch, caplog, tmp_path, within_a_task):
    """Would catch a run in a task of its own pool that waits for ever without a word."""
    monkeypatch.setattr("moe_theory.runs.workers.SILENCE", 0.1)
    within_a_task(SWEEP.run, tmp_path)
    assert "no worker of ThreadPoolExecutor has answered in 0 s: it waits for one" in caplog.text
    assert "itself a task of theirs" in caplog.text


def test_a_task_that_fails_by_itself_ends_the_run(tmp_path):
    with pytest.raises(ZeroDivisionError, match="planted"):
        runner.run(SWEEP, tmp_path, pool=ExecutorPool(Failing(failure=ZeroDivisionError("planted")), 1))


class Interrupting(Progress):
    """Presses Ctrl-C after so many chunks."""

    def __init__(self, after):
        self.left = after

    def advance(self, replicate_rounds):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_an_interrupt_keeps_what_is_done_and_in_hand(undisturbed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        runner.run(SWEEP, tmp_path, pool=DevicePool(1), progress=Interrupting(3))
    kept = entries(tmp_path)
    assert 3 <= len(kept) < 18
    assert kept.items() <= undisturbed.items()
    assert runs_in(tmp_path)[0]["finished"] is not None
    assert runner.run(SWEEP, tmp_path).counts.present == len(kept)


@pytest.mark.thorough
def test_two_processes_share_the_work_of_one_folder(undisturbed, tmp_path):
    specification = tmp_path / "grid.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in ARGUMENTS.items() if name != "axes"]
    lines += ["[axes]", *(f"{name} = {values}" for name, values in ARGUMENTS["axes"].items())]
    specification.write_text("\n".join(lines))
    command = [sys.executable, "-m", "moe_theory", "sweep", str(specification), "--out", str(tmp_path / "run")]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert entries(tmp_path / "run").items() >= undisturbed.items()  # statistics are kept beside them, once too
    runs = runs_in(tmp_path / "run")
    assert len(runs) == 2
    assert sum(run["computed"] for run in runs) == 18


class Listening(Progress):
    def __init__(self):
        self.told = []

    def running(self, what):
        self.told.append(what)


def test_a_chunk_that_a_stopped_process_has_is_waited_for_when_all_else_is_done(undisturbed, tmp_path, holding):
    """Would catch a run that hangs without a word behind another one, or that says nothing of who has what."""
    held = planning.SweepPlan(SWEEP, planning.fingerprint("continual")).chunks[0].name
    other = holding(tmp_path, held)
    other.send_signal(signal.SIGSTOP)
    progress = Listening()
    run = threading.Thread(target=runner.run, args=(SWEEP, tmp_path), kwargs={"progress": progress})
    run.start()
    while len(entries(tmp_path)) < 17 or not progress.told[-1].startswith("nothing: "):
        run.join(0.05)
        assert run.is_alive()
    said = rf"process {other.pid} on {platform.node()}, which is stopped in '.+', holds 1 chunk since \d\d:\d\d"
    assert re.fullmatch(f"nothing: {said}", progress.told[-1])
    assert held not in entries(tmp_path)
    other.kill()
    other.communicate()
    run.join()
    assert entries(tmp_path) == undisturbed


def test_chunks_that_do_not_fit_in_memory_are_refused_beforehand(tmp_path, monkeypatch):
    sweep = Sweep(**{**ARGUMENTS, "chunk_width": 2**20, "replicates": 2**20, "record_every": 1})
    plan = planning.SweepPlan(sweep, planning.fingerprint("continual"))
    needed = planning.memory_of(plan.chunks[0].task).of(2**20)
    monkeypatch.setattr(planning, "machine_memory", lambda: needed)
    plan.require_memory(1)
    with pytest.raises(InvalidRunError, match=r"Set chunk_width to (\d+)") as told:
        runner.run(sweep, tmp_path, pool=DevicePool(2))
    fitting = int(str(told.value).partition("chunk_width to ")[2].split()[0])
    assert not entries(tmp_path)
    narrower = Sweep(**{**ARGUMENTS, "chunk_width": fitting, "replicates": 2**20, "record_every": 1})
    planning.SweepPlan(narrower, plan.fingerprint).require_memory(2)


@pytest.fixture
def stale(tmp_path, monkeypatch):
    """A folder that a run of other code was begun in after one of this code had come to its end."""
    runner.run(SWEEP, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("moe_theory.__version__", "0.0.9")
        with pytest.raises(KeyboardInterrupt):
            runner.run(SWEEP, tmp_path, progress=Interrupting(1))
    return tmp_path


def test_a_run_of_other_code_does_not_hide_what_is_finished(stale, caplog):
    """Would catch a manifest that is replaced when a run begins, so that finished chunks are not found."""
    assert Results.open(stale).coverage.is_complete
    (said,) = [
        record.getMessage() for record in caplog.get_records("setup") if "another version" in record.getMessage()
    ]
    own = version_of(read_manifest(stale))
    assert said.startswith(
        f"18 chunks in {stale} are of another version and not used (this one has moe-theory 0.0.9 and"
    )
    assert said.endswith(f"moe-theory sweep show {stale} --version {own}")
    (other,) = versions_in(stale).keys() - {own}
    begun = Results.open(stale, partial=True, version=other[:6])
    assert begun.plan.fingerprint["moe-theory"] == "0.0.9"
    assert 0 < begun.coverage.chunks < 18
    with pytest.raises(InvalidRunError, match=rf"has no version 'x': name one of .*{other}"):
        Results.open(stale, version="x")


def test_chunks_of_other_versions_are_removed_on_request(stale, undisturbed):
    results = Results.open(stale)
    (chunks,) = versions.other_versions(results.packs, results.plan).values()
    assert entries(stale).keys() == undisturbed.keys() | chunks
    assert versions.prune(results.packs, results.plan) == len(chunks) > 0
    assert entries(stale) == undisturbed
    assert Results.open(stale).coverage.is_complete
    assert versions_in(stale).keys() == {version_of(read_manifest(stale))}
    assert versions.prune(results.packs, results.plan) == 0


def test_what_a_longer_sweep_shares_with_a_shorter_one_is_not_removed(tmp_path):
    for replicates in (16, 40):
        runner.run(Sweep(**{**ARGUMENTS, "replicates": replicates}), tmp_path)
    results = Results.open(tmp_path)
    assert [*versions.other_versions(results.packs, results.plan).values()] == [set()]
    assert versions.prune(results.packs, results.plan) == 0
    assert Results.open(tmp_path).coverage.is_complete


def test_chunks_of_a_folder_of_before_are_told_of(tmp_path, caplog):
    """Would catch a first run in a folder of before that computes everything again without a word."""
    (tmp_path / "chunks" / "ab").mkdir(parents=True)
    (tmp_path / "chunks" / "ab" / "abcd.npz").write_bytes(b"")
    runner.run(SWEEP, tmp_path)
    assert f"{tmp_path / 'chunks'} is of an earlier version, and not used: delete it" in caplog.text


def test_code_that_makes_chunks_of_runs_is_part_of_their_names(monkeypatch):
    """Would catch a worker whose code, beside the system's own, makes other numbers, and is not told."""
    before = planning.fingerprint("continual")["code"]
    packed = planning._packed
    monkeypatch.setattr(planning, "_packed", lambda task, parts: packed(task, [{"a": 1.001} for _ in parts]))
    planning._code.cache_clear()
    try:
        assert planning.fingerprint("continual")["code"] != before
    finally:
        monkeypatch.undo()
        planning._code.cache_clear()
    assert planning.fingerprint("continual")["code"] == before


def test_who_begins_while_another_process_checks_waits_and_sees_what_is_left(undisturbed, tmp_path, holding):
    """Would catch damaged chunks that a second process takes for whole, as the first one is about to find."""
    runner.run(SWEEP, tmp_path)
    harm(tmp_path, next(iter(undisturbed)))
    other = holding(tmp_path, runner.CHECK)
    progress = Listening()
    run = threading.Thread(target=runner.run, args=(SWEEP, tmp_path), kwargs={"progress": progress})
    run.start()
    while not (progress.told and "check of all packs" in progress.told[-1]):
        run.join(0.05)
        assert run.is_alive()
    Packs(tmp_path).check()
    other.kill()
    other.communicate()
    run.join()
    assert read_manifest(tmp_path)["is_complete"]
    chunks = {chunk.name for chunk in planning.SweepPlan(SWEEP, planning.fingerprint("continual")).chunks}
    assert {name: data for name, data in entries(tmp_path).items() if name in chunks} == undisturbed


def test_an_estimate_refuses_what_the_run_would_refuse(tmp_path):
    """Would catch a dry run that finds room for chunks of which the workers here are too many."""
    with ThreadPoolExecutor(1) as executor:
        pool = ExecutorPool(executor, 1)
        pool.num_local = 10**9  # as a cluster on this machine has it
        with pytest.raises(InvalidRunError, match="1000000000 are computed at once"):
            estimate(SWEEP, pool=pool)
        assert estimate(SWEEP, workers=10**9, pool=pool).chunks == 18
