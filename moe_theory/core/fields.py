"""Fields that say what they are to `help()` and a notebook's `?`: the comments beside them join the docstring."""

import ast
import inspect
import itertools
import re
import textwrap
from typing import Any, NamedTuple, TypeVar

Class = TypeVar("Class", bound=type)
_COMMENT = re.compile(r"\s#\s+(?!pyright:)(.*?)(?:\s+# pyright:.*)?$")


class Field(NamedTuple):
    """A field as the source of its class has it."""

    name: str
    annotation: str  # without what `Annotated` adds to it
    comment: str  # what the comment beside it says; empty without one
    default: str  # as it is written; empty without one


def fields_of(cls: type) -> list[Field]:
    """The annotated public fields of a class, in their order; none where its source is not to be had.

    Examples:
        >>> from moe_theory import continual
        >>> from moe_theory.core.fields import fields_of
        >>> fields_of(continual.Pool)[0]
        Field(name='truths', annotation="Float[Numbers, 'N d']", comment='ground truths w_n', default='')
    """
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # of a class that an interpreter or a notebook has read and not kept
        return []
    lines, (node,) = source.splitlines(), ast.parse(source).body
    found = []
    for each in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            default = "" if each.value is None else ast.unparse(each.value)
            found.append(Field(each.target.id, _plain(each.annotation), _comment(lines, each), default))
    return found


def attributes(cls: type) -> str:
    """The section of a docstring that describes the fields; empty where none has a comment."""
    found = fields_of(cls)
    if not any(field.comment for field in found):
        return ""
    return "\n".join(["Attributes:", *(_item(field) for field in found)])


def documented(cls: Class) -> Class:
    """Decorates a class whose fields say by comments what they are, so that its docstring says so too."""
    cls.__doc__ = _Docstring(cls.__doc__ or "")  # pyright: ignore[reportAttributeAccessIssue]
    return cls


class _Docstring:
    """A class's docstring with its fields, made when somebody asks: reading sources would slow down imports."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: Any, owner: type) -> str:
        return "\n\n".join(part for part in (inspect.cleandoc(self.text), attributes(owner)) if part)


def _item(field: Field) -> str:
    default = "" if "default_factory" in field.default else field.default
    stop = "." if default and field.comment and not field.comment.endswith(".") else ""
    parts = (f"    {field.name} ({field.annotation}):", f"{field.comment}{stop}", default and f"Default: {default}.")
    return " ".join(part for part in parts if part)


def _comment(lines: list[str], field: ast.AnnAssign) -> str:
    """What stands behind a field, or else on lines of their own above it."""
    behind = _COMMENT.search(lines[(field.end_lineno or field.lineno) - 1])
    if behind:
        return behind[1]
    above = itertools.takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[: field.lineno - 1]))
    return " ".join(reversed([line.strip("# ") for line in above]))


def _plain(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        annotation = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
    return ast.unparse(annotation).replace("[Array, ' ", "[Array, '").replace("[Numbers, ' ", "[Numbers, '")
