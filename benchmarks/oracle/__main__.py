"""`python -m benchmarks.oracle`: collect numbers, compare two collections, or two commits."""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks.oracle import records

ROOT = Path(__file__).parents[2]
PROGRAMS = "~/.cache/moe-theory-oracle"  # compiled programs, the one thing that a run may find


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 where numbers differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="only the fast parts")
    parser.add_argument("--only", action="append", metavar="PART", help="only this part; repeat it for more")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="collect, and write a file for each part")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="compare two folders")
    parser.add_argument("--against", metavar="COMMIT", help="collect on a commit and here, and compare")
    options = parser.parse_args(arguments)
    chosen = [f"--only={part}" for part in options.only or []]
    if options.fast:
        chosen.append("--fast")
    if options.against is not None:
        return _against(options.against, chosen)
    if options.compare is not None:
        return _compare(*options.compare, options.fast, options.only)
    if options.out is None:
        parser.error("give --out, --compare or --against")
    return _collect(options.out.absolute(), options.fast, options.only)


def _collect(out: Path, is_fast: bool, only: Sequence[str] | None) -> int:
    """Compute each part from empty folders, write it as soon as it is finished, and return 1 if one has failed."""
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")  # before anything is imported that reads it
        programs = Path(os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(PROGRAMS).expanduser())))
        programs.mkdir(parents=True, exist_ok=True)
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

        import moe_theory
        from benchmarks.oracle.parts import FAST, WHOLE

        print(f"collecting from {Path(moe_theory.__file__).parent} into {out}", flush=True)
        for name, part in (FAST if is_fast else WHOLE).items():
            if only is None or name in only:
                folder = Path(scratch) / name
                folder.mkdir()
                start = time.monotonic()
                processor_start = _processor_seconds()
                try:
                    outcome = f"{records.write(part(folder), out / f'{name}.jsonl')} numbers"
                except Exception:  # the other parts are still worth their time
                    traceback.print_exc()
                    outcome = "FAILED"
                    failed.append(name)
                seconds = (
                    f"{time.monotonic() - start:.1f} s, {_processor_seconds() - processor_start:.1f} s of processors"
                )
                print(f"{name}: {outcome} in {seconds}", flush=True)
    return 1 if failed else 0


def _compare(before: Path, after: Path, is_fast: bool, only: Sequence[str] | None) -> int:
    """Print every key that differs, and return 1 if there is any."""
    from benchmarks.oracle.parts import FAST, WHOLE

    compared, lines = 0, []
    for name in FAST if is_fast else WHOLE:
        if only is None or name in only:
            values = records.read(before / f"{name}.jsonl")
            lines += records.differences(values, records.read(after / f"{name}.jsonl"))
            compared += len(values)
    print("".join(f"{line}\n" for line in lines), end="")
    print(f"{len(lines)} differences in {compared} keys")
    return 1 if lines or not compared else 0


def _against(commit: str, chosen: Sequence[str]) -> int:
    """Collect on a commit's package with this script, then on this tree's, and compare."""
    with tempfile.TemporaryDirectory() as scratch:
        script, tree = Path(scratch) / "script", Path(scratch) / "tree"
        ignored = shutil.ignore_patterns("recorded", "__pycache__")
        shutil.copytree(Path(__file__).parent, script / "benchmarks" / "oracle", ignore=ignored)
        (script / "benchmarks" / "__init__.py").touch()  # or the one of the commit would be found first
        subprocess.run(["git", "worktree", "add", "--detach", tree, commit], cwd=ROOT, check=True)
        statuses = []
        try:
            for name, package in (("before", tree), ("after", ROOT)):
                command = [sys.executable, "-m", "benchmarks.oracle", *chosen, "--out", Path(scratch) / name]
                environment = os.environ | {"PYTHONPATH": str(package)}
                statuses.append(subprocess.run(command, cwd=script, env=environment, check=False).returncode)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
        command = [sys.executable, "-m", "benchmarks.oracle", *chosen, "--compare"]
        compared = [*command, Path(scratch) / "before", Path(scratch) / "after"]
        statuses.append(subprocess.run(compared, cwd=script, env=environment, check=False).returncode)
        return max(map(abs, statuses))


def _processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    raise SystemExit(main())
