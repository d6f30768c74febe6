"""Docstrings as mkdocstrings can read them: this project writes short sections in one line each, and fields' meanings
as comments beside them."""

import importlib
import re
from typing import Any

import griffe

from moe_theory.core.fields import attributes

_SECTION = re.compile(r"(Source|Returns?|Raises|Yields|Args|Example): +(?=\S)")
_INSIDE = re.compile(r"(?<=[.!)\"]) +(?=(?:Source|Returns|Raises): )")
_SHARED_ITEM = re.compile(r"(    )(\w+(?:, \w+)+)(: )")


class Readable(griffe.Extension):
    """Rewrites docstrings before they are parsed, and gives classes a table of their fields."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make paragraphs of sections that begin in a line of text, and one item of each of several that share one."""
        if obj.docstring is not None:
            obj.docstring.value = separated(in_paragraphs(obj.docstring.value))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add the fields to the docstring of a class whose fields say by comments what they are."""
        found = attributes(getattr(importlib.import_module(cls.module.path), cls.name, object))
        if found and cls.docstring is not None:
            cls.docstring.value += f"\n\n{found}"


def in_paragraphs(text: str) -> str:
    """The docstring with each section that begins and goes on in a line of text as a paragraph with a bold word."""
    lines: list[str] = []
    is_inside = False
    for line in _INSIDE.sub("\n", text).split("\n"):
        if _SECTION.match(line):
            is_inside = True
            lines += ["", _SECTION.sub(r"**\1:** ", line)]
        elif is_inside and line.startswith("    "):
            lines.append(line.strip())
        else:
            if is_inside and line.strip():
                lines.append("")
            is_inside = False
            lines.append(line)
    return "\n".join(lines)


def separated(text: str) -> str:
    """The docstring with items that describe several arguments at once written out for each of them."""
    lines: list[str] = []
    rest = text.split("\n")
    while rest:
        line = rest.pop(0)
        shared = _SHARED_ITEM.match(line)
        if shared is None:
            lines.append(line)
            continue
        more = []
        while rest and rest[0].startswith("     "):
            more.append(rest.pop(0))
        for name in shared.group(2).split(", "):
            lines += [f"    {name}: {line[shared.end() :]}", *more]
    return "\n".join(lines)
