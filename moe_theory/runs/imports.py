"""Modules that a module can reach by imports, and a digest of their code.

The code of a file is its syntax tree without docstrings. `__init__.py` of this package is followed by the names that
are imported from it, in lazy packages through `__init__.pyi`: otherwise every module would reach every other one.
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
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidRunError, OutputError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.runs.files import user_cache, write_whole
from moe_theory.runs.reading import read_bytes

# Names that load code. With a literal name they are imports.
IMPORTERS = frozenset({"import_module", "__import__", "resolve_name"})
LOADERS = IMPORTERS | {"eval", "exec", "run_path", "run_module", "spec_from_file_location"}
PACKAGE = "moe_theory"
PLACE = re.compile(r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*")  # "package.module:attribute"
DEPTH = 3  # attributes of a name that are followed, as in `moe_theory.verify.claim.Claim`
STANDARD = Path(sysconfig.get_path("stdlib"))
ITSELF = ""  # in the place of an attribute: the file of a package, and not what it imports

Place = tuple[str, ...]  # a module, and attributes of it


class Import(NamedTuple):
    """One name that a file imports, with the attributes that it reads of it."""

    binding: str  # the name at the top level of the file; "" for an import inside a function
    place: Place  # the module may begin with dots, and is then relative


class Facts(NamedTuple):
    """What the text of a file says. It depends on nothing else."""

    digest: str  # of its syntax tree without docstrings
    imports: tuple[Import, ...] = ()
    texts: tuple[Place, ...] = ()  # its strings such as "package.module:attribute"
    is_dynamic: bool = False  # whether it loads code by names that are not written in it


class Source(NamedTuple):
    """A module's file, or an installed library."""

    facts: Facts
    folders: tuple[Path, ...] = ()  # of a package
    path: Path | None = None
    is_lazy: bool = False  # a package whose names are loaded on first use


class Modules:
    """Modules that share what they read. What files say is kept in the user's cache folder."""

    def __init__(self) -> None:
        self._sources: dict[str, Source | None] = {}
        self._next: dict[Place, list[Place]] = {}
        self._digests: dict[Place, str] = {}
        self._facts = _Kept()

    def save(self) -> None:
        """Write the facts of files that were read for the first time."""
        self._facts.save()

    def is_library(self, module: str) -> bool:
        """Return whether a module counts by the name and version of its library."""
        return bool(_library(module.partition(".")[0]))

    def has_source(self, module: str) -> bool:
        """Return whether a module is a file that can be followed."""
        source = self._source(module)
        return module != "__main__" and source is not None and source.path is not None

    def reach(self, *place: str) -> str:
        """Return a digest of all modules that a module, or an attribute of it, can reach."""
        if place not in self._digests:
            waiting, reached = [self._resolved(place)], set()
            while waiting:
                current = waiting.pop()
                if current not in reached:
                    reached.add(current)
                    waiting += self._following(current)
            modules = sorted({current[0] for current in reached})
            lines = [f"{module} {self._digest(module)}" for module in modules]
            self._digests[place] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[place]

    def _digest(self, module: str) -> str:
        source = self._source(module)
        return "missing" if source is None else source.facts.digest

    def _following(self, place: Place) -> list[Place]:
        if place not in self._next:
            self._next[place] = list(dict.fromkeys(map(self._resolved, self._steps(*place))))
        return self._next[place]

    def _resolved(self, place: Place) -> Place:
        """Return a place in its shortest form: attributes count in packages only."""
        module, *attributes = place
        if self.is_library(module):
            return (module.partition(".")[0],)
        source = self._source(module)
        return (module, *attributes) if source and source.folders and attributes else (module,)

    def _steps(self, module: str, *attributes: str) -> list[Place]:
        """Return the places that a place leads to at once."""
        source = self._source(module)
        if source is None or self.is_library(module):
            return []
        parent = module.rpartition(".")[0]
        # Packages of this project only re-export. Others may do anything when they are imported.
        is_own = module.partition(".")[0] == PACKAGE
        steps: list[Place] = [(parent, ITSELF) if is_own else (parent,)] if parent else []
        if attributes == (ITSELF,):
            return steps
        if not attributes:
            return steps + self._all_steps(module, source)
        name, *rest = attributes
        bound = [self._absolute(module, each.place) for each in source.facts.imports if each.binding == name]
        bound = [(*place, *rest) for place in bound if place[:2] != (module, name)]
        if bound:
            return steps + bound
        if self._source(f"{module}.{name}") is not None:
            return [*steps, (f"{module}.{name}", *rest)]
        if module == PACKAGE and name in paper_names():
            return [*steps, (paper_package(name), *rest)]
        # Defined in the file. The imports of a lazy package are those of its stub, which define nothing in it.
        return steps if source.is_lazy else steps + self._all_steps(module, source)

    def _all_steps(self, module: str, source: Source) -> list[Place]:
        followed = {PACKAGE, *_paper_packages(), module.partition(".")[0]}
        steps = [self._absolute(module, each.place) for each in source.facts.imports]
        steps += [place for place in source.facts.texts if place[0].partition(".")[0] in followed]
        # Modules of this project that load by name load what papers declare. Who computes with it passes it to its key
        # as a value, such as a system's functions. `tests/runs/test_key.py` lists these modules.
        if source.facts.is_dynamic and module.partition(".")[0] != PACKAGE:
            steps += self._neighbours(module)
        return steps

    def _absolute(self, module: str, place: Place) -> Place:
        """Return a place without the dots that a relative import begins with."""
        name = place[0].lstrip(".")
        if name == place[0]:
            return place
        source = self._source(module)
        num_up = len(place[0]) - len(name) - bool(source and source.folders)
        parents = module.split(".")
        package = ".".join(parents[: len(parents) - num_up])
        return (f"{package}.{name}", *place[1:]) if name else (package, *place[1:])

    def _neighbours(self, module: str) -> list[Place]:
        """Return all modules of a module's outermost package, or those in the folder of a single file."""
        top = module.partition(".")[0]
        source = self._source(top)
        if source is None or source.path is None:
            return []
        folders = source.folders or (source.path.parent,)
        prefix = (top,) if source.folders else ()
        files = [(path.relative_to(folder), path) for folder in folders for path in sorted(folder.rglob("*.py"))]
        names = [(*prefix, *path.with_suffix("").parts) for path, _ in files if source.folders or len(path.parts) == 1]
        return [(".".join(name).removesuffix(".__init__"),) for name in names]

    def _source(self, module: str) -> Source | None:
        """Return a module's file, which is not imported; None where there is none."""
        if module not in self._sources:
            self._sources[module] = self._located(module)
        return self._sources[module]

    def _located(self, module: str) -> Source | None:
        parent, _, name = module.rpartition(".")
        if library := _library(module.partition(".")[0]):
            return Source(Facts(library))
        loaded = sys.modules.get(module)
        if getattr(loaded, "__file__", None) or hasattr(loaded, "__path__"):
            return self._read(getattr(loaded, "__file__", None), getattr(loaded, "__path__", ()))
        if not parent:
            spec = _spec(module)
            return spec and self._read(spec.origin, spec.submodule_search_locations or ())
        above = self._source(parent)
        for folder in above.folders if above else ():
            if (folder / f"{name}.py").is_file():
                return self._read(folder / f"{name}.py", ())
            if (folder / name).is_dir():
                initial = folder / name / "__init__.py"
                return self._read(initial if initial.is_file() else None, [folder / name])
        return None

    def _read(self, file: Any, folders: Any) -> Source:
        if file is None:  # a folder of modules
            return Source(Facts("folder"), tuple(map(Path, folders)))
        path = Path(file)
        facts = self._facts.of(path)
        stub = path.with_suffix(".pyi")
        if folders and stub.is_file():  # a lazy package: its names are imported from where the stub says
            lazy = self._facts.of(stub)
            facts = Facts(f"{facts.digest} {lazy.digest}", lazy.imports)
            return Source(facts, tuple(map(Path, folders)), path, is_lazy=True)
        return Source(facts, tuple(map(Path, folders)), path)


def _spec(module: str) -> Any:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(module)
    return None


@functools.cache
def _paper_packages() -> frozenset[str]:
    return frozenset(paper_package(name).partition(".")[0] for name in paper_names())


@functools.cache
def _library(name: str) -> str:
    """Return name and version of an installed library by its outermost module; empty for code that is followed."""
    if name in {"__main__", PACKAGE} | _paper_packages():
        return ""
    spec = getattr(sys.modules.get(name), "__spec__", None) or _spec(name)
    if spec is None:
        return ""
    if spec.origin in ("built-in", "frozen"):
        return "python"
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    path = Path(next(filter(None, places), ""))
    for path, standard in ((path, STANDARD), (path.resolve(), STANDARD.resolve())):
        if {"site-packages", "dist-packages"} & set(path.parts):
            return f"{name} {_version(name)}"
        if standard in path.parents:
            return "python"
    return ""


def _version(name: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    # `metadata.packages_distributions` takes most of a second.
    start = f"\n{name}/__init__.py,"
    owners = [each for each in metadata.distributions() if start in f"\n{each.read_text('RECORD')}"]
    return " ".join(sorted(f"{owner.name} {owner.version}" for owner in owners))


class _Reader(ast.NodeVisitor):
    """Collects what a file imports, and which attributes it reads of each name."""

    def __init__(self, tree: ast.Module) -> None:
        self.bound: list[tuple[str, str, Place]] = []  # binding, name in the code, place
        self.chains: dict[str, set[Place]] = defaultdict(set)
        self.texts: set[Place] = set()
        self.is_dynamic = False
        self._depth = 0
        self.visit(tree)

    @property
    def imports(self) -> tuple[Import, ...]:
        """The imported places, each with the attributes that are read of it."""
        found = {}
        for binding, name, place in self.bound:
            for chain in sorted(self.chains.get(name, {()})):
                found[Import(binding, (*place, *chain))] = None
        return tuple(found)

    def _visit_inside(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _visit_inside

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def _bind(self, name: str, *place: str) -> None:
        self.bound.append((name if self._depth == 0 else "", name, place))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self._bind(alias.asname or first, alias.name if alias.asname else first)
            if alias.name != first and not alias.asname:  # the module is imported, whatever is read of it
                self._bind("", alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self.is_dynamic |= alias.asname is not None and alias.name in LOADERS
            self._bind(alias.asname or alias.name, module, *([alias.name] if alias.name != "*" else []))

    def visit_Name(self, node: ast.Name) -> None:
        self.chains[node.id].add(())
        self.is_dynamic |= node.id in LOADERS

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            names.insert(0, root.attr)
            root = root.value
        self.is_dynamic |= node.attr in LOADERS - {"eval", "exec"}
        if not isinstance(root, ast.Name):
            self.visit(root)
            return
        self.is_dynamic |= (root.id, names[0]) == ("sys", "modules")
        self.chains[root.id].add(tuple(names[:DEPTH]))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and PLACE.fullmatch(node.value):
            self.texts.add(tuple(node.value.split(":")))

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        module = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if name not in IMPORTERS or not isinstance(module, str):
            self.generic_visit(node)
        elif ":" not in module:
            self._bind("", module)


def _facts(data: bytes) -> Facts:
    """Return what a file says; of a file that Python cannot read, its bytes."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return Facts(hashlib.sha256(data).hexdigest())
    reader = _Reader(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    digest = hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
    return Facts(digest, reader.imports, tuple(sorted(reader.texts)), reader.is_dynamic)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Kept:
    """Facts of files by digests of their texts, kept for later processes. A damaged file counts for nothing."""

    def __init__(self) -> None:
        self._path = user_cache() / "imports.json"
        # Facts also depend on the code that makes them and on Python's syntax trees.
        self._salt = hashlib.sha256(sys.version.encode() + read_bytes(__file__)).digest()
        self._facts: dict[str, Any] = {}
        self._is_changed = False
        with contextlib.suppress(OSError, ValueError):
            seal, _, data = read_bytes(self._path).partition(b"\n")
            if seal == self._seal(data):
                self._facts = json.loads(data)

    def _seal(self, data: bytes) -> bytes:
        return hashlib.sha256(self._salt + data).hexdigest().encode()

    def of(self, path: Path) -> Facts:
        """Return the facts of a file. Raises: InvalidRunError for a file that cannot be read."""
        try:
            data = read_bytes(path)
        except OSError as failure:
            raise InvalidRunError(f"{path} cannot be read ({failure.strerror or failure}): move it.") from None
        name = hashlib.sha256(data).hexdigest()
        if name not in self._facts:
            self._facts[name] = _facts(data)
            self._is_changed = True
        digest, imports, texts, is_dynamic = self._facts[name]
        places = tuple(Import(binding, tuple(place)) for binding, place in imports)
        return Facts(digest, places, tuple(map(tuple, texts)), is_dynamic)

    def save(self) -> None:
        """Write the facts, where there are new ones and the folder can be written."""
        if self._is_changed:
            data = json.dumps(self._facts).encode()
            with contextlib.suppress(OutputError):
                write_whole(self._path, self._seal(data) + b"\n" + data)
            self._is_changed = False
