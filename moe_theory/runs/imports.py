"""Modules that a module reaches by imports, and a digest of their code.

A file's code is its syntax tree without docstrings. Names imported from this project are followed to the files that
define them, lazy names through `__init__.pyi`. Users' modules are followed as imported, and installed libraries count
by name and version.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from moe_theory.core import IMPORT_TIME
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import paper_names, paper_package

PACKAGE = "moe_theory"
IMPORTERS = frozenset({"import_module", "__import__", "resolve_name"})  # with a literal name, as good as `import`
LOADERS = IMPORTERS | {"eval", "exec", "run_path", "run_module", "spec_from_file_location", "attach", "attach_stub"}
PACKAGE_FOLDER = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))

Place = tuple[str, ...]  # a module, and attributes of it


class Facts(NamedTuple):
    digest: str  # of the syntax tree
    imports: Sequence[tuple[str, Place]] = ()  # name in the file, or "", and what it is; "." begins relative ones
    is_dynamic: bool = False  # whether it loads code by a name that it computes


class ModuleFile(NamedTuple):
    facts: Facts
    folders: Sequence[Path] = ()  # of a package
    has_stub: bool = False  # whether `__init__.pyi` lists the names of a package that other files define


class Modules:
    """Modules that share the files that they read, each once, without later changes."""

    def __init__(self) -> None:
        self._sources: dict[str, ModuleFile | None] = {}
        self._steps: dict[Place, list[Place]] = {}
        self._digests: dict[Place, str] = {}

    def reach(self, *place: str) -> str:
        """Return a digest of all modules within a module's, or its attribute's, reach."""
        if place not in self._digests:
            waiting = [self._shortened(place)]
            reached: set[Place] = set()
            while waiting:
                current = waiting.pop()
                if current in reached:
                    continue
                reached.add(current)
                if current not in self._steps:
                    self._steps[current] = [*map(self._shortened, self._following(*current))]
                waiting += self._steps[current]
            names = [module.split(".") for module, *_ in reached]
            modules: set[str] = set()
            for name in names:
                modules |= {".".join(name[:length]) for length in range(1, len(name) + 1)}
            sources = {module: self.source(module) for module in sorted(modules)}
            lines = [f"{module} {source and source.facts.digest}" for module, source in sources.items()]
            self._digests[place] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[place]

    def source(self, module: str) -> ModuleFile | None:
        """Return the file of a module, if any, without importing it. Raises: InvalidValueError if unreadable or
        changed.
        """
        if module not in self._sources:
            library = library_of(module)
            self._sources[module] = ModuleFile(Facts(library)) if library else self._read(module)
        return self._sources[module]

    def _shortened(self, place: Place) -> Place:
        if library_of(place[0]):
            return (place[0].partition(".")[0],)
        source = self.source(place[0])
        if source and source.folders:
            return place
        return place[:1]

    def _following(self, module: str, *attributes: str) -> list[Place]:
        source = self.source(module)
        parent, _, name = module.rpartition(".")
        if source is None and parent:  # an attribute, in `resolve_name("package.module.attribute")`
            return [(parent, name)]
        if source is None or library_of(module):
            return []
        is_own = module.partition(".")[0] == PACKAGE
        imports = [(name, _absolute(module, bool(source.folders), place)) for name, place in source.facts.imports]
        if attributes:
            first, *parts = attributes
            bound = [(*place, *parts) for name, place in imports if name == first and place[:2] != (module, first)]
            if bound and is_own:
                return bound
            if self.source(f"{module}.{first}"):
                # Packages of this project only gather names. Other packages may do anything when they are imported.
                return [(f"{module}.{first}", *parts), *([] if is_own else [(module,)])]
            if module == PACKAGE and first in paper_names():
                return [(paper_package(first), *parts)]
            if is_own and source.has_stub:  # the file itself defines it
                return []
        places = [place for _, place in imports]
        if module == PACKAGE:
            places += [(paper_package(name),) for name in paper_names()]
        if not is_own and parent:
            places.append((parent,))
        # Modules of this project that compute names, such as `core.papers`, load what papers declare. What decides
        # numbers of that, such as a system's functions, is passed to keys as values. `tests/runs/test_key.py` lists
        # these modules. Other modules may load anything that is beside them.
        if not is_own and source.facts.is_dynamic:
            places += self._beside(module)
        return places

    def _beside(self, module: str) -> Iterator[Place]:
        top = module.partition(".")[0]
        package = self.source(top)
        if package is None or not package.folders:
            file, _ = _find(top)
            if file:
                for path in sorted(file.parent.glob("*.py")):
                    yield (path.stem,)
            return
        for folder in package.folders:
            for path in sorted(folder.rglob("*.py")):
                yield (".".join((top, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"),)

    def _read(self, module: str) -> ModuleFile | None:
        path, folders = _find(module)
        if path is None:
            if folders:
                return ModuleFile(Facts("folder"), folders)
            return None
        facts = _facts_of(path)
        if module in sys.modules and PACKAGE_FOLDER in path.parents and path.stat().st_mtime > IMPORT_TIME:
            raise InvalidValueError(f"{path} was changed after it was imported. Start Python again.")
        stub = path.with_suffix(".pyi")
        if not folders or not stub.is_file():
            return ModuleFile(facts, folders)
        lazy = _facts_of(stub)
        both = facts._replace(digest=f"{facts.digest} {lazy.digest}", imports=[*facts.imports, *lazy.imports])
        return ModuleFile(both, folders, has_stub=True)


def library_of(module: str) -> str:
    """Return name and version of a module's library, or "" for followed code."""
    return _library(module.partition(".")[0])


@functools.cache
def _library(name: str) -> str:
    papers = {paper_package(paper).partition(".")[0] for paper in paper_names()}
    if name in {"__main__", PACKAGE, *papers}:
        return ""
    path, folders = _find(name)
    place = path or next(iter(folders), None)
    if place is None:
        if name in sys.stdlib_module_names:
            return "python"
        return ""
    if {"site-packages", "dist-packages"} & {*place.parts, *place.resolve().parts}:
        return f"{name} {_version(name)}"
    if STANDARD_LIBRARY in place.parents or STANDARD_LIBRARY.resolve() in place.resolve().parents:
        return "python"
    return ""


def _find(module: str) -> tuple[Path | None, list[Path]]:
    loaded = sys.modules.get(module)
    parent, _, name = module.rpartition(".")
    file = None
    folders: Iterable[str] = ()
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        folders = getattr(loaded, "__path__", ())
    elif parent:
        for folder in _find(parent)[1]:
            if (folder / f"{name}.py").is_file():
                return folder / f"{name}.py", []
            if (folder / name).is_dir():
                initial = folder / name / "__init__.py"
                return initial if initial.is_file() else None, [folder / name]
    else:
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(module)
            if spec is not None:
                file = spec.origin if spec.has_location else None
                folders = spec.submodule_search_locations or ()
    return Path(file) if file else None, [Path(folder) for folder in folders]


def _version(name: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    start = f"\n{name}/__init__.py,"  # `metadata.packages_distributions` takes most of a second
    owners = [
        distribution for distribution in metadata.distributions() if start in f"\n{distribution.read_text('RECORD')}"
    ]
    return " ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))


def _absolute(module: str, is_package: bool, place: Place) -> Place:
    """Return an imported place without relative dots."""
    name = place[0].lstrip(".")
    num_dots = len(place[0]) - len(name)
    if not num_dots:
        return place
    parts = module.split(".")
    package = parts[: len(parts) - num_dots + is_package]
    return (".".join([*package, name] if name else package), *place[1:])


def _facts_of(path: Path) -> Facts:
    try:
        return read_facts(path.read_bytes())
    except OSError as failure:
        raise InvalidValueError(f"{path} cannot be read ({failure.strerror or failure}). Move it.") from None


@functools.cache
def read_facts(data: bytes) -> Facts:
    """Return a text's facts, or only its bytes if it is not Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return Facts(hashlib.sha256(data).hexdigest())
    imports: list[tuple[str, Place]] = []
    attributes: dict[str, set[Place]] = defaultdict(set)  # that are read of each name; () where it is used by itself
    loaders: set[str] = set()
    roots: set[ast.expr] = set()  # names of which an attribute is read
    literal: set[ast.expr] = set()  # loaders that are called with a name that stands there
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [statement for statement in node.body if not _is_text(statement)]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                imports.append((alias.asname or first, (alias.name if alias.asname else first,)))
                if alias.name != first and not alias.asname:  # imported even if nothing is read of it
                    imports.append(("", (alias.name,)))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                imports.append((alias.asname or alias.name, (module, alias.name) if alias.name != "*" else (module,)))
                if alias.asname:
                    loaders.add(alias.name)
        elif isinstance(node, ast.Attribute):
            if node not in literal and node.attr not in ("eval", "exec"):  # which are common names of methods
                loaders.add(node.attr)
            if isinstance(node.value, ast.Name):
                attributes[node.value.id].add((node.attr,))
                roots.add(node.value)
        elif isinstance(node, ast.Name) and node not in roots:
            attributes[node.id].add(())
            if node not in literal:
                loaders.add(node.id)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in IMPORTERS and isinstance(node.args[0].value, str):
                imports.append(("", tuple(node.args[0].value.split(":"))))
                literal.add(node.func)
    is_dynamic = bool(loaders & LOADERS) or ("modules",) in attributes["sys"]
    places: dict[tuple[str, Place], None] = {}
    for name, place in imports:
        places |= dict.fromkeys((name, (*place, *part)) for part in sorted(attributes[name] or {()}))
    return Facts(hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest(), [*places], is_dynamic)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
