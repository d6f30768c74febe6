"""Every figure of the repository with its numbers, its command and the claims that it bears on.

`entries()` is what the site lists. Titles and captions are those that the pictures carry in their descriptions.
"""

import dataclasses
import fnmatch
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from moe_theory.core.papers import all_papers

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "figures"

# Pictures of no paper, which stand at the end, by folder and name, with their commands.
_OTHERS: dict[tuple[str, str], str] = {
    ("sweep", "example"): "moe-theory sweep show runs/example --picture figures/sweep/example.svg",
    ("bench", "peers"): "make bench",
    ("bench", "scaling"): "make bench",
}
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One figure, as it lies in `figures/` where it has been drawn there."""

    paper: str  # or the folder, of a figure of no paper
    name: str
    title: str
    caption: str  # what the picture says of itself, without its command
    svg: Path | None  # from the repository's root, as all paths here; None where it is not drawn there
    csv: Path | None  # the numbers behind it
    command: str  # draws it
    claims: tuple[str, ...]  # globs over ids

    def claim_ids(self, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that the figure bears on, in their order."""
        return [id for id in ids if any(fnmatch.fnmatchcase(id, glob) for glob in self.claims)]


def entries() -> list[Entry]:
    """The papers' figures in their order, drawn or not, then the pictures of no paper that are drawn."""
    return list(_entries())


def _entries() -> Iterator[Entry]:
    for paper in all_papers().values():
        for name, figure in paper.import_figures().items():
            about = figure.title, figure.summary, f"moe-theory figures {paper.name} {name}", figure.claims
            yield _entry(paper.name, name, *about)
    for (folder, name), command in _OTHERS.items():
        if (FIGURES / folder / f"{name}.svg").is_file():
            yield _entry(folder, name, name, "", command)


def _entry(folder: str, name: str, title: str, caption: str, command: str, claims: tuple[str, ...] = ()) -> Entry:
    paths = (Path("figures") / folder / f"{name}.{suffix}" for suffix in ("svg", "csv"))
    svg, csv = (path if (ROOT / path).is_file() else None for path in paths)
    if svg is not None:
        title, caption = _words(ROOT / svg)
    return Entry(folder, name, title, caption, svg, csv, command, claims)


def _words(svg: Path) -> tuple[str, str]:
    """The title and the caption in a picture's metadata."""
    found: dict[str, str] = {}
    for _, element in ElementTree.iterparse(svg):  # metadata comes first, so little of a long file is read
        if element.tag.startswith(_DUBLIN_CORE) and element.text:
            found.setdefault(element.tag.removeprefix(_DUBLIN_CORE), element.text.strip())
        if element.tag.endswith("}metadata"):
            break
    title = found.get("title") or svg.stem
    caption = re.sub(r"\n?moe-theory .*$", "", found.get("description", ""))
    return title, "" if caption == title else caption
