"""Which tests are run against a mutant, and what they say."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.mutants.draw import located, papers
from benchmarks.mutants.edits import Mutant

# Tests that also fail without a mutant, with the reason.
IGNORED = {
    "tests/sweep/test_dask.py::test_a_worker_of_another_version_is_named_and_gets_no_tasks": "waits a fixed time",
}
SHARED_TESTS = "contract golden statistical properties cli".split()  # folders of tests that reach every module
LIMIT = 120.0  # seconds of one run of tests


class Outcome(NamedTuple):
    """What became of a mutant: killed, survived, stopped at a limit of time, or gone."""

    outcome: str
    by: str = ""  # the test that killed it


def copy_tree(tree: Path, folder: str) -> Path:
    """Copy what tests need."""
    skipped = shutil.ignore_patterns(".git", "__pycache__", ".venv", "site", ".pytest_cache")

    def ignore(place: str, names: list[str]) -> set[str]:
        results = {"runs"} if place == str(tree) else set()
        return skipped(place, names) | results

    return Path(shutil.copytree(tree, Path(folder) / "tree", ignore=ignore))


def nearest_tests(tree: Path, file: str) -> list[list[str]]:
    """Return the test files near a module, nearest first, and the other ones that may reach it.

    Near are tests that name the module, that name a module which imports it, and those of its folder.
    """
    folder = Path(file).parent.name
    name = Path(file).stem
    naming = re.compile(
        rf"moe_theory\.{folder}\.{name}\b|from moe_theory\.{folder} import [^\n]*\b{name}\b|{folder}\.{name}\."
    )
    users = [path for path in tree.glob("moe_theory/**/*.py") if naming.search(path.read_text())]
    words = {(path.parent.name, word) for path in users for word in path.stem.split("_")}
    formulas = set(papers(tree))
    reaching = {folder, *SHARED_TESTS} | (set() if folder in formulas else formulas)

    def distance(test: Path) -> int:
        is_within = test.parent.name == folder
        is_naming = bool(naming.search(test.read_text()))
        if is_within and (name in test.stem or is_naming):
            return 0
        if is_naming and test.parent.name in reaching:
            return 1
        if any(test.parent.name == user and word in test.stem for user, word in words):
            return 2
        if is_within:
            return 3
        return 4 if test.parent.name in reaching else 5

    ranked = sorted((distance(test), str(test.relative_to(tree))) for test in tree.glob("tests/**/test_*.py"))
    near = [test for rank, test in ranked if rank < 4]
    far = [test for rank, test in ranked if rank == 4]
    return [near, far]


def place_now(tree: Path, test: str) -> list[str]:
    """Return where a test is now: at its old place, or in files that have a test of its name."""
    file, _, rest = test.partition("::")
    function = rest.split("::")[-1].partition("[")[0]
    if not function:
        return [file] if (tree / file).is_file() else []
    paths = [path for path in tree.glob("tests/**/*.py") if f"def {function}(" in path.read_text()]
    files = sorted(str(path.relative_to(tree)) for path in paths)
    if file in files:
        return [test]
    return [f"{file}::{rest}" for file in files]


def run_tests(place: Path, tests: list[str], limit: float) -> Outcome:
    """Run tests until one fails."""
    environment = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    ignored = [f"--deselect={test}" for test in IGNORED]
    line = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *ignored, *tests]
    process = subprocess.Popen(
        line,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return Outcome("stopped")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    failed = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", output, re.MULTILINE)
    if failed and process.returncode:
        return Outcome("killed", failed[0])
    is_broken = "while loading conftest" in output  # the package cannot be imported
    if is_broken or process.returncode < 0:  # or the interpreter crashed
        return Outcome("killed", tests[0])
    functions = list(dict.fromkeys(test.partition("[")[0] for test in tests))
    if process.returncode == pytest.ExitCode.USAGE_ERROR and functions != tests:  # parameters were renamed
        return run_tests(place, functions, limit)
    return Outcome("survived")


def stages(tree: Path, file: str, first: list[str], last: list[str]) -> Iterator[list[str]]:
    """Return lists of tests, each of which is one run."""
    yield [place for test in first for place in place_now(tree, test)]
    for tests in nearest_tests(tree, file):
        yield [test for test in tests if not test.startswith(tuple(last))]
    yield [test for test in nearest_tests(tree, file)[0] if test.startswith(tuple(last))]


def try_mutant(tree: Path, place: Path, mutant: Mutant, first: list[str], last: list[str]) -> Outcome:
    """Run tests against a mutant of `tree` in its copy at `place`: those of `first`, the nearest, the rest, `last`."""
    edit = located(tree, mutant)
    if edit is None:
        return Outcome("gone")
    file = edit.mutant.file
    (place / file).write_text(edit.apply((tree / file).read_text()))
    is_stopped = False
    try:
        for tests in stages(tree, file, first, last):
            outcome = run_tests(place, tests, LIMIT) if tests else Outcome("survived")
            if outcome.outcome == "killed":
                return outcome
            is_stopped = is_stopped or outcome.outcome == "stopped"
    finally:
        shutil.copy2(tree / file, place / file)
    return Outcome("stopped" if is_stopped else "survived")
