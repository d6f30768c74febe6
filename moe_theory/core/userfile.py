"""Python files of users, which options and specifications name."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from moe_theory.core.errors import OWN_CODE, DeclarationError, described, frames


def module_name(path: Path) -> str:
    return f"moe_theory_claims_{path.stem}"


def run_file(path: Path, option: str = "--module") -> ModuleType:
    """Run a user's Python file, which an option names, and return its module. Raises: DeclarationError if it fails."""
    name = module_name(path)
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise DeclarationError(f"{option} {path} is no Python file. Name a file that ends in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # its neighbours can be imported, as of any script
    try:
        specification.loader.exec_module(module)
    except OWN_CODE as failure:  # whatever the user's file raises is reported in one line
        raise DeclarationError(f"{option} {path} cannot be run: {described(failure)}{frames(failure)}") from failure
    finally:
        sys.path.pop(0)
    return module


def is_place(text: str) -> bool:
    path, _, name = text.rpartition(":")
    return bool(path) and name.isidentifier()
