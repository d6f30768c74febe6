"""Mutants of the code that simulates and decides, and the test that kills each: `python -m benchmarks.mutants`.

A mutant is one small edit of the package: a comparison, an operator, a constant, an index, a bound, a dropped term or
`not`, swapped arguments, `min` for `max`. Docstrings, annotations and messages are left alone. `mutants.json` lists
mutants with their outcome, and is written after each one, so that rerunning resumes.

`--check` tries the killed ones again, first the test that killed each. It prints which live now and which are gone,
and ends with exit status 1 if one lives. Moved code counts: a mutant is found by its function and statement.

mutmut does not serve here. It forks a process that has run tests, in which JAX hangs, and wraps every function, while
claims, statements and keys are made of functions' own source, signature and code objects.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from benchmarks.mutants.draw import draw
from benchmarks.mutants.edits import Mutant
from benchmarks.mutants.trial import Outcome, copy_tree, try_mutant

TREE = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.json")
NUMBER = 100
SEED = 7
Results = dict[Mutant, Outcome | None]


def load(file: Path) -> Results:
    """Read mutants and their outcomes."""
    results: Results = {}
    for row in json.loads(file.read_text()):
        mutant = Mutant(*(row[name] for name in Mutant._fields))
        results[mutant] = Outcome(row["outcome"], row["by"]) if "outcome" in row else None
    return results


def save(file: Path, results: Results) -> None:
    """Write mutants and their outcomes."""
    rows = [mutant._asdict() | (outcome._asdict() if outcome else {}) for mutant, outcome in results.items()]
    file.write_text(json.dumps(rows, indent=1) + "\n")


def try_all(first: dict[Mutant, list[str]], last: list[str], processes: int) -> Iterator[tuple[Mutant, Outcome]]:
    """Return the outcome of each mutant as soon as it is known."""
    places: SimpleQueue[Path] = SimpleQueue()

    def run(mutant: Mutant) -> Outcome:
        place = places.get()
        try:
            return try_mutant(TREE, place, mutant, first[mutant], last)
        finally:
            places.put(place)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        for index in range(processes):
            places.put(copy_tree(TREE, f"{folder}/{index}"))
        mutant_of = {pool.submit(run, mutant): mutant for mutant in first}
        for future in as_completed(mutant_of):
            yield mutant_of[future], future.result()


def main() -> int:
    """Try the mutants and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="try the killed mutants of the list again")
    parser.add_argument("--update", action="store_true", help="with --check: write what was found into the list")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--first", type=Path, help="JSON of lists of tests, one for each mutant of the list, tried first"
    )
    parser.add_argument("--last", nargs="*", default=["tests/none"], help="tests that are tried last")
    options = parser.parse_args()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(TREE / ".pytest_cache" / "programs"))
    results = load(LIST) if LIST.exists() else dict.fromkeys(draw(TREE, NUMBER, SEED))
    if options.check:
        first = {mutant: [old.by] for mutant, old in results.items() if old and old.outcome == "killed"}
    else:
        hints = json.loads(options.first.read_text()) if options.first else [[]] * len(results)
        hint_of = dict(zip(results, hints, strict=True))
        first = {mutant: hint_of[mutant] for mutant, old in results.items() if old is None}
    is_alive = False
    for mutant, outcome in try_all(first, options.last, options.processes):
        old = results[mutant]
        print(*outcome, mutant.file, mutant.line, mutant.function, mutant.kind, flush=True)
        if old and outcome.outcome in {"survived", "stopped"}:
            is_alive = True
            print(f"  LIVES NOW, was killed by {old.by}: {mutant.before} -> {mutant.after}", flush=True)
        results[mutant] = outcome
        if options.update or not options.check:
            save(LIST, results)
    print(Counter(outcome.outcome for outcome in results.values() if outcome))
    return int(is_alive)


if __name__ == "__main__":
    sys.exit(main())
