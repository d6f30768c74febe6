"""The Python files that decide a module's numbers, and their digest.

A file is digested by its bytes. A module of this package includes all of the package's modules that it imports. A
user's module includes all files of its package or folder, and this whole package if they import it. Installed libraries
enter by name and version.
"""

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from moe_theory.core import IMPORT_TIME
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import paper_names, paper_package

PACKAGE = "moe_theory"
PACKAGE_FOLDER = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
IMPORTERS = frozenset({"import_module", "__import__", "resolve_name"})  # with a literal name, equivalent to `import`
_NAMES = r"(\([^)]*\)|(?:\\\r?\n|[^\n])*)"  # imported names, up to the end of the line or of the parentheses
_IMPORT = re.compile(rf"(?:^|[:;])[ \t\f]*(?:from\s+([.\w]+)\s+)?import\b{_NAMES}", re.MULTILINE)
_LITERAL = re.compile(rf"\b(?:{'|'.join(sorted(IMPORTERS))})\s*\(\s*[\"']([.\w]+)")


class Code(NamedTuple):
    digest: str
    imports: Sequence[str] = ()  # names of modules, and of objects in them


class Modules:
    """Modules whose files are read only once and shared, so that later changes do not count."""

    def __init__(self) -> None:
        self._sources: dict[str, Code] = {}
        self._digests: dict[str, str] = {}

    def digest_with_imports(self, module: str) -> str:
        """Return the digest of all files that a module imports, directly or not."""
        if module not in self._digests:
            digests: dict[str, str] = {}
            waiting = [module]
            while waiting:
                name = waiting.pop()
                if name not in digests:
                    if name not in self._sources:
                        self._sources[name] = _source(name)
                    digests[name] = self._sources[name].digest
                    waiting += self._sources[name].imports
            lines = [f"{name} {digest}" for name, digest in sorted(digests.items()) if digest]
            self._digests[module] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[module]


def library_of(module: str) -> str:
    """Return name and version of a module's library, or "" if the module's own files are digested."""
    return _library(module.partition(".")[0])


def has_file(module: str) -> bool:
    """Return whether a user's module is a file, and not a notebook or a script."""
    return module != "__main__" and bool(_find(module.partition(".")[0]))


def _source(module: str) -> Code:
    top = module.partition(".")[0]
    if library_of(module):
        return Code(library_of(module))
    if module == PACKAGE:
        return Code(_join_sources(PACKAGE_FOLDER.rglob("*.py")).digest)
    if top == PACKAGE:
        return _own_source(module)
    if module != top:  # of a user's package, all files count
        return Code("", [top])
    files: set[Path] = set()
    for place in _find(top):
        if place.is_dir():
            files.update(place.rglob("*.py"))
        else:
            files.update([place, *place.parent.glob("*.py")])
    source = _join_sources(files)
    return Code(source.digest, sorted({name.partition(".")[0] for name in source.imports} - {"", top}))


def _join_sources(files: Iterable[Path]) -> Code:
    sources = [_file_source(path) for path in sorted(files)]
    digests = "\n".join(source.digest for source in sources)
    imports = itertools.chain.from_iterable(source.imports for source in sources)
    return Code(digests, [*imports])


def _own_source(module: str) -> Code:
    """Return the source of a module of this package, but not of the package's own `__init__.py`."""
    place = PACKAGE_FOLDER.joinpath(*module.split(".")[1:])
    is_package = place.is_dir()
    path = place / "__init__.py" if is_package else place.with_suffix(".py")
    if not path.is_file():
        return Code("")
    if module in sys.modules and path.stat().st_mtime > IMPORT_TIME:
        raise InvalidValueError(f"{path} was changed after its import. Restart Python.")
    source = _file_source(path)
    parent = module.rpartition(".")[0]
    imports = [parent, *source.imports]  # importing a module imports the package around it
    package = module if is_package else parent  # where relative imports start
    stub = path.with_suffix(".pyi")
    if is_package and stub.is_file():  # the stub lists lazy names
        imports += _file_source(stub).imports
    names = {importlib.util.resolve_name(name, package) for name in imports}
    return Code(source.digest, sorted(name for name in names if name.startswith(f"{PACKAGE}.")))


def _file_source(path: Path) -> Code:
    """Return a file's digest and imports. Some of the imported names may not be modules."""
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise InvalidValueError(f"{path} cannot be read ({failure.strerror or failure}). Move it away.") from None
    text = data.decode(errors="replace")
    imports = set(_LITERAL.findall(text))
    for module, names in _IMPORT.findall(text):
        imports.add(module)
        prefix = module if module in ("", ".", "..") else f"{module}."
        imports |= {f"{prefix}{name}" for name in re.findall(r"[.\w]+", names)}  # also words such as "as"
    return Code(hashlib.sha256(data).hexdigest(), sorted(imports - {""}))


@functools.cache
def _library(name: str) -> str:
    """Return name and version of a top-level package's library, or "" for this package, papers and users' files."""
    papers = {paper_package(paper).partition(".")[0] for paper in paper_names()}
    if name in {"__main__", PACKAGE, *papers}:
        return ""
    place = next(iter(_find(name)), None)
    if place is None:
        return "python" if name in sys.stdlib_module_names else ""
    if {"site-packages", "dist-packages"} & {*place.parts, *place.resolve().parts}:
        return f"{name} {_version(name)}"
    if STANDARD_LIBRARY in place.parents or STANDARD_LIBRARY.resolve() in place.resolve().parents:
        return "python"
    return ""


def _find(name: str) -> list[Path]:
    """Return the folders of a top-level package, or the file of a top-level module, without importing it."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            return [Path(folder) for folder in spec.submodule_search_locations]
        if spec is not None and spec.has_location and spec.origin:
            return [Path(spec.origin)]
    return []


def _version(name: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    line = f"\n{name}/__init__.py,"  # in a RECORD, because `metadata.packages_distributions` takes almost a second
    owners = [owner for owner in metadata.distributions() if line in f"\n{owner.read_text('RECORD')}"]
    return " ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))
