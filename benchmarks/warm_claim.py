"""Count the functions and modules of the package that a warm `verify` of one claim runs.

    python -m benchmarks.warm_claim

It verifies once in a process, so that samples are saved, and once more in a fresh process under `sys.setprofile`.
What runs while a module is imported does not count.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import moe_theory

PACKAGE = Path(moe_theory.__file__).parent
COMMAND = ["verify", "continual.lemma-4", "--reading", "quick"]
LONGEST = 60  # lines of a function
MOST_MODULES = 25


def main() -> int:
    """Return the exit status: 1 if a claim runs too many modules, or a function that is too long."""
    if len(sys.argv) > 1:
        return _profile(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        where: dict[str, Any] = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(PACKAGE.parent)}}
        subprocess.run([sys.executable, "-m", "moe_theory", *COMMAND], check=True, capture_output=True, **where)
        return subprocess.run([sys.executable, __file__, *COMMAND], check=False, **where).returncode


def _profile(arguments: list[str]) -> int:
    """Run a command under a profiler, and print what it has run."""
    codes: set[CodeType] = set()  # of functions and of templates

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code not in codes and not _is_importing(frame):
            codes.add(frame.f_code)

    from moe_theory.cli import main as command

    sys.setprofile(note)
    try:
        command(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    functions = [code for code in codes if code.co_name != "<module>" and PACKAGE in Path(code.co_filename).parents]
    modules = Counter(str(Path(code.co_filename).relative_to(PACKAGE)) for code in functions)
    for module, number in sorted(modules.items()):
        names = sorted(code.co_name for code in functions if code.co_filename == str(PACKAGE / module))
        print(f"{number:4} functions  {module}: {', '.join(names)}")
    written = [code for code in functions if code.co_filename.endswith(".py")]  # a template's function is generated
    long = [code for code in written if _num_lines(code) > LONGEST]
    for code in long:
        print(f"{_num_lines(code)} lines: {code.co_filename}:{code.co_name}")
    print(f"{len(functions)} functions in {len(modules)} modules (at most {MOST_MODULES})")
    return int(len(modules) > MOST_MODULES or bool(long))


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a call is made while a module is imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _num_lines(code: CodeType) -> int:
    """The lines of a function, those of functions inside it among them."""
    return _last_line(code) - code.co_firstlineno + 1


def _last_line(code: CodeType) -> int:
    lines = [line for *_, line in code.co_lines() if line is not None]
    inner = [_last_line(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([*lines, *inner])


if __name__ == "__main__":
    raise SystemExit(main())
