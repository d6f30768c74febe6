"""Pickles of arrays, read without running anything that they name.

A pickle is a program: loading it calls what it names. Here two gates stand before that. Its instructions must be those
that arrays, numbers, strings and plain containers need, and few; and the few functions that NumPy's pickles name are
replaced by own ones that do nothing but keep bytes, so that not even NumPy's code sees what the file says.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.errors import DamagedDataError, shortened
from moe_theory.deep.datasets.files import read_bounded

_INSTRUCTIONS = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINSTRING SHORT_BINSTRING BINBYTES "
    "SHORT_BINBYTES BINUNICODE SHORT_BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS EMPTY_TUPLE "
    "TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD".split()
)
_MAX_INSTRUCTIONS = 1_000_000  # CIFAR-100 needs half of them, written by the most verbose protocol
_ARRAYS = ("numpy.core.multiarray", "numpy._core.multiarray")  # before and since NumPy 2
_WAY_OUT = "Nothing of it was run. Get it again from where it was published, or use the binary version."


def read_pickle(path: Path, max_bytes: int) -> dict[str, Any]:
    """The dictionary in a pickle, with arrays of bytes as NumPy's; keys that are byte strings become strings.

    Raises: DamagedDataError for anything else, and for what names a function or class besides those of an array.
    """
    data = read_bounded(path, max_bytes)
    _check_instructions(path, data)
    try:
        loaded = _ArraysOnly(path, data).load()
    except DamagedDataError:
        raise
    except Exception as failure:  # a damaged pickle makes its reader raise almost anything
        raise DamagedDataError(path, f"it cannot be unpickled ({_brief(failure)})", _WAY_OUT) from None
    if type(loaded) is not dict:
        raise DamagedDataError(path, f"it holds a {type(loaded).__name__}, and a dictionary is expected", _WAY_OUT)
    if not all(isinstance(key, str | bytes) for key in loaded):
        raise DamagedDataError(path, "its dictionary has keys that are no strings", _WAY_OUT)
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in loaded.items()}


def _check_instructions(path: Path, data: bytes) -> None:
    """Raises: DamagedDataError where the program is not one that only builds arrays and plain containers."""
    end = 0
    try:
        for count, (code, argument, position) in enumerate(pickletools.genops(data)):
            if code.name not in _INSTRUCTIONS:
                reason = f"its instruction {code.name} at byte {position} is none that arrays and plain containers need"
                raise DamagedDataError(path, reason, _WAY_OUT)
            # The reader makes room for as many objects as the number says under which one is to be kept.
            if count >= _MAX_INSTRUCTIONS or (code.name == "LONG_BINPUT" and int(argument or 0) > count):
                reason = f"its instructions at byte {position} ask for more memory than arrays and lists need"
                raise DamagedDataError(path, reason, _WAY_OUT)
            end = position or 0
    except DamagedDataError:
        raise
    except ValueError as failure:
        raise DamagedDataError(path, f"it is no whole pickle ({_brief(failure)})", _WAY_OUT) from None
    if end + 1 != len(data):
        raise DamagedDataError(path, f"it goes on for {len(data) - end - 1:,} bytes after its end", _WAY_OUT)


class _ArraysOnly(pickle.Unpickler):
    def __init__(self, path: Path, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self._path = path
        self._num_encoded = len(data)  # characters that may be: one string may be encoded again and again

    def find_class(self, module: str, name: str, /) -> Any:
        """What is called in place of a global that an array needs."""
        if name == "_reconstruct" and module in _ARRAYS:
            return _Callable(lambda *_: _Array())
        if (module, name) == ("numpy", "ndarray"):
            return _NDARRAY
        if (module, name) == ("numpy", "dtype"):
            return _Callable(_Type)
        if (module, name) == ("_codecs", "encode"):
            return _Callable(self._encode)
        reason = f"it names {shortened(f'{module}.{name}')}, which no array and no plain container needs"
        raise DamagedDataError(self._path, reason, _WAY_OUT)

    def _encode(self, text: str, encoding: str) -> bytes:
        """Byte strings, as Python 3 writes them for Python 2."""
        self._num_encoded -= len(text)
        if type(text) is not str or encoding != "latin1" or self._num_encoded < 0:
            raise pickle.UnpicklingError("strings are encoded in a way that byte strings do not need")
        return text.encode("latin1")


class _Inert:
    """Takes no state from a pickle and lets it set no attribute."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a state is set where arrays have none")


class _Callable(_Inert):
    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


_NDARRAY = _Inert()


class _Type(_Inert):
    """In the place of a `numpy.dtype`."""

    __slots__ = ("name",)

    def __init__(self, name: str | bytes, *_: Any) -> None:
        self.name = _text(name) if isinstance(name, str | bytes) else "no type"

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment, which bytes do not have."""


class _Array(_Inert):
    """In the place of a `numpy.ndarray`."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, data = state
        if not isinstance(kind, _Type) or kind.name not in ("u1", "|u1", "uint8"):
            other = kind.name if isinstance(kind, _Type) else kind
            raise pickle.UnpicklingError(f"an array of {shortened(other)}, where bytes (u1) are expected")
        is_shape = type(shape) is tuple and len(shape) <= 4 and all(type(size) is int and size >= 0 for size in shape)
        if not is_shape or type(data) is not bytes or math.prod(shape) != len(data):
            size = f"{len(data):,} bytes" if type(data) is bytes else shortened(data)
            raise pickle.UnpicklingError(f"an array of shape {shortened(shape)} with {size}")
        self.array = np.frombuffer(data, np.uint8).reshape(shape, order="F" if is_fortran else "C")


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _brief(failure: Exception) -> str:
    text = " ".join(str(failure).split()) or type(failure).__name__
    return text if len(text) <= 100 else shortened(text)
