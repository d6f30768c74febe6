"""Install a wheel or an sdist where nothing is, take the README's first steps there, print seconds and megabytes.

python .ci/installed.py FILE              # with this Python
python .ci/installed.py FILE python3.13   # with another
python .ci/installed.py FILE --lend       # its needs are taken from this environment, where there is no network
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

# What the README tells a newcomer to type, without make: a counterexample, a reason, a verdict, a sweep, a citation.
STEPS = {
    "version": "moe-theory --version",
    "script": "moe-theory why generalization.theorem-1 --script > witness.py && python witness.py",
    "why": "moe-theory why continual.lemma-8",
    "verify": "moe-theory verify continual.lemma-4 --reading unit-signal --replicates 64 --out runs/verify",
    "report": "moe-theory report runs/verify",
    "cite": "moe-theory report runs/verify --cite",
    "bound": "moe-theory bound",
    "sweep": "moe-theory sweep --example > grid.toml && moe-theory sweep grid.toml --out runs/grid",
}


def installed(file: Path, python: str, folder: Path, *, lends: bool) -> dict[str, float]:
    """Seconds of each step, and megabytes, of a file installed in `folder`. Raises: CalledProcessError with what was
    printed.
    """
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    binaries = folder / "venv" / "bin"
    environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"
    found = {}

    def step(name: str, command: list[str] | str) -> None:
        began = time.perf_counter()
        subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        found[name] = round(time.perf_counter() - began, 1)

    step("environment", [python, "-m", "venv", "--without-pip", "venv"])
    (place,) = (folder / "venv").glob("lib/python*/site-packages")
    lent = ["--no-deps", "--no-build-isolation"] if lends else []
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "--quiet"]
    step("install", [*pip, *lent, str(file)])
    if lends:
        (place / "lent.pth").write_text(sysconfig.get_path("purelib"))
    found["megabytes"] = megabytes(place)
    found["megabytes of its own"] = megabytes(place / "moe_theory")
    environment["XDG_CACHE_HOME"] = str(folder / "cache")  # a newcomer has compiled nothing
    for name, command in STEPS.items():
        step(name, command)
    where = subprocess.run(
        [binaries / "python", "-c", "import moe_theory; print(moe_theory.__file__)"],
        cwd=folder, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    if not Path(where.stdout.strip()).is_relative_to(folder):
        raise SystemExit(f"another one ran: {where.stdout.strip()}")
    if "Lemma 4" not in (folder / "runs" / "verify" / "report.html").read_text():
        raise SystemExit("the report of a verdict does not show its statement")
    return found


def megabytes(folder: Path) -> float:
    return round(sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("python", nargs="?", default=sys.executable)
    parser.add_argument("--lend", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = installed(asked.file.resolve(), asked.python, Path(folder).resolve(), lends=asked.lend)
        except subprocess.CalledProcessError as failure:
            raise SystemExit(f"{failure.cmd}:\n{failure.stdout}{failure.stderr}") from None
    print(json.dumps({"file": asked.file.name, "python": asked.python, **found}))


if __name__ == "__main__":
    main()
