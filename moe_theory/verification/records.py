"""Dataclasses in JSON. Pydantic reads them, and errors have one line."""

import functools
import math
import re
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetPydanticSchema, Strict, TypeAdapter, ValidationError
from pydantic_core import core_schema

from moe_theory.core.errors import DamagedError, shortened

T = TypeVar("T")
LARGEST = 2**63 - 1  # the largest count or seed
_FIELD = re.compile(r"[A-Za-z_]\w{,40}", re.ASCII)  # names of fields, unlike indices and odd keys


def nan_for_null(value: float | None) -> float:
    return math.nan if value is None else value


_NULLABLE = core_schema.nullable_schema(core_schema.float_schema(strict=True, allow_inf_nan=False))
_NUMBER = core_schema.no_info_after_validator_function(nan_for_null, _NULLABLE)
Flag = Annotated[bool, Strict()]
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Number = Annotated[float, GetPydanticSchema(lambda source, handler: _NUMBER)]


class JsonRecord:
    """A dataclass whose JSON has all fields, including defaults."""

    LATER: ClassVar[tuple[str, ...]] = ()  # fields that older documents lack

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Return the record that `to_json` wrote. Raises: DamagedError for other data."""
        return read_record(cls, document)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        schema: Any = handler.resolve_ref_schema(handler(source))
        for field in schema["schema"]["fields"]:
            if field["schema"]["type"] == "default" and field["name"] not in cls.LATER:
                field["schema"] = field["schema"]["schema"]  # without its default, so that it is required
        return schema


def read_record(kind: type[T], document: Any) -> T:
    """Return the dataclass in a JSON document. Raises: DamagedError, which names the field."""
    try:
        return _adapter(kind).validate_python(document)
    except ValidationError as failure:
        error = failure.errors(include_url=False)[0]
    where = ""  # a place such as curve.labels[2]
    for part in error["loc"]:
        where += f".{part}" if _FIELD.fullmatch(str(part)) else f"[{shortened(part)}]"
    where = where.removeprefix(".")
    if error["type"] == "missing":
        raise DamagedError(f"{where} is missing")
    bound = re.sub(r"^\w+ should", "must", error["msg"])
    bound = bound.replace("a valid integer", "a whole number").replace("a valid", "a")
    raise DamagedError(f"{where or 'the document'}={shortened(error['input'])} {bound}")


_adapter = functools.cache(TypeAdapter)  # it takes long to make
