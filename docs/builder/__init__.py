"""What makes the site's generated pages. Each module has one kind of page, and yields `Page`s."""

import dataclasses
import re
from collections.abc import Mapping

_SOURCE = re.compile(r'<details class="mkdocstrings-source">.*?</details>', re.DOTALL)
_SLOT = re.compile(r"<!-- block (\S+) -->.*?<!-- end -->", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Page:
    """One generated page."""

    path: str  # below the site's pages, such as "papers/edge.md"
    text: str  # Markdown, with `slot(name)` where a block goes
    blocks: Mapping[str, str] = dataclasses.field(default_factory=dict)  # HTML that Markdown does not touch, by name


def slot(name: str, words: str = "") -> str:
    """What stands for a block in a page's Markdown: the words of it that the search is to find."""
    return f"<!-- block {name} -->\n\n{plain(words)}\n\n<!-- end -->"


def filled(html: str, blocks: Mapping[str, str]) -> str:
    """A page's HTML with its blocks in their slots. Raises: KeyError for a slot without a block."""
    return _SLOT.sub(lambda found: blocks[found.group(1)], html)


def without_sources(html: str) -> tuple[str, dict[str, str]]:
    """A page's HTML with slots for the source code that mkdocstrings puts into it, and that code by slot."""
    blocks: dict[str, str] = {}

    def kept(found: re.Match[str]) -> str:
        blocks[name := f"source-{len(blocks)}"] = found[0]
        return f"<!-- block {name} --><!-- end -->"

    return _SOURCE.sub(kept, html), blocks


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_>\[\]{}#])", r"\\\1", text).replace("<", "&lt;")
