"""Comments on a class's fields, such as the paper's symbol for a field."""

import ast
import inspect
import itertools
import re
import textwrap
from typing import NamedTuple

_SYMBOL = re.compile(r"(\w+(?:\^[a-z]+)?)(?= of |[,;:]| \(|$)")  # the start of a comment such as "eta of (9)"
_COMMENT = re.compile(r"\s#\s+(?!pyright:)(.*?)(?:\s+# pyright:.*)?$")


class Field(NamedTuple):
    name: str
    comment: str  # comment on the field, or an empty text


def fields_of(cls: type) -> list[Field]:
    """Return the annotated public fields of a class in order, or an empty list if its source is missing."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # the class was defined in an interpreter or a notebook
        return []
    lines = source.splitlines()
    definition = ast.parse(source).body[0]
    fields = [node for node in ast.iter_child_nodes(definition) if isinstance(node, ast.AnnAssign)]
    named = [(node, node.target.id) for node in fields if isinstance(node.target, ast.Name)]
    return [Field(name, _comment(lines, node)) for node, name in named if not name.startswith("_")]


def named_by(symbol: str, cls: type) -> str:
    """Return the name of the field for a paper's symbol such as sigma_0, or "" if there is none."""
    for field in fields_beside(cls):
        head = _SYMBOL.match(field.comment)
        if head is not None and head[1] == symbol:
            return field.name
    return ""


def fields_beside(cls: type) -> list[Field]:
    """Return the fields of a class, and of `Params` and `Dims` in its module."""
    members = vars(inspect.getmodule(cls))
    classes = dict.fromkeys([cls, *(members[name] for name in ("Params", "Dims") if name in members)])
    return list(itertools.chain.from_iterable(map(fields_of, classes)))


def _comment(lines: list[str], field: ast.AnnAssign) -> str:
    trailing = _COMMENT.search(lines[(field.end_lineno or field.lineno) - 1])
    if trailing:
        return trailing[1]
    lines_above = itertools.takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[: field.lineno - 1]))
    return " ".join(reversed([line.strip("# ") for line in lines_above]))
