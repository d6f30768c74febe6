"""While a sweep runs: catches errors of one cell that stop all others, and runs of which nobody learns how they go."""

import json
from concurrent.futures import Executor, Future

import pytest
from packed import entries

from moe_theory.core.errors import OutputError
from moe_theory.runs.workers import DevicePool, ExecutorPool
from moe_theory.sweep import dispatcher, runner
from moe_theory.sweep import plan as planning
from moe_theory.sweep.manifest import failed_in, runs_in
from moe_theory.sweep.results import Results, results_of

from .swept import SWEEP


@pytest.fixture
def failing(monkeypatch):
    """Chunks of three experts at the lower rate raise errors, as long as there is something in what it gives."""
    computed, broken = planning.computed, [ZeroDivisionError("planted\nerror")]

    def partly(task):
        if broken and task["params"]["num_experts"] == 3 and task["params"]["learning_rate"] == 0.1:
            raise broken[0]
        return computed(task)

    monkeypatch.setattr(planning, "computed", partly)
    return broken


def test_errors_of_a_cell_are_passed_over_told_and_tried_again_alone(undisturbed, tmp_path, failing):
    with pytest.raises(ZeroDivisionError) as told:
        runner.run(SWEEP, tmp_path, pool=DevicePool(1))
    assert "'num_experts': 3" in "".join(told.value.__notes__)
    outcome = runner.run(SWEEP, tmp_path, keeps_going=True)
    assert (outcome.counts.done, len(outcome.counts.failed)) == (15, 3)
    results = results_of(outcome)
    name = "num_experts = 3, learning_rate = 0.1"
    assert results.failed == {name: "ZeroDivisionError: planted error"}
    assert results.coverage.chunks == 15
    again = Results.open(tmp_path, partial=True)
    assert again.errors_of(failed_in(tmp_path)) == results.failed
    assert Results.open(tmp_path, partial=True).statistics_of(results.names.index(name)) is None
    kept = entries(tmp_path)
    failing.clear()
    lost = sorted(kept)[0]
    for path in (tmp_path / "packs").glob("*.zip"):  # so that something else is missing too
        path.unlink()
    packs = runner.Packs(tmp_path)
    packs.write([(each, data) for each, data in kept.items() if each != lost])
    again = runner.run(SWEEP, tmp_path, only_failed=True).counts
    assert (again.computed, again.failed) == (3, {})
    assert runner.run(SWEEP, tmp_path).counts.computed == 1
    chunks = {chunk.name for chunk in results.plan.chunks}
    assert {each: data for each, data in entries(tmp_path).items() if each in chunks} == undisturbed


def test_a_run_says_how_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(dispatcher, "BETWEEN_REPORTS", 0.0)
    log = tmp_path / "logs" / "log.jsonl"
    runner.run(SWEEP, tmp_path / "run", pool=DevicePool(1), log=log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) > 2
    done = [line["chunks"] for line in lines]
    assert done == sorted(done)
    last = lines[-1]
    assert (last["chunks"], last["of_chunks"], last["cells"], last["failed"], last["seconds_left"]) == (18, 18, 6, 0, 0)
    (host,) = last["hosts"].values()
    assert host["chunks"] == 18
    (run,) = runs_in(tmp_path / "run")
    assert run["last_heard"] == last
    assert run["failed"] == {}


def test_a_cell_with_errors_does_not_count_as_done(tmp_path, failing):
    outcome = runner.run(SWEEP, tmp_path, pool=DevicePool(1), keeps_going=True)
    (run,) = runs_in(tmp_path)
    assert (run["last_heard"]["cells"], run["last_heard"]["failed"], len(results_of(outcome).failed)) == (5, 3, 1)


def test_a_log_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="name another file for --log"):
        runner.run(SWEEP, tmp_path / "run", log=tmp_path / "file" / "log.jsonl")
    assert not entries(tmp_path / "run")


def test_what_raised_errors_is_known_after_an_interrupt(tmp_path, failing):
    """Would catch errors that a run forgets which did not come as far as to try them again."""
    runner.run(SWEEP, tmp_path, keeps_going=True)
    with pytest.raises(KeyboardInterrupt):
        runner.run(SWEEP, tmp_path, only_failed=True, is_stopped=lambda: True)
    failing.clear()
    results = SWEEP.run(tmp_path, only_failed=True)
    assert results.coverage.is_complete
    assert sorted(run["computed"] for run in results.history) == [0, 3, 15]


class Quick(Executor):
    """Pretends that the first task's chunks raise errors at once, and that any other takes a minute."""

    def __init__(self):
        self.sizes = []

    def submit(self, function, /, *arguments):
        future = Future()
        if function is not planning.compute:
            future.set_result(function(*arguments))
            return future
        self.sizes.append(sum(len(part.firsts) for part in arguments[0]))
        data, seconds = (b"x", 60.0) if len(self.sizes) > 1 else ("an error", 1e-6)
        future.set_result(planning.Computed([data] * self.sizes[-1], seconds * self.sizes[-1], "pretended"))
        return future


def test_an_error_does_not_count_as_a_pace(tmp_path):
    """Would catch tasks of hours, of which nothing is kept before their end, after a chunk that failed at once."""
    executor = Quick()
    runner.run(SWEEP, tmp_path, pool=ExecutorPool(executor, 1), keeps_going=True)
    assert executor.sizes == [1] * 18
