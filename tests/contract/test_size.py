"""Size: catches a package, its statements or its tests that grow again."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = {"recorded.json", "recorded-fashion-mnist.json", "challenged.json", "index.json"}
# Lines of all text files, records apart. Statements count with texts, proofs and counterexamples. What is reached is
# held: a change that needs room first finds it.
MOST_LINES = {"package": 59_000, "statements": 16_300, "tests": 29_000}
MOST_FILES = 1_000


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def test_lines_do_not_grow(tracked):
    lines: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for path in tracked:
        parts = path.relative_to(ROOT).parts
        if path.name in RECORDS or parts[0] not in ("moe_theory", "tests"):
            continue
        number = path.read_bytes().count(b"\n")
        is_statement = parts[0] == "moe_theory" and "statements" in parts
        lines["tests" if parts[0] == "tests" else "package"] += number
        lines["statements"] += number if is_statement else 0
        folders["/".join(parts[:2]) + ("/statements" if is_statement else "")] += number
    table = "\n".join(f"{number:7,}  {folder}" for folder, number in folders.most_common())
    excess = {name: lines[name] for name, most in MOST_LINES.items() if lines[name] > most}
    assert not excess, f"above {MOST_LINES}: {excess}\n{table}"


def test_files_are_few(tracked):
    assert len(tracked) <= MOST_FILES, Counter(path.relative_to(ROOT).parts[0] for path in tracked)
