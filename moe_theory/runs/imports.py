"""Modules that a module can reach by imports, and a digest of their code.

The code of a file is its syntax tree without docstrings. Packages of this project are followed by the names that are
imported from them, lazy ones through `__init__.pyi`: otherwise every module would reach every other one.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
import re
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core import IMPORT_TIME
from moe_theory.core.errors import InvalidValueError, OutputError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.runs.files import user_cache
from moe_theory.runs.store import Store

PACKAGE = "moe_theory"
IMPORTERS = frozenset({"import_module", "__import__", "resolve_name"})  # with a literal name, as good as `import`
LOADERS = IMPORTERS | {"eval", "exec", "run_path", "run_module", "spec_from_file_location", "attach", "attach_stub"}
PACKAGE_FOLDER = Path(__file__).parents[1]
ADDRESS = re.compile(r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*")  # "package.module:attribute"
MAX_DEPTH = 3  # attributes that are followed, as in `moe_theory.verification.claim.Claim`
ITSELF = ""  # in the place of an attribute: the file of a package, without its imports
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))

Place = tuple[str, ...]  # a module, and attributes of it


class Facts(NamedTuple):
    """What the text of a file says, and nothing else decides."""

    digest: str  # of the syntax tree
    imports: Sequence[tuple[str, Place]] = ()  # name at the top level, or "", and what it is; "." begins relative ones
    addresses: Sequence[Place] = ()  # strings such as "package.module:attribute"
    is_dynamic: bool = False  # whether it loads code by a name that it computes


class ModuleFile(NamedTuple):
    """A module's file, or an installed library."""

    facts: Facts
    path: Path | None = None
    folders: Sequence[Path] = ()  # of a package
    is_lazy: bool = False  # whether all names of a package that other files define are in `__init__.pyi`


class Modules:
    """Modules that share what they read. What files say is kept in the user's cache folder."""

    def __init__(self) -> None:
        self._sources: dict[str, ModuleFile | None] = {}
        self._steps: dict[Place, list[Place]] = {}
        self._digests: dict[Place, str] = {}
        self._texts = Texts()

    def save(self) -> None:
        """Keep what was read for the first time."""
        self._texts.save()

    def reach(self, *place: str) -> str:
        """Return a digest of all modules that a module, or an attribute of it, can reach."""
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
            sources = {module: self.source(module) for module, *_ in sorted(reached)}
            lines = [f"{module} {source and source.facts.digest}" for module, source in sources.items()]
            self._digests[place] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[place]

    def source(self, module: str) -> ModuleFile | None:
        """Return where a module is, without importing it; None for no file, as of a notebook.

        Raises: InvalidValueError for a file that cannot be read, or of this package and changed since it was imported.
        """
        if module not in self._sources:
            self._sources[module] = self._find(module)
        return self._sources[module]

    def _shortened(self, place: Place) -> Place:
        """Return a place without attributes where these do not matter."""
        if library_of(place[0]):
            return (place[0].partition(".")[0],)
        source = self.source(place[0])
        return place if source and source.folders else place[:1]

    def _following(self, module: str, *attributes: str) -> list[Place]:
        """Return the places that a place leads to at once."""
        source = self.source(module)
        parent, _, name = module.rpartition(".")
        if source is None and parent:  # an attribute, in `resolve_name("package.module.attribute")`
            return [(parent, name)]
        if source is None or library_of(module):
            return []
        is_own = module.partition(".")[0] == PACKAGE
        # Packages of this project only gather names. Other packages may do anything when they are imported.
        parents: list[Place] = [(parent, ITSELF) if is_own else (parent,)] if parent else []
        imports = [(name, self._absolute(module, source, place)) for name, place in source.facts.imports]
        whole = [*parents, *(place for _, place in imports), *self._named_places(module, source)]
        if not attributes:
            return whole
        first, *rest = attributes
        beside = parents if is_own else whole
        if first == ITSELF:
            return beside
        bound = [(*place, *rest) for name, place in imports if name == first and place[:2] != (module, first)]
        if bound:
            return beside + bound
        if self.source(f"{module}.{first}"):
            return [*beside, (f"{module}.{first}", *rest)]
        if module == PACKAGE and first in paper_names():
            return [*beside, (paper_package(first), *rest)]
        return beside if source.is_lazy else whole  # the file itself defines it

    def _named_places(self, module: str, source: ModuleFile) -> list[Place]:
        """Return what a file may load by name."""
        top = module.partition(".")[0]
        if module == PACKAGE:
            return [(paper_package(name),) for name in paper_names()]
        places = [place for place in source.facts.addresses if is_followed(place[0]) or place[0].startswith(f"{top}.")]
        # Modules of this project that compute names, such as `core.papers`, load what papers declare. What decides
        # numbers of that, such as a system's functions, is passed to keys as values. `tests/runs/test_key.py` lists
        # these modules. Other modules may load anything that is beside them.
        root = self.source(top)
        if not source.facts.is_dynamic or top == PACKAGE or root is None:
            return places
        if not root.folders:
            return places + [(path.stem,) for path in sorted(Path(str(root.path)).parent.glob("*.py"))]
        for folder in root.folders:
            files = [path.relative_to(folder).with_suffix("") for path in sorted(folder.rglob("*.py"))]
            places += [(".".join((top, *file.parts)).removesuffix(".__init__"),) for file in files]
        return places

    def _absolute(self, module: str, source: ModuleFile, place: Place) -> Place:
        """Return an imported place without the dots that begin a relative one."""
        name = place[0].lstrip(".")
        num_dots = len(place[0]) - len(name)
        if not num_dots:
            return place
        parts = module.split(".")
        package = parts[: len(parts) - num_dots + bool(source.folders)]
        return (".".join([*package, name] if name else package), *place[1:])

    def _find(self, module: str) -> ModuleFile | None:
        parent, _, name = module.rpartition(".")
        if library_of(module):
            return ModuleFile(Facts(library_of(module)))
        loaded = sys.modules.get(module)
        if loaded is not None:
            return self._read(getattr(loaded, "__file__", None), getattr(loaded, "__path__", ()), is_loaded=True)
        if not parent:
            spec = _find_spec(module)
            return spec and self._read(spec.origin, spec.submodule_search_locations or ())
        package = self.source(parent)
        for folder in package.folders if package else ():
            if (folder / f"{name}.py").is_file():
                return self._read(folder / f"{name}.py", ())
            if (folder / name).is_dir():
                initial = folder / name / "__init__.py"
                return self._read(initial if initial.is_file() else None, [folder / name])
        return None

    def _read(self, file: Any, places: Any, is_loaded: bool = False) -> ModuleFile | None:
        folders = [Path(place) for place in places]
        if file is None:
            return ModuleFile(Facts("folder"), None, folders) if folders else None
        path = Path(file)
        facts = self._texts.facts(path)
        if is_loaded and PACKAGE_FOLDER in path.parents and path.stat().st_mtime > IMPORT_TIME:
            raise InvalidValueError(f"{path} was changed after it was imported. Start Python again.")
        stub = path.with_suffix(".pyi")
        if not folders or not stub.is_file():
            return ModuleFile(facts, path, folders)
        lazy = self._texts.facts(stub)
        both = facts._replace(digest=f"{facts.digest} {lazy.digest}", imports=[*facts.imports, *lazy.imports])
        return ModuleFile(both, path, folders, is_lazy=PACKAGE_FOLDER in stub.parents)


def is_followed(module: str) -> bool:
    """Return whether a module is of this package or of a paper, wherever it is installed."""
    return module.partition(".")[0] in {PACKAGE, *_paper_packages()}


@functools.cache
def _paper_packages() -> set[str]:
    return {paper_package(name).partition(".")[0] for name in paper_names()}


def library_of(module: str) -> str:
    """Return name and version of the library that a module is of; empty for code that is followed."""
    return _library(module.partition(".")[0])


@functools.cache
def _library(name: str) -> str:
    if name == "__main__" or is_followed(name):
        return ""
    spec = getattr(sys.modules.get(name), "__spec__", None) or _find_spec(name)
    if spec is None:
        return ""
    path = Path(next(filter(None, [spec.origin, *(spec.submodule_search_locations or ())]), ""))
    if {"site-packages", "dist-packages"} & {*path.parts, *path.resolve().parts}:
        return f"{name} {_version(name)}"
    is_standard = STANDARD_LIBRARY in path.parents or STANDARD_LIBRARY.resolve() in path.resolve().parents
    return "python" if is_standard or spec.origin in ("built-in", "frozen") else ""


def _find_spec(name: str) -> Any:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(name)


def _version(name: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    start = f"\n{name}/__init__.py,"  # `metadata.packages_distributions` takes most of a second
    owners = [
        distribution for distribution in metadata.distributions() if start in f"\n{distribution.read_text('RECORD')}"
    ]
    return " ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))


class Texts:
    """Facts of files by digests of their texts, in a store for later processes. Without it they are read anew."""

    def __init__(self) -> None:
        # Facts also depend on Python's syntax trees, and on the code below.
        self._salt = sys.version.encode() + Path(__file__).read_bytes()
        self._new: dict[str, bytes] = {}

    @functools.cached_property
    def _store(self) -> Store:
        return Store(user_cache() / "imports")

    def facts(self, path: Path) -> Facts:
        """Return what a file says. Raises: InvalidValueError for one that cannot be read."""
        try:
            data = path.read_bytes()
        except OSError as failure:
            raise InvalidValueError(f"{path} cannot be read ({failure.strerror or failure}). Move it.") from None
        key = hashlib.sha256(self._salt + data).hexdigest()
        stored = None
        with contextlib.suppress(OutputError):  # of a folder that cannot be read
            stored = self._new.get(key) or self._store.get(key)
        if stored is None:
            stored = json.dumps(read_facts(data)).encode()
            self._new[key] = stored
        digest, imports, addresses, is_dynamic = json.loads(stored)
        return Facts(digest, [(name, tuple(place)) for name, place in imports], [*map(tuple, addresses)], is_dynamic)

    def save(self) -> None:
        """Save new facts. A folder that cannot be written only costs time."""
        if self._new:
            with contextlib.suppress(OutputError):
                self._store.put(self._new)
                self._store.close()
            self._new.clear()


def read_facts(data: bytes) -> Facts:
    """Return what a text says; of a text that is not Python's, its bytes alone."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return Facts(hashlib.sha256(data).hexdigest())
    reader = Reader()
    reader.visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    digest = hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
    imports = {
        (binding, (*place, *chain)): None
        for name, binding, place in reader.imports
        for chain in sorted(reader.chains.get(name, [()]))
    }
    return Facts(digest, [*imports], sorted(reader.addresses), reader.is_dynamic)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class Reader(ast.NodeVisitor):
    """Collects what a file imports, and which attributes it reads of each name."""

    def __init__(self) -> None:
        self.imports: list[tuple[str, str, Place]] = []  # name in the code, the same if at the top level, and its place
        self.chains: dict[str, set[Place]] = defaultdict(set)
        self.addresses: set[Place] = set()
        self.is_dynamic = False
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        """Collect from a node and all inside it."""
        is_scope = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
        self._depth += is_scope
        super().visit(node)
        self._depth -= is_scope

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            node = ast.If(ast.Constant(False), [], node.orelse)
        self.generic_visit(node)

    def _add(self, name: str, *place: str) -> None:
        self.imports.append((name, "" if self._depth else name, place))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self._add(alias.asname or first, alias.name if alias.asname else first)
            if alias.name != first and not alias.asname:  # imported even if nothing is read of it
                self._add("", alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self.is_dynamic |= alias.asname is not None and alias.name in LOADERS
            self._add(alias.asname or alias.name, module, *([alias.name] if alias.name != "*" else []))

    def visit_Name(self, node: ast.Name) -> None:
        self.chains[node.id].add(())
        self.is_dynamic |= node.id in LOADERS

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            names.insert(0, root.attr)
            root = root.value
        self.is_dynamic |= node.attr in LOADERS - {"eval", "exec"}  # which are common names of methods
        if isinstance(root, ast.Name):
            self.chains[root.id].add(tuple(names[:MAX_DEPTH]))
            self.is_dynamic |= (root.id, names[0]) == ("sys", "modules")
        else:
            self.visit(root)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and ADDRESS.fullmatch(node.value):
            self.addresses.add(tuple(node.value.split(":")))

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if name in IMPORTERS and isinstance(text, str):
            self._add("", *text.split(":"))
        else:
            self.generic_visit(node)
