"""Users' Python files, which options and specifications name."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from moe_theory.core.errors import OWN_CODE, DeclarationError, described, frames, unknown_name


def module_name(path: Path) -> str:
    return f"moe_theory_claims_{path.stem}"


def run_file(path: Path, option: str = "--module") -> ModuleType:
    """Run the user's Python file that an option names, and return its module. Raises: DeclarationError if it fails."""
    name = module_name(path)
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise DeclarationError(f"{option} {path} is not a Python file. Name a file that ends in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # so that it can import its neighbours, like any script
    try:
        specification.loader.exec_module(module)
    except OWN_CODE as failure:  # whatever the user's file raises becomes one line
        raise DeclarationError(f"{option} {path} cannot be run: {described(failure)}{frames(failure)}") from failure
    finally:
        sys.path.pop(0)
    return module


_functions: dict[tuple[str, int], Any] = {}  # by FILE:NAME and the file's time, so that each program is compiled once


def is_place(text: str) -> bool:
    """Return whether a text has the form FILE:NAME."""
    path, _, name = text.rpartition(":")
    return bool(path) and name.isidentifier()


def function_at(place: str, option: str) -> Any:
    """Return the function at FILE:NAME. It is the same object until the file changes."""
    file, _, name = place.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise DeclarationError(f"{option} {place}: there is no file {path}. Paths start in the current folder.")
    key = (place, path.stat().st_mtime_ns)
    if key not in _functions:
        members = vars(run_file(path, option))
        functions = [member for member, value in members.items() if callable(value) and member[0] != "_"]
        if name not in functions:
            raise unknown_name(f"function of {path}", name, functions)
        _functions[key] = members[name]
    return _functions[key]
