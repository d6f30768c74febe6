"""Dataclasses that JSON has: pydantic reads them, and an error says in one line which field is wrong."""

import functools
import math
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from moe_theory.core.errors import DamagedError, shortened

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter

T = TypeVar("T")
LARGEST = 2**63 - 1  # that a count or a seed may be
_FIELD = re.compile(r"[A-Za-z_]\w{,40}", re.ASCII)


class _Schema:
    """What JSON has for a type: a schema of pydantic's, as plain data, because importing pydantic takes .1 s."""

    def __init__(self, **schema: Any) -> None:
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> Any:
        return self._schema


def nan_for_null(value: float | None) -> float:
    """A number of a record, where null is not a number."""
    return math.nan if value is None else value


_FINITE = {"type": "float", "strict": True, "allow_inf_nan": False}
_NAN_FOR_NULL = {"type": "no-info", "function": nan_for_null}
Flag = Annotated[bool, _Schema(type="bool", strict=True)]
Count = Annotated[int, _Schema(type="int", strict=True, ge=0, le=LARGEST)]
Finite = Annotated[float, _Schema(**_FINITE)]
Number = Annotated[
    float, _Schema(type="function-after", function=_NAN_FOR_NULL, schema={"type": "nullable", "schema": _FINITE})
]


class JsonRecord:
    """A dataclass that JSON has with all fields, those with a default too."""

    LATER: ClassVar[tuple[str, ...]] = ()  # fields that older documents lack

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> Any:
        schema: Any = handler.resolve_ref_schema(handler(source))
        for field in schema["schema"]["fields"]:
            if field["schema"]["type"] == "default" and field["name"] not in cls.LATER:
                field["schema"] = field["schema"]["schema"]
        return schema


def read_record(kind: type[T], document: Any) -> T:
    """Return the dataclass that a JSON document has. Raises: DamagedError for anything else, with the field."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(document)
    except ValidationError as failure:
        error = failure.errors(include_url=False)[0]
    names = [str(part) if _FIELD.fullmatch(str(part)) else f"[{shortened(part)}]" for part in error["loc"]]
    where = ".".join(names).replace(".[", "[")
    if error["type"] == "missing":
        raise DamagedError(f"{where} is missing")
    bound = re.sub(r"^\w+ should", "must", error["msg"])
    bound = bound.replace("a valid integer", "a whole number").replace("a valid", "a")
    raise DamagedError(f"{where or 'the document'}={shortened(error['input'])} {bound}")


@functools.cache
def _adapter(kind: type[T]) -> "TypeAdapter[T]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
