"""Key of a result: a digest of the values and of the code that decide it.

Values count by type, shape and bytes. A function or class counts by the modules that its own module can reach by
imports: their syntax trees without docstrings. Installed libraries count by name and version, but this package and the
papers that others install are followed. Functions of a notebook count by their instructions and the values they name.
"""

import builtins
import dis
import enum
import functools
import hashlib
import sys
import types
import typing
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidRunError
from moe_theory.runs.imports import LOADERS, Modules

# Attributes that say something and decide nothing.
DECLARATIVE = frozenset(
    "__doc__ __module__ __qualname__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dict__ "
    "__weakref__ __firstlineno__ __static_attributes__ __orig_bases__ __parameters__ __type_params__ "
    "__classdictcell__ __slotnames__ _abc_impl".split()
)
ATOMS = frozenset({str, bytes, bool, int, float, complex, type(None), type(...), type(NotImplemented)})
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# Libraries whose wrappers refuse calls and change none.
CHECKERS = ("jaxtyping", "beartype")
# Method by which an object says what counts of it, in place of its class and attributes.
HOOK = "__fingerprint__"
JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
SIGNATURE_FLAGS = 0x0C  # of a code object: whether it takes *arguments and **options


def code_digest(*objects: Any) -> str:
    """Return a digest of objects: of functions and classes by the code that they can reach, of all else by value.

    Raises: InvalidRunError for an object without a value, such as an open file.

    Examples:
        >>> from moe_theory.runs.key import code_digest
        >>> def scaled(factor):
        ...     return lambda x: x * factor
        >>> code_digest(scaled(2)) == code_digest(scaled(2)), code_digest(scaled(2)) == code_digest(scaled(3))
        (True, False)
    """
    return Digests().of(*objects)


class Digests:
    """Digests that share what they read: an edit of a file after its first digest is not noticed."""

    def __init__(self) -> None:
        self._modules = Modules()
        self._known: dict[int, tuple[bytes, Any]] = {}  # by the object's id, which it has as long as it is kept here
        self._path: dict[int, int] = {}  # depths of the objects that are being read, by their ids
        self._outermost = 0  # depth of the outermost object that the one being read refers back to

    def of(self, *objects: Any) -> str:
        """Return the same as `code_digest`."""
        digest = _digest("objects", *map(self._form, objects)).hex()
        self._modules.save()
        return digest

    def _form(self, value: Any) -> bytes:
        kind = type(value)
        if kind in ATOMS:
            return f"{kind.__name__} {value!r}".encode()
        if id(value) in self._known:
            return self._known[id(value)][0]
        if id(value) in self._path:
            self._outermost = min(self._outermost, self._path[id(value)])
            return _digest("cycle", str(len(self._path) - self._path[id(value)]).encode())
        depth = len(self._path)
        outermost_before = self._outermost
        self._path[id(value)] = self._outermost = depth
        try:
            digest = self._compound(value)
        finally:
            del self._path[id(value)]
        if self._outermost == depth:  # it refers to nothing that holds it, and is the same wherever it is
            self._known[id(value)] = (digest, value)
        self._outermost = min(outermost_before, self._outermost)
        return digest

    def _parts(self, kind: str, *parts: Any) -> bytes:
        return _digest(kind, *map(self._form, parts))

    def _compound(self, value: Any) -> bytes:
        """Return the digest of a value that holds others, or bytes of an array."""
        kind = type(value)
        jax = sys.modules.get("jax")
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._array(value)
        if jax and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
            words = np.asarray(jax.random.key_data(value) if is_key else value)
            return _digest(f"jax {jax.typeof(value)} {getattr(value, 'weak_type', False)}", words.tobytes())
        if hasattr(kind, HOOK):
            return self._parts("hook", getattr(value, HOOK)())
        if kind in (list, tuple):
            return self._parts(kind.__name__, *value)
        if kind in (dict, types.MappingProxyType):
            return self._parts("dict", *value.keys(), *value.values())
        if kind in (set, frozenset):
            return _digest(kind.__name__, *sorted(map(self._form, value)))
        if kind is types.CodeType:
            return self._code(value)
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return self._parts("method", value.__func__, value.__self__)
        if isinstance(value, types.ModuleType):
            return self._modules.reach(value.__name__).encode()
        if isinstance(value, enum.Enum):
            return self._parts("member", kind, value.name)
        if name := self._library_name(value):
            return _digest("library", name.encode())
        if typing.get_origin(value) is not None:
            return self._parts("type", typing.get_origin(value), *typing.get_args(value))
        if isinstance(value, (typing.TypeVar, typing.ForwardRef)):
            return _digest("type", str(value).encode())
        if isinstance(value, type):
            return self._class(value)
        if kind in (staticmethod, classmethod):
            return self._parts(kind.__name__, value.__func__)
        if kind is property:
            return self._parts("property", value.fget, value.fset, value.fdel)
        if hasattr(value, "__wrapped__"):  # of `jax.jit` or `functools.cache`
            options = getattr(getattr(value, "_jit_info", None), "compiler_options_kvs", None)
            return self._parts("wrapper", kind, value.__wrapped__, options)
        return self._instance(value)

    def _array(self, value: Any) -> bytes:
        about = f"{type(value).__name__} {value.dtype!r} {value.shape}"
        if value.dtype.hasobject:
            return self._parts(about, *value.ravel().tolist())
        return _digest(about, value.tobytes())

    def _function(self, function: types.FunctionType) -> bytes:
        home = str(function.__globals__.get("__name__"))
        attributes = {name: value for name, value in vars(function).items() if name not in DECLARATIVE}
        if home.partition(".")[0] in CHECKERS and "__wrapped__" in attributes:
            return self._form(attributes["__wrapped__"])
        if name := self._library_name(function):
            return _digest("library", name.encode())
        cells = [_content(cell) for cell in function.__closure__ or ()]
        if self._modules.is_library(home):  # such as `jax.grad` of a function, which is in its cells
            code = f"{self._modules.reach(home)} {function.__code__.co_qualname}"
        elif self._modules.has_source(home):
            is_only_one = _attribute(sys.modules.get(home), function.__qualname__) is function
            code = (is_only_one or function.__code__, self._modules.reach(home))
        else:
            code = (function.__code__, self._named(function.__code__, function.__globals__))
        defaults = (function.__defaults__, function.__kwdefaults__)
        return self._parts("function", function.__qualname__, code, *defaults, cells, attributes)

    def _code(self, code: types.CodeType) -> bytes:
        """Return the digest of a function's instructions, without docstrings and places in the file."""
        signature = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & SIGNATURE_FLAGS)
        words = [repr((signature, counts))]
        steps = [*dis.get_instructions(code)]
        for step, following in zip(steps, [*steps[1:], steps[-1]], strict=True):
            if following.opname == "STORE_NAME" and following.argval in DECLARATIVE:
                continue  # the docstring of a class inside the function
            if step.opcode in JUMPS:
                words.append(f"{step.opname} {step.arg}")
            elif isinstance(step.argval, (types.CodeType, frozenset, tuple)):
                words.append(f"{step.opname} {self._form(step.argval).hex()}")
            else:
                words.append(f"{step.opname} {step.argval!r}")
        return _digest("code", "\n".join(words).encode("utf-8", "surrogatepass"))

    def _named(self, code: types.CodeType, namespace: dict[str, Any]) -> list[Any]:
        """Return the values of the globals that a function of no module names, and what its own imports reach."""
        values: list[Any] = []
        steps = list(dis.get_instructions(code))
        for place, step in enumerate(steps):
            if isinstance(step.argval, types.CodeType):
                values += self._named(step.argval, namespace)
            elif step.opname == "IMPORT_NAME":
                names = steps[place - 1].argval or ()
                values += [self._modules.reach(step.argval, name) for name in names]
                values += [] if names else [self._modules.reach(step.argval)]
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names = [step.argval]
                for attribute in steps[place + 1 :]:
                    if attribute.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                        break
                    names.append(attribute.argval)
                values.append(self._global(names, namespace))
        return values

    def _global(self, names: list[str], namespace: dict[str, Any]) -> Any:
        """Return a global's value; of a module, what its attributes reach."""
        value = namespace.get(names[0], getattr(builtins, names[0], ("missing", names[0])))
        if LOADERS.intersection(names):
            raise InvalidRunError(
                f"a function of a notebook or script calls {'.'.join(names)}, which loads code by a name that is only "
                "known when it runs. Import the code, or put the function into a module."
            )
        return self._modules.reach(value.__name__, *names[1:]) if isinstance(value, types.ModuleType) else value

    def _class(self, kind: type) -> bytes:
        home = kind.__module__
        if self._modules.is_library(home):
            return _digest("class", f"{self._modules.reach(home)} {kind.__qualname__}".encode())
        code = self._modules.reach(home) if self._modules.has_source(home) else ""
        members = {}
        if not code or "<locals>" in kind.__qualname__:  # what it holds can depend on values
            members = {
                name: value
                for name, value in sorted(vars(kind).items())
                if name not in DECLARATIVE and not isinstance(value, DESCRIPTORS)
            }
        return self._parts("class", kind.__qualname__, code, kind.__bases__, members)

    def _library_name(self, value: Any) -> str:
        """Return the name by which a library has an object; empty where it has none."""
        home = getattr(value, "__module__", None)
        if not isinstance(home, str) or not self._modules.is_library(home):
            return ""
        for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None)):
            if _attribute(sys.modules.get(home), str(name)) is value:
                return f"{self._modules.reach(home)} {home} {name}"
        return ""

    def _instance(self, value: Any) -> bytes:
        """Return the digest of what would make an equal object."""
        kind = type(value)
        try:
            if kind is object:
                raise TypeError("it has no value")
            reduced = value.__reduce_ex__(4)
        except Exception as failure:
            raise InvalidRunError(
                f"a value of type {kind.__module__}.{kind.__qualname__} has no key ({failure}): a result that depends "
                "on it cannot be found again. Pass numbers, arrays or functions in its place."
            ) from failure
        if isinstance(reduced, str):
            return self._parts("global", kind, reduced)
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        states = [_lasting(kind, part) for part in (state if isinstance(state, tuple) else (state,))]
        return self._parts("instance", kind, make, arguments, states, list(items or ()), list(pairs or ()))


def _digest(kind: str, *parts: bytes) -> bytes:
    lengths = " ".join([str(len(part)) for part in parts])
    return hashlib.sha256(b"".join([f"{kind}:{lengths}:".encode(), *parts])).digest()


def _attribute(module: types.ModuleType | None, name: str) -> Any:
    """Return what a module has under a qualified name; None where it has nothing."""
    try:
        return functools.reduce(getattr, name.split("."), module)
    except (AttributeError, TypeError):
        return None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ("an empty cell",)


def _lasting(kind: type, state: Any) -> Any:
    """Return an object's attributes without those that are only kept for speed."""
    if not isinstance(state, dict):
        return state
    members = [(name, member) for base in kind.__mro__ for name, member in vars(base).items()]
    kept_for_speed = {name for name, member in members if isinstance(member, functools.cached_property)}
    return {name: part for name, part in state.items() if name not in kept_for_speed} or None
