"""Fingerprint of a function's results: its code, that of everything it can reach, and the values that they name.

Code counts as what it does: docstrings, comments, annotations of functions, lines and file names are left out, while
constants, defaults, closures, globals, and whole classes count. What an installed library has counts by its name and
the library's version; this package and those of papers are followed wherever they are. Where a function looks code up
by name at run time (`eval`, `importlib.import_module`, ...), the text of all files of its package counts.
"""

import ast
import builtins
import contextlib
import copyreg
import dataclasses
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import inspect
import logging
import pkgutil
import sys
import sysconfig
import threading
import types
import typing
import weakref
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from moe_theory.core.errors import OWN_CODE, InvalidRunError
from moe_theory.core.papers import paper_names, paper_package

# Attributes that say something and decide nothing.
DECLARATIVE = frozenset(
    "__doc__ __module__ __qualname__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dict__ "
    "__weakref__ __firstlineno__ __static_attributes__ __orig_bases__ __parameters__ __type_params__ "
    "__classdictcell__ __slotnames__ _abc_impl".split()
)
# Of a named tuple, what follows from its fields and their defaults.
MADE_OF_FIELDS = frozenset("__new__ _make _replace __replace__ __repr__ _asdict __getnewargs__".split())
# Modules that decide when something is done or who hears of it, and never what; or that give back what was kept.
NEUTRAL = frozenset(
    f"moe_theory.{name}"
    for name in "core.forks core.programs runs.files runs.fingerprint runs.locks runs.progress runs.store".split()
)
# Whose wrappers refuse calls and change none.
CHECKERS = ("jaxtyping", "beartype")
# Objects without a value, or whose value is only kept for speed.
VALUELESS = (type(threading.Lock()), type(threading.RLock()), threading.local)
VALUELESS += (threading.Condition, threading.Event, threading.Semaphore, logging.Logger)
VALUELESS += (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
# What finds code by a name that is not in the code that calls it.
BY_NAME = (eval, exec, globals, __import__, importlib.import_module, pkgutil.resolve_name, sys.modules)
CACHED = type(functools.cache(len))
# A method by which objects say what counts of them, in place of their type and all that they hold.
OWN = "__fingerprint__"


def code_digest(*roots: Any) -> str:
    """A digest of objects: of functions by what they can reach, of all else by value.

    Raises: InvalidRunError for a value that cannot be hashed, such as an open file's.

    Examples:
        >>> from moe_theory.runs.fingerprint import code_digest
        >>> def scaled(by):
        ...     return lambda x: x * by
        >>> code_digest(scaled(2)) == code_digest(scaled(2)), code_digest(scaled(2)) == code_digest(scaled(3))
        (True, False)
    """
    return Digests().of(*roots)


class Digests:
    """Digests of objects that share what they reach. Each is read once: a change of it after that is not noticed."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Node] = {}
        self._given: dict[str, list[Any]] = {}  # by module

    def of(self, *roots: Any) -> str:
        """As `code_digest`."""
        texts, numbers = [], {}
        waiting = [self._node(each) for each in roots[::-1]]
        while waiting:
            node = waiting.pop()
            if node in numbers:  # a cycle, or known already
                texts.append(b"#%d" % numbers[node])
                continue
            if node.children:
                numbers[node] = len(numbers)
                if not node.nodes:
                    node.nodes = [self._node(each) for each in node.children[::-1]]
                waiting.extend(node.nodes)
            texts.append(node.text)
        return hashlib.sha256(b"".join(texts)).hexdigest()

    def _node(self, each: Any) -> "_Node":
        node = self._nodes.get(id(each))
        if node is None:
            text = _atom(each)
            if text is not None:
                return _Node(text, (), None)
            kind, *members = self._members(each)
            texts = [_atom(member) for member in members]
            children = tuple(member for member, text in zip(members, texts, strict=True) if text is None)
            # Of each child its place: what it is follows.
            text = b"(%s %s)" % (kind.encode(), b" ".join(b"@" if text is None else text for text in texts))
            node = self._nodes[id(each)] = _Node(text, children, each)
        return node

    def _members(self, each: Any) -> Sequence[Any]:
        """An object's kind in a word, and its identity among others of that kind."""
        kind = type(each)
        if issubclass(kind, (type, types.FunctionType)) and each.__module__ in NEUTRAL:
            return ("neutral", each.__module__)
        if hasattr(kind, OWN):
            return ("parts", getattr(kind, OWN)(each))
        if kind in (list, tuple):
            return (kind.__name__, *each)
        if kind in (dict, types.MappingProxyType):
            return ("dict", *_flat(each.items()))
        if kind in (set, frozenset):
            return (kind.__name__, *sorted(each, key=self._rank))
        if kind is types.FunctionType:
            return self._function(each)
        if isinstance(each, types.ModuleType):
            return _module(each)
        if isinstance(each, enum.Enum):
            return ("member", kind, each.name)
        if kind is types.MethodType:
            return ("method", each.__func__, each.__self__)
        if leaf := _leaf(each):
            return leaf
        if kind.__name__ in ("PjitFunction", "PjitInfo"):
            return _jitted(each)
        if kind is CACHED:
            return ("cached", each.__wrapped__)
        if typing.get_origin(each) is not None:
            return ("type", typing.get_origin(each), *typing.get_args(each))
        if isinstance(each, type):
            return _class(each)
        if kind in (staticmethod, classmethod):
            return (kind.__name__, each.__func__)
        if kind is property:
            return ("property", each.fget, each.fset, each.fdel)
        if kind is dataclasses.Field:
            return ("field", each.name, each.default, each.default_factory, each.metadata)
        if isinstance(each, (typing.TypeVar, typing.ForwardRef)):
            return ("type", str(each))
        if isinstance(each, VALUELESS):
            return ("valueless", kind)
        if isinstance(each, weakref.ref):
            return ("reference", each())
        return _instance(each)

    def _function(self, function: types.FunctionType) -> Sequence[Any]:
        home = str(function.__globals__.get("__name__"))
        cells = [_content(cell) for cell in function.__closure__ or ()]
        own = {name: value for name, value in vars(function).items() if name not in DECLARATIVE}
        if home.partition(".")[0] in CHECKERS and "__wrapped__" in own:
            return ("checked", own["__wrapped__"])
        if library := _library(home):
            # What a library wraps around other functions holds these in its cells.
            return _leaf(function) or ("library", library, home, function.__code__.co_qualname, *cells, own)
        code = _read(function.__code__)
        named = [_resolved(chain, function.__globals__) for chain in code.chains]
        named += [value for each in code.imports for value in _imported(each, function.__globals__)]
        if any(_finds_by_name(value) for value in named):
            named = [*(value for value in named if not _finds_by_name(value)), _sources(home)]
        if home not in self._given:
            is_own = home.partition(".")[0] == "moe_theory"  # which gives away nothing, as a test sees to
            self._given[home] = [] if is_own else _given_away(sys.modules.get(home))
        defaults = (function.__defaults__, function.__kwdefaults__)
        return ("function", function.__name__, code.text, *defaults, *cells, own or None, *named, self._given[home])

    def _rank(self, each: Any) -> tuple[bytes, str]:
        """Sort key of members of a set: the same in every process."""
        text = _atom(each)
        if text is not None:
            return text, ""
        name = f"{getattr(each, '__module__', '')}.{getattr(each, '__qualname__', '')}.{getattr(each, 'name', '')}"
        return b"", name if name[-2:] != ".." else self.of(each)


class _Node:
    """An object as it was read: its own identity, and the objects that it depends on."""

    def __init__(self, text: bytes, children: tuple[Any, ...], kept: Any) -> None:
        self.text, self.children = text, children
        self.nodes: list[_Node] = []  # of the children, the last one first, once they are read
        self.kept = kept  # so that no other object has its id


def _atom(each: Any) -> bytes | None:
    """The text of a value that holds no other objects; None for any other one."""
    kind = type(each)
    if kind is str:
        text = each.encode("utf-8", "surrogatepass")
    elif kind is bytes:
        text = each
    elif kind is float:
        text = each.hex().encode()
    elif kind in (bool, int, complex, type(None), type(...), type(NotImplemented)):
        text = repr(each).encode()
    elif isinstance(each, jax.Array) and not isinstance(each, Tracer):
        is_key = jnp.issubdtype(each.dtype, jax.dtypes.prng_key)
        words = np.asarray(jax.random.key_data(each) if is_key else each)
        text = f"{jax.typeof(each)} {getattr(jax.typeof(each), 'weak_type', '')} ".encode() + words.tobytes()
    elif (kind is np.ndarray or isinstance(each, np.generic)) and not each.dtype.hasobject:
        text = f"{each.dtype.descr} {each.shape} ".encode() + each.tobytes()
    else:
        return None
    return b"%s %d:%s" % (kind.__name__.encode(), len(text), text)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [each for pair in pairs for each in pair]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


class _Code(NamedTuple):
    text: str  # a digest of the instructions
    chains: tuple[tuple[str, ...], ...]  # globals, each with the attributes that are read of it at once
    imports: tuple[tuple[str, int, tuple[str, ...]], ...]  # inside a function: module, level, names


@functools.cache
def _read(code: types.CodeType) -> _Code:
    """A function's instructions in a normal form, with those of the functions inside it."""
    every = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    steps = [each for each in every if each.opname not in ("NOP", "RESUME", "EXTENDED_ARG")]
    place, places = 0, {}  # of jumps
    for each in every:
        places[each.offset] = place
        place += each is steps[min(place, len(steps) - 1)]
    words = [str((code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))]
    words += [str(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]), code.co_exceptiontable.hex()]
    chains, imports = {}, {}
    for place, each in enumerate(steps):
        following = steps[place + 1] if place + 1 < len(steps) else each
        if following.opname == "STORE_NAME" and following.argval in DECLARATIVE:
            continue  # of a class inside the function
        if isinstance(each.argval, types.CodeType):
            inner = _read(each.argval)
            words.append(inner.text)
            chains |= dict.fromkeys(inner.chains)
            imports |= dict.fromkeys(inner.imports)
        elif each.opcode in dis.hasconst:
            words.append(f"{each.opname} {_constant(each.argval)}")
        elif each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            words.append(f"{each.opname} {places[each.argval]}")
        else:
            words.append(f"{each.opname} {each.argrepr or each.arg}")
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            chain = [each.argval]
            for further in steps[place + 1 :]:
                if further.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                    break
                chain.append(further.argval)
            chains[tuple(chain)] = None
        elif each.opname == "IMPORT_NAME":
            level, names = (step.argval for step in steps[place - 2 : place])
            imports[each.argval, level, tuple(names or ())] = None
    text = "\n".join(words)
    return _Code(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), tuple(chains), tuple(imports))


def _constant(value: Any) -> str:
    if isinstance(value, (tuple, frozenset)):
        parts = [_constant(each) for each in value]
        return f"{type(value).__name__}({', '.join(parts if isinstance(value, tuple) else sorted(parts))})"
    return f"{type(value).__name__} {value!r}"


def _resolved(chain: Sequence[str], namespace: Mapping[str, Any]) -> Any:
    """The value of a name in a function's module; for modules, the attribute that is read."""
    if chain[0] not in namespace and not hasattr(builtins, chain[0]):
        return ("missing", *chain)
    value = namespace[chain[0]] if chain[0] in namespace else getattr(builtins, chain[0])
    for place, name in enumerate(chain[1:], 1):
        if not isinstance(value, types.ModuleType):
            break
        home, value = value.__name__, getattr(value, name, _Missing)
        if value is _Missing:
            return ("missing", home, *chain[place:])
        if not isinstance(value, types.ModuleType) and not _finds_by_name(value) and _library(home):
            return ("library", _library(home), home, name)
    return value


def _finds_by_name(value: Any) -> bool:
    return any(value is each for each in BY_NAME)


class _Missing:
    """Stands for an attribute that a module does not have."""


def _imported(wanted: tuple[str, int, tuple[str, ...]], namespace: Mapping[str, Any]) -> list[Any]:
    """Values imported inside a function: the names, or the whole module."""
    name, level, names = wanted
    with contextlib.suppress(ImportError):
        name = importlib.util.resolve_name("." * level + name, namespace.get("__package__"))
    if _library(name):
        return [("library", _library(name), name, *names)]
    try:
        module = importlib.import_module(name)
        if not names or "*" in names:
            return [module, sys.modules[name.partition(".")[0]]]
        for each in names:
            if not hasattr(module, each):
                importlib.import_module(f"{name}.{each}")
        return [getattr(module, each) for each in names]
    except OWN_CODE:  # whatever keeps it from being imported
        return [("missing", name, *names)]


def _given_away(module: types.ModuleType | None) -> list[Any]:
    """Values that a module's statements pass to libraries, such as JAX's functions to flatten a class."""
    try:
        waiting: list[Any] = ast.parse(inspect.getsource(module)).body  # pyright: ignore[reportArgumentType]
    except (OSError, TypeError, SyntaxError):
        return []
    namespace, found = vars(module), []
    for statement in waiting:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for part in ("body", "orelse", "finalbody", "handlers"):
            waiting.extend(getattr(statement, part, ()))
        root = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            root = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        names = [each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and each.id in namespace]
        is_part = isinstance(root, (ast.Attribute, ast.Subscript, ast.Call))
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        owner = namespace.get(root.id) if isinstance(root, ast.Name) else None
        if is_part and (_leaf(owner) or (isinstance(owner, types.ModuleType) and _library(owner.__name__))):
            found += [ast.dump(statement), *(namespace[name] for name in names)]
    return found


def _module(module: types.ModuleType) -> Sequence[Any]:
    """A module that is handed on, so that anything of it may be used."""
    name = module.__name__
    if library := _library(name):
        return ("library", library, name)
    if hasattr(module, "__path__"):  # what it has depends on what has been imported
        return ("package", _sources(name))
    own = {each: value for each, value in sorted(vars(module).items()) if not each.startswith("__")}
    return ("module", *_flat(own.items()))


def _leaf(each: Any) -> Sequence[Any]:
    """A library's own object as its name; empty for any other one."""
    home = getattr(each, "__module__", None)
    library = _library(home) if isinstance(home, str) else ""
    if not library:
        return ()
    module = sys.modules.get(str(home))
    for name in (getattr(each, "__qualname__", None), getattr(each, "__name__", None)):
        with contextlib.suppress(AttributeError, TypeError):
            if functools.reduce(getattr, str(name).split("."), module) is each:
                return ("library", library, home, name)
    if not isinstance(each, (type, types.FunctionType)):
        for name, value in list(vars(module).items()) if module else ():
            if value is each:
                return ("library", library, home, name)
    return ()


def _jitted(each: Any) -> Sequence[Any]:
    info = getattr(each, "_jit_info", each)
    options = ("static_argnums", "static_argnames", "compiler_options_kvs")
    return ("jitted", getattr(each, "__wrapped__", None), *(getattr(info, name, None) for name in options))


def _class(each: type) -> Sequence[Any]:
    if str(each.__module__).partition(".")[0] in CHECKERS:
        return ("library", each.__module__, each.__qualname__)
    left_out = DECLARATIVE | (MADE_OF_FIELDS if hasattr(each, "_fields") and tuple in each.__bases__ else set())
    descriptors = (type(_Code.text), types.MemberDescriptorType, types.GetSetDescriptorType)
    own = {
        name: value for name, value in vars(each).items() if name not in left_out and not isinstance(value, descriptors)
    }
    hints = {}
    with contextlib.suppress(Exception):  # a hint may name what is not there
        hints = typing.get_type_hints(each, include_extras=True)
    # Of a hint, what programs read and not people.
    marked = {name: hint.__metadata__ for name, hint in hints.items() if hasattr(hint, "__metadata__")}
    return ("class", each.__name__, type(each), *each.__bases__, own, marked)


def _instance(each: Any) -> Sequence[Any]:
    """An object as what would make an equal one, and all that it holds."""
    kind = type(each)
    try:
        reduce = copyreg.dispatch_table.get(kind)
        reduced: Any = reduce(each) if reduce else each.__reduce_ex__(4)
    except Exception as failure:
        raise InvalidRunError(
            f"a value of type {kind.__module__}.{kind.__qualname__} cannot be hashed, so that nothing it decides can "
            "be kept. Let functions name numbers, arrays or functions instead."
        ) from failure
    cached = {
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, functools.cached_property)
    }

    def lasting(state: Any) -> Any:
        if not isinstance(state, dict):
            return state
        return {name: value for name, value in state.items() if name not in DECLARATIVE | cached} or None

    own = lasting(getattr(each, "__dict__", None))
    if isinstance(reduced, str):
        return ("instance", kind, reduced, own)
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    state = [lasting(part) for part in state] if isinstance(state, tuple) else [lasting(state)]
    return ("instance", kind, make, arguments, own, *state, *(items or ()), *_flat(pairs or ()))


def _library(home: str) -> str:
    """The installed library that a module is of, with its version; empty for a module whose code is followed."""
    return _library_of(home.partition(".")[0])


@functools.cache
def _library_of(name: str) -> str:
    if name in {"__main__", *(each.partition(".")[0] for each in ("moe_theory", *map(paper_package, paper_names())))}:
        return ""
    specification = getattr(sys.modules.get(name), "__spec__", None)
    with contextlib.suppress(ImportError, ValueError):
        specification = specification or importlib.util.find_spec(name)
    if specification is None:
        return ""
    if specification.origin in ("built-in", "frozen"):
        return "python"
    places = [specification.origin, *(specification.submodule_search_locations or ())]
    path = Path(next(filter(None, places), "")).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return _version(name)
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    return "python" if standard in path.parents else ""


@functools.cache
def _version(package: str) -> str:
    """Versions of what is installed under an import's name, and digests of its files, which may be edited."""
    try:
        found = [metadata.distribution(package)]
    except metadata.PackageNotFoundError:
        names = metadata.packages_distributions().get(package, ())
        found = [metadata.distribution(name) for name in sorted(set(names))]
    lines = [line for each in found for line in (each.read_text("RECORD") or "").splitlines() if ".py,sha256=" in line]
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return " ".join([package, *(each.version for each in found), digest[:16]])


def _sources(home: str) -> str:
    """A digest of the text of all files of a module's package, or of a single module and its neighbours."""
    module = sys.modules.get(home.partition(".")[0])
    path = Path(getattr(module, "__file__", None) or "/")
    files = sorted(path.parent.rglob("*.py") if hasattr(module, "__path__") else path.parent.glob("*.py"))
    if not files:
        raise InvalidRunError(f"{home} looks code up by name, and has no file that could be hashed.")
    digest = hashlib.sha256()
    for file in files:
        try:
            text = file.read_bytes()
        except OSError as failure:
            raise InvalidRunError(f"{file} cannot be read ({failure.strerror or failure}): move it.") from None
        digest.update(f"{file.relative_to(path.parent)} ".encode() + text)
    return digest.hexdigest()
