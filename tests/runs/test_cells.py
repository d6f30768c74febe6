"""Running cells: catches numbers that depend on chunks, threads or neighbours, and requests refused too late."""

import os
import subprocess
import sys

import numpy as np
from refusals import refusal

from moe_theory import continual, root_key, simulate_batch
from moe_theory.core.errors import InvalidValueError, OutputError
from moe_theory.runs import Cell, Progress, run_cells
from moe_theory.runs.compilation import keep_programs

DIMS = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
SYSTEM = continual.system(DIMS)


def observe(state, info):
    return info.generalization_error


def cell(name="one", **params):
    return Cell(name, SYSTEM, continual.Params(num_experts=3)._replace(**params), 12, 5, observe)


def test_a_run_is_what_simulate_batch_gives_whatever_the_chunks():
    _, expected = simulate_batch(SYSTEM, root_key(3), 10, cell().params, 12, 5, observe=observe)
    for count, width in ((10, 4), (10, 8), (3, 4)):
        run = run_cells([cell()], count, seed=3, width=width)["one"]
        np.testing.assert_allclose(run.records, expected[:, :count], rtol=2e-5)
        assert run.records.shape == (3, count)
        assert list(run.rounds) == [5, 10, 12]
        assert list(run.replicates) == list(range(count))
        assert run.state.experts.shape == (3, 4, count)


class Log(Progress):
    """Remembers what it is told."""

    def __init__(self):
        self.planned = self.done = 0
        self.said = []
        self.running = lambda what: self.said.append("running")

    def add_work(self, replicate_rounds):
        self.planned += replicate_rounds

    def advance(self, replicate_rounds):
        self.done += replicate_rounds


def test_progress_adds_up_and_says_what_is_going_on():
    log = Log()
    run_cells([cell("a"), cell("b")], 10, width=2, progress=log)
    assert log.planned == log.done == 2 * 10 * 12
    assert log.said == ["running"]
    again = Log()
    run_cells([cell("a")], 10, width=2, progress=again)
    assert "compiling" not in again.said


def test_requests_are_refused_before_any_work():
    log = Log()
    for cells, num_replicates in (
        ([cell()], 0),
        ([cell("a"), cell("a")], 4),
        ([cell("a"), cell("b", num_experts=4)], 4),
    ):
        refusal(InvalidValueError, run_cells, cells, num_replicates, progress=log)
    assert log.done == 0


def test_no_cells_give_no_runs():
    """Fig. 2 with one expert has no routes to simulate."""
    assert run_cells([], 4) == {}


def test_a_failure_in_a_thread_reaches_the_caller():
    def failing(root, replicates, params):
        if replicates[0] >= 8:
            raise InvalidValueError("planted")

    late = Cell("one", SYSTEM, continual.Params(num_experts=3), 12, 5, observe, failing)
    assert str(refusal(InvalidValueError, run_cells, [late], 40, width=4)) == "planted"


def test_more_than_the_machine_holds_is_refused_after_the_first_chunks():
    log = Log()
    assert refusal(InvalidValueError, run_cells, [cell()], 10**9, width=4, progress=log).argument == "replicates"
    assert log.done < 1000 * 12


def test_only_some_of_the_records_are_kept():
    whole = run_cells([cell()], 6, width=4)["one"]
    some = run_cells([Cell("one", SYSTEM, cell().params, 12, 5, observe, keep=(0, 2))], 6, width=4)["one"]
    assert list(some.rounds) == [5, 12]
    np.testing.assert_array_equal(some.records, whole.records[[0, 2]])


CODE = """
from moe_theory.runs.compilation import keep_programs
keep_programs()
import jax
for function in (lambda x: x + 1, lambda x: x * 3):
    jax.jit(function)(2.0)
print(jax.config.jax_compilation_cache_dir)
"""


def kept_in(tmp_path, **environment):
    """Where a process keeps its programs, and what it says on standard error."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=clean | {"XDG_CACHE_HOME": str(tmp_path / "cache")} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_programs_are_kept_in_the_user_s_cache(tmp_path):
    folder, _ = kept_in(tmp_path)
    assert folder.startswith(str(tmp_path / "cache" / "moe_theory"))
    assert os.listdir(folder)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    """Would catch a user's own folder in which nothing is kept, without a word."""
    (tmp_path / "file").write_text("")
    refusal(OutputError, keep_programs, tmp_path / "file" / "programs")
