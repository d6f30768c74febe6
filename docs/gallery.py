"""Figures of the repository with their numbers, their commands and the claims that they bear on, for the site."""

import dataclasses
import fnmatch
import functools
import html
import re
from collections.abc import Sequence
from pathlib import Path

from moe_theory.core.papers import all_papers

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "figures"
_OTHERS = {  # pictures of no paper, by folder and name, with their commands
    ("sweep", "example"): "moe-theory sweep show runs/example --picture figures/sweep/example.svg",
    ("bench", "peers"): "make bench",
    ("bench", "scaling"): "make bench",
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One figure in `figures/`. Title and caption are those that the picture has in its metadata."""

    paper: str  # or the folder, of a figure of no paper
    name: str
    title: str
    caption: str
    svg: Path  # from the repository's root, as all paths here
    csv: Path | None  # the numbers behind it
    command: str  # draws it
    claims: tuple[str, ...]  # globs over ids

    def claim_ids(self, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that the figure bears on, in their order."""
        return [id for id in ids if any(fnmatch.fnmatchcase(id, glob) for glob in self.claims)]


@functools.cache
def entries() -> list[Entry]:
    """Return the figures that are drawn: the papers' in their order, then those of no paper."""
    drawn: list[Entry] = []
    for paper in all_papers().values():
        for name, figure in paper.import_figures().items():
            drawn += _drawn(paper.name, name, f"moe-theory figures {paper.name} {name}", figure.claims)
    for (folder, name), command in _OTHERS.items():
        drawn += _drawn(folder, name, command, ())
    return drawn


def _drawn(folder: str, name: str, command: str, claims: tuple[str, ...]) -> list[Entry]:
    """Return the entry of a figure, if it is drawn."""
    svg = Path("figures", folder, f"{name}.svg")
    csv = svg.with_suffix(".csv") if (FIGURES / folder / f"{name}.csv").is_file() else None
    if not (ROOT / svg).is_file():
        return []
    picture = html.unescape((ROOT / svg).read_text(encoding="utf-8"))
    title = picture.partition("<dc:title>")[2].partition("</dc:title>")[0]
    description = picture.partition("<dc:description>")[2].partition("</dc:description>")[0]
    caption = re.sub(r"\n?moe-theory .*$", "", description).strip()
    return [Entry(folder, name, title, caption, svg, csv, command, claims)]
