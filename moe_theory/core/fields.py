"""Comments next to a class's fields, such as the paper's symbol for a field."""

import ast
import inspect
import itertools
import re
import textwrap
import unicodedata
from typing import NamedTuple

_GREEK = "alpha|beta|gamma|delta|epsilon|eta|theta|kappa|lambda|mu|nu|rho|sigma|tau|phi|chi|psi|omega|Gamma|Theta|Delta"
_INDEX = r"(?:_\w+)?(?:\^[a-z]+)?"
_SYMBOL = re.compile(rf"((?:{_GREEK}|[A-Za-z]){_INDEX})(?= of |[,;:]| \(|$)")
_MENTIONED = re.compile(rf"(?<![\w'{{])((?:{_GREEK}){_INDEX}|[A-Zb-z](?:_\w+(?:\^[a-z]+)?)?)(?![\w'])")
_COMMENT = re.compile(r"\s#\s+(?!pyright:)(.*?)(?:\s+# pyright:.*)?$")


class Field(NamedTuple):
    name: str
    annotation: str
    comment: str  # the comment beside it; empty without one


def fields_of(cls: type) -> list[Field]:
    """Return the annotated public fields of a class, in order, or none without its source.

    Examples:
        >>> from moe_theory import continual
        >>> from moe_theory.core.fields import fields_of
        >>> fields_of(continual.Pool)[0]
        Field(name='truths', annotation="Float[Numbers, 'N d']", comment='ground truths w_n')
    """
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # of a class that an interpreter or a notebook has read and not kept
        return []
    lines = source.splitlines()
    definition = ast.parse(source).body[0]
    fields = [node for node in ast.iter_child_nodes(definition) if isinstance(node, ast.AnnAssign)]
    named = [(node, node.target.id) for node in fields if isinstance(node.target, ast.Name)]
    return [
        Field(name, ast.unparse(node.annotation), _comment(lines, node))
        for node, name in named
        if not name.startswith("_")
    ]


def named_by(symbol: str, cls: type) -> list[Field]:
    """Return the fields that a paper's symbol stands for, such as sigma_0, σ₀ or \\sigma_0.

    These are the `fields_beside` whose comment begins with the symbol, or else all whose comment contains it.

    Examples:
        >>> from moe_theory import continual
        >>> from moe_theory.core.fields import named_by
        >>> [field.name for field in named_by("σ₀", continual.Params)]
        ['truth_scale']
    """
    fields = fields_beside(cls)
    letters = _letters(symbol)
    found = [field for field in fields if begins_with(symbol, field)]
    if found:
        return found[:1]
    said = ((field, map(_letters, _MENTIONED.findall(field.comment))) for field in fields)
    return [field for field, symbols in said if letters in symbols]


def begins_with(symbol: str, field: Field) -> bool:
    head = _SYMBOL.match(field.comment)
    return head is not None and _letters(head[1]) == _letters(symbol)


def _comment(lines: list[str], field: ast.AnnAssign) -> str:
    behind = _COMMENT.search(lines[(field.end_lineno or field.lineno) - 1])
    if behind:
        return behind[1]
    above = itertools.takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[: field.lineno - 1]))
    return " ".join(reversed([line.strip("# ") for line in above]))


def fields_beside(cls: type) -> list[Field]:
    """Return the fields of a class, and of the `Params` and `Dims` in the same module."""
    beside = vars(inspect.getmodule(cls))
    classes = dict.fromkeys([cls, *(beside[name] for name in ("Params", "Dims") if name in beside)])
    return list(itertools.chain.from_iterable(map(fields_of, classes)))


def _letters(symbol: str) -> str:
    r"""Return a symbol without typesetting: sigma0 for σ₀, \sigma_{0} and sigma_0."""
    spelt = "".join(_spelt(letter) for letter in unicodedata.normalize("NFKC", symbol))
    return re.sub(r"[_\\\\{}$^ ]", "", spelt)


def _spelt(letter: str) -> str:
    name = unicodedata.name(letter, "").split()
    if name[:1] != ["GREEK"]:
        return letter
    word = name[-1].replace("LAMDA", "LAMBDA").lower()
    if "CAPITAL" in name:
        return word.capitalize()
    return word
