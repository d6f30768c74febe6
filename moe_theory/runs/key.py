"""The key of a result, which is a digest of the values and code that decide it.

The digest reads the pickles of values, the type, shape and bytes of arrays, and the names and versions of libraries.
For a function or class it reads all files that its module imports (`runs.imports`). For a function outside this package
it also reads the globals that the function names.
"""

import copy
import dis
import functools
import hashlib
import inspect
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidValueError, described
from moe_theory.runs.imports import IMPORTERS, PACKAGE, Modules, has_file, library_of

# Attributes that do not influence results.
DECLARATIVE = frozenset(
    "__doc__ __module__ __qualname__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dict__ "
    "__weakref__ __firstlineno__ __static_attributes__ __orig_bases__ __parameters__ __type_params__ "
    "__classdictcell__ __slotnames__ _abc_impl".split()
)
PLAIN = frozenset({str, bytes, bool, int, float, complex, type(None), list, tuple, dict})  # pickled directly
CHECKERS = ("jaxtyping", "beartype")  # libraries whose wrappers only check calls
HOOK = "__fingerprint__"  # a method that returns what to digest in place of the class and attributes
LOADERS = IMPORTERS | {"eval", "exec", "run_path", "run_module", "spec_from_file_location"}


def code_digest(*objects: Any) -> str:
    """Return a digest of objects, by imported code for functions and classes, and by value for others."""
    return Digests().of(*objects)


class _Pickler(pickle.Pickler):
    """A pickler that writes equal bytes for equal values. A value must not contain itself."""

    def __init__(self, file: io.BytesIO, name_of: Callable[[Any], bytes | None]) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # no references to earlier objects, because equal values may differ in them
        self._name_of = name_of

    def persistent_id(self, obj: Any) -> bytes | None:
        return self._name_of(obj)

    def reducer_override(self, obj: Any) -> Any:
        """Leave out the values of cached properties, which an equal object may not have computed."""
        kind = type(obj)
        attributes = getattr(obj, "__dict__", {})
        cached = [name for name in attributes if isinstance(getattr(kind, name, None), functools.cached_property)]
        if not cached:
            return NotImplemented  # pickle as usual
        uncached = copy.copy(obj)
        for name in cached:
            del vars(uncached)[name]
        return uncached.__reduce_ex__(5)


class Digests:
    """Digests that read each file only once, so that later changes do not count."""

    def __init__(self) -> None:
        self._modules = Modules()
        self._names: dict[int, tuple[bytes, Any]] = {}  # by `id`, an object's digest and the object, which stays alive

    def of(self, *objects: Any) -> str:
        self._names = {}  # names from other calls may belong to cycles
        try:
            return self._digest(objects).hex()
        except InvalidValueError:
            raise
        except Exception as failure:
            raise InvalidValueError(
                f"a value has no key ({described(failure)}), so results that depend on it cannot be saved and found "
                "again. Pass numbers, arrays or functions in its place."
            ) from failure

    def _digest(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self._name).dump(value)
        return hashlib.sha256(file.getvalue()).digest()

    def _name(self, value: Any) -> bytes | None:
        """Return the digest of code or an array, or None for a value that is pickled."""
        number = id(value)
        if type(value) in PLAIN:
            return None
        if number not in self._names:
            self._names[number] = (b"cycle %d" % len(self._names), value)  # for a value that contains itself
            parts = self._parts(value)
            if parts is None:
                del self._names[number]
                return None
            self._names[number] = (self._digest(parts), value)
        return self._names[number][0]

    def _parts(self, value: Any) -> tuple[Any, ...] | None:
        """Return the parts of code or an array that count, or None for another value."""
        kind = type(value)
        jax = sys.modules.get("jax")  # before its import it has no arrays
        if jax and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
            array = np.asarray(jax.random.key_data(value) if is_key else value)
            return "jax", str(value.dtype), value.shape, getattr(value, "weak_type", False), array.tobytes()
        if kind is np.ndarray:
            data = value.tolist() if value.dtype.hasobject else value.tobytes()
            return "array", repr(value.dtype), value.shape, data
        if hasattr(kind, HOOK):
            return "hook", getattr(value, HOOK)()
        if kind is types.MappingProxyType:
            return "mapping", dict(value)
        if kind in (set, frozenset):
            return kind.__name__, sorted(self._digest(member) for member in value)
        if isinstance(value, types.ModuleType):
            return "module", self._modules.digest_with_imports(value.__name__)
        if kind is types.CodeType:
            counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
            return "code", value.co_code, value.co_exceptiontable, value.co_consts, counts, names
        if str(getattr(value, "__module__", "")).partition(".")[0] in CHECKERS and hasattr(value, "__wrapped__"):
            return "checked", value.__wrapped__
        if _library_name(value):
            return "library", _library_name(value)
        if kind is types.FunctionType:
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind in (property, functools.cached_property):
            functions = [getattr(value, name, None) for name in ("fget", "fset", "fdel", "func")]
            return "property", *functions
        if hasattr(value, "__wrapped__"):  # such as `jax.jit`, `functools.cache` and `staticmethod`
            # JAX has no public name for a function's compiler options.
            options = getattr(getattr(value, "_jit_info", None), "compiler_options_kvs", None)
            return "wrapper", kind, value.__wrapped__, options
        if kind is object:
            raise InvalidValueError("an object() has no attributes to make a key of. Pass a number or a text.")
        return None

    def _module_digest(self, module: str) -> str:
        """Return the digest of a module and its imports, or "" for a notebook or script."""
        return self._modules.digest_with_imports(module) if has_file(module) else ""

    def _function(self, function: types.FunctionType) -> tuple[Any, ...]:
        module = str(function.__globals__.get("__name__"))
        is_own = module.partition(".")[0] == PACKAGE
        code: Any = function.__code__
        globals_named: list[Any] = []
        if library_of(module):  # such as `jax.grad`, whose function is in the cells
            code = None
        elif not is_own:
            globals_named = self._globals(code, function.__globals__, has_file(module))
        elif _attribute(sys.modules.get(module), function.__qualname__) is function:
            code = None  # no other function in the module has this name
        cells = [_content(cell) for cell in function.__closure__ or ()]
        attributes = {name: value for name, value in vars(function).items() if name not in DECLARATIVE}
        values = (globals_named, function.__defaults__, function.__kwdefaults__, cells, attributes)
        return "function", function.__qualname__, code, self._module_digest(module), values

    def _globals(self, code: types.CodeType, namespace: dict[str, Any], is_in_file: bool) -> list[Any]:
        values = [namespace[name] for name in code.co_names if name in namespace]
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                values += self._globals(constant, namespace, is_in_file)
        if is_in_file:
            return values
        loaders = LOADERS.intersection(code.co_names)
        if loaders:
            raise InvalidValueError(
                f"{min(loaders)} loads code whose name is known only at run time, so results have no key. Use "
                "`import`, or put the function into a file that you import."
            )
        imports = [step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"]
        return values + [self._modules.digest_with_imports(name) for name in imports]

    def _class(self, kind: type) -> tuple[Any, ...]:
        module = kind.__module__
        members = []
        is_own = module.partition(".")[0] == PACKAGE and "<locals>" not in kind.__qualname__
        if not is_own and not library_of(module):  # otherwise the module's digest covers the class
            for name, value in sorted(vars(kind).items()):
                if name not in DECLARATIVE and not inspect.ismemberdescriptor(value):
                    members.append((name, value))
        return "class", kind.__qualname__, self._module_digest(module), kind.__bases__, members


def _library_name(value: Any) -> str:
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not library_of(module):
        return ""
    for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None)):
        if _attribute(sys.modules.get(module), str(name)) is value:
            return f"{library_of(module)} {module} {name}"
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
