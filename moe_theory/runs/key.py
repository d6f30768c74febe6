"""Key of a result: a digest of the values and code that decide it.

Values count by type, shape and bytes, libraries by name and version. A function or class counts by the files that its
module reaches (`runs.imports`). Outside this package the globals that a function names count too.
"""

import copyreg
import dis
import functools
import hashlib
import inspect
import sys
import types
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidValueError, described
from moe_theory.runs.imports import IMPORTERS, PACKAGE, Modules, has_file, library_of

# Attributes that say something and decide nothing.
DECLARATIVE = frozenset(
    "__doc__ __module__ __qualname__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dict__ "
    "__weakref__ __firstlineno__ __static_attributes__ __orig_bases__ __parameters__ __type_params__ "
    "__classdictcell__ __slotnames__ _abc_impl".split()
)
ATOMS = frozenset({str, bytes, bool, int, float, complex, type(None), type(...), type(NotImplemented)})
CHECKERS = ("jaxtyping", "beartype")  # libraries whose wrappers refuse calls and change none
HOOK = "__fingerprint__"  # method by which an object says what counts of it, in place of its class and attributes
LOADERS = IMPORTERS | {"eval", "exec", "run_path", "run_module", "spec_from_file_location"}


def code_digest(*objects: Any) -> str:
    """Return a digest of objects: functions and classes by code within reach, others by value.

    Raises: InvalidValueError for an object without a value, such as an open file.
    """
    return Digests().of(*objects)


class Digests:
    """Digests that share the code and objects that they read, without later changes."""

    def __init__(self) -> None:
        self._modules = Modules()
        self._known: dict[int, tuple[bytes, Any]] = {}  # by the object's id, which it has as long as it is kept here
        self._depths: dict[int, int] = {}  # of the objects that are being read, by their ids
        self._num_cycles = 0  # references to objects that were being read

    def of(self, *objects: Any) -> str:
        return _digest("objects", *map(self._form, objects)).hex()

    def _form(self, value: Any) -> bytes:
        if type(value) in ATOMS:
            return f"{type(value).__name__} {value!r}".encode()
        if id(value) in self._known:
            return self._known[id(value)][0]
        depth = len(self._depths)
        if id(value) in self._depths:
            self._num_cycles += 1
            return f"cycle {depth - self._depths[id(value)]}".encode()
        num_cycles = self._num_cycles
        self._depths[id(value)] = depth
        try:
            digest = self._compound(value)
        finally:
            del self._depths[id(value)]
        if self._num_cycles == num_cycles:  # otherwise it depends on where the reading began
            self._known[id(value)] = (digest, value)
        return digest

    def _parts(self, kind: str, *parts: Any) -> bytes:
        return _digest(kind, *map(self._form, parts))

    def _compound(self, value: Any) -> bytes:
        kind = type(value)
        jax = sys.modules.get("jax")  # without it there is no array of it
        if jax and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
            array = np.asarray(jax.random.key_data(value) if is_key else value)
            return _digest(f"jax {value.dtype} {value.shape} {getattr(value, 'weak_type', False)}", array.tobytes())
        if kind is np.ndarray or isinstance(value, np.generic):
            header = f"{kind.__name__} {value.dtype!r} {value.shape}"
            return self._parts(header, value.tolist() if value.dtype.hasobject else value.tobytes())
        if hasattr(kind, HOOK):
            return self._parts("hook", getattr(value, HOOK)())
        if kind in (list, tuple):
            return self._parts(kind.__name__, *value)
        if kind in (dict, types.MappingProxyType):
            return self._parts("dict", *value.keys(), *value.values())
        if kind in (set, frozenset):
            return _digest(kind.__name__, *sorted(map(self._form, value)))
        if isinstance(value, types.ModuleType):
            return self._modules.reach(value.__name__).encode()
        if kind is types.CodeType:
            return self._code(value)
        if str(getattr(value, "__module__", "")).partition(".")[0] in CHECKERS and hasattr(value, "__wrapped__"):
            return self._form(value.__wrapped__)
        if _library_name(value):
            return _digest("library", _library_name(value).encode())
        if kind is types.FunctionType:
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind in (property, functools.cached_property):
            return self._parts("property", *(getattr(value, name, None) for name in ("fget", "fset", "fdel", "func")))
        if hasattr(value, "__wrapped__"):  # of `jax.jit`, `functools.cache` and `staticmethod`
            options = getattr(getattr(value, "_jit_info", None), "compiler_options_kvs", None)
            return self._parts("wrapper", kind, value.__wrapped__, options)
        return self._instance(value)

    def _reach(self, module: str) -> str:
        """Return a digest of the files that a module reaches, or "" for a notebook or a script."""
        return self._modules.reach(module) if has_file(module) else ""

    def _function(self, function: types.FunctionType) -> bytes:
        home = str(function.__globals__.get("__name__"))
        is_own = home.partition(".")[0] == PACKAGE
        code: Any = function.__code__
        named: list[Any] = []
        if library_of(home):  # such as `jax.grad` of a function, which is in its cells
            code = None
        elif not is_own:
            named = self._globals(code, function.__globals__, has_file(home))
        elif _attribute(sys.modules.get(home), function.__qualname__) is function:
            code = None  # no other function of its module has this name
        cells = [_content(cell) for cell in function.__closure__ or ()]
        attributes = {name: value for name, value in vars(function).items() if name not in DECLARATIVE}
        values = (named, function.__defaults__, function.__kwdefaults__, cells, attributes)
        return self._parts("function", function.__qualname__, code, self._reach(home), values)

    def _code(self, code: types.CodeType) -> bytes:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return self._parts("code", code.co_code, code.co_exceptiontable, code.co_consts, counts, names)

    def _globals(self, code: types.CodeType, namespace: dict[str, Any], is_in_file: bool) -> list[Any]:
        """Return the values of the globals that a function names. Raises: InvalidValueError."""
        values = [namespace[name] for name in code.co_names if name in namespace]
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                values += self._globals(constant, namespace, is_in_file)
        if is_in_file:
            return values
        for name in LOADERS.intersection(code.co_names):
            raise InvalidValueError(
                f"{name} loads code by a name that is only known when it runs, so that results have no key. Use "
                "`import`, or put the function into a file that is imported."
            )
        imports = [step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"]
        return values + [self._modules.reach(name) for name in imports]

    def _class(self, kind: type) -> bytes:
        home = kind.__module__
        members = sorted(vars(kind).items())
        if library_of(home) or (home.partition(".")[0] == PACKAGE and "<locals>" not in kind.__qualname__):
            members = []
        members = [
            member for member in members if member[0] not in DECLARATIVE and not inspect.ismemberdescriptor(member[1])
        ]
        return self._parts("class", kind.__qualname__, self._reach(home), kind.__bases__, members)

    def _instance(self, value: Any) -> bytes:
        kind = type(value)
        try:
            if kind is object:
                raise TypeError("it has no attributes")
            reduce = copyreg.dispatch_table.get(kind)
            reduced: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as failure:
            raise InvalidValueError(
                f"a value of type {kind.__module__}.{kind.__qualname__} has no key ({described(failure)}), so that "
                "results which depend on it cannot be found again. Pass numbers, arrays or functions in its place."
            ) from failure
        if isinstance(reduced, str):
            return self._parts("global", kind, reduced)
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        states = [_lasting(kind, part) for part in (state if isinstance(state, tuple) else (state,))]
        return self._parts("instance", kind, make, arguments, states, [*(items or ())], [*(pairs or ())])


def _digest(kind: str, *parts: bytes) -> bytes:
    lengths = " ".join([str(len(part)) for part in parts])
    return hashlib.sha256(b"".join([f"{kind}:{lengths}:".encode(), *parts])).digest()


def _library_name(value: Any) -> str:
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or not library_of(home):
        return ""
    for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None)):
        if _attribute(sys.modules.get(home), str(name)) is value:
            return f"{library_of(home)} {home} {name}"
    return ""


def _attribute(module: types.ModuleType | None, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ("an empty cell",)


def _lasting(kind: type, state: Any) -> Any:
    """Return an instance's attributes without those of `functools.cached_property`."""
    if not isinstance(state, dict):
        return state
    is_kept_for_speed = {name: isinstance(getattr(kind, name, None), functools.cached_property) for name in state}
    return {name: part for name, part in state.items() if not is_kept_for_speed[name]} or None
