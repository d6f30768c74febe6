"""Systems made of parts, such as a router or a delay distribution, and copies with other parts."""

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from moe_theory.core.errors import DeclarationError
from moe_theory.core.system import System

Builder = TypeVar("Builder", bound=Callable[..., System])


class _Origin(NamedTuple):
    build: Callable[..., System]
    init: Callable[..., Any]  # the system's `init`, because a system with the same step may start differently
    sizes: tuple[Any, ...]
    parts: Mapping[str, Any]  # parts of this system, by name
    printed_parts: Mapping[str, Any]  # the paper's own parts, by name
    replaceable: Sequence[str]  # names of parts that can be replaced


_ORIGINS: weakref.WeakKeyDictionary[Callable[..., Any], _Origin] = weakref.WeakKeyDictionary()  # keys are steps


def of_parts(*, like: Callable[..., System] | None = None, only: Sequence[str] | None = None) -> Any:
    """Decorate a function that builds a system from sizes and parts, so that `rebuilt` can replace parts.

    Parts are the arguments with defaults. Equal arguments give the same system.

    Args:
        like: another builder, to which the decorated one passes its keywords. By default the decorated one itself.
        only: the parts that can be replaced, by default all.
    """

    def decorate(builder: Builder) -> Builder:
        arguments = inspect.signature(like or builder).parameters.values()
        parts = {argument.name: argument.default for argument in arguments if argument.default is not argument.empty}
        replaceable = tuple(parts) if only is None else only

        @functools.lru_cache
        @functools.wraps(builder)
        def build(*sizes: Any, **keywords: Any) -> System:
            system = builder(*sizes, **keywords)
            bound = inspect.signature(builder).bind(*sizes, **keywords)
            values = {**bound.arguments, **bound.kwargs}  # `kwargs` has parts that a builder takes as **keywords
            own_parts = {name: part for name, part in values.items() if name in parts}
            positional = zip(bound.arguments, bound.args, strict=False)  # ends before keyword-only arguments
            own_sizes = tuple(size for name, size in positional if name not in parts)
            origin = _Origin(build, system.init, own_sizes, own_parts, printed_parts=parts, replaceable=replaceable)
            _ORIGINS[system.step] = origin
            return system

        return build  # pyright: ignore[reportReturnType]

    return decorate


def parts_of(system: System) -> Mapping[str, Any]:
    """Return the paper's own parts by name, or an empty mapping for a system that was not built of parts."""
    origin = _origin(system)
    return {} if origin is None else origin.printed_parts


def rebuilt(system: System, parts: Mapping[str, Any]) -> System:
    """Return the system with other parts. Raises: DeclarationError with the reason if that is impossible."""
    origin = _origin(system)
    if origin is None:
        raise DeclarationError("its system contains more than the paper's algorithm")
    replaced = [name for name, part in origin.parts.items() if part is not origin.printed_parts[name]]
    if replaced:
        raise DeclarationError(f"its system already replaces the {' and the '.join(replaced)}")
    for name in parts:
        if name not in origin.printed_parts:
            raise DeclarationError(f"its algorithm has no {name}")
        if name not in origin.replaceable:
            raise DeclarationError(f"its diagnostics are only for the printed {name}")
    return origin.build(*origin.sizes, **{**origin.parts, **parts})


def _origin(system: System) -> _Origin | None:
    if isinstance(system.step, types.FunctionType):
        origin = _ORIGINS.get(system.step)
        if origin is not None and origin.init is system.init:
            return origin
    return None
