"""The gallery: every figure with its command, its numbers and the claims that it bears on."""

import html
from itertools import groupby

import gallery

from builder import Page, papers, slot
from moe_theory.core.papers import find_paper, paper_names

PATH = "gallery.md"
_HEADINGS = {"verify": "The engine on planted claims", "sweep": "A sweep", "bench": "Speed"}
_INTRODUCTION = """---
hide: [navigation]
---
# Gallery

Every figure is drawn by a command, has the numbers behind it as CSV, and bears on claims whose verdicts stand on the
papers' pages. A click on a picture opens it alone.
"""


def page() -> Page:
    """The page with all figures."""
    lines, blocks = [_INTRODUCTION], {}
    for folder, entries in groupby(gallery.entries(), key=lambda entry: entry.paper):
        title = _HEADINGS.get(folder) or find_paper(folder).title
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        for entry in entries:
            anchor = f"{folder}-{entry.name}"
            lines += [f"### {entry.title} {{ #{anchor} }}", "", slot(anchor), ""]
            blocks[anchor] = _figure(entry)
    return Page(PATH, "\n".join(lines), blocks)


def _figure(entry: gallery.Entry) -> str:
    title = html.escape(entry.title, quote=True)
    drawn = f'<a href="{entry.svg}"><img src="{entry.svg}" alt="{title}" loading="lazy"></a>'
    parts = [drawn if entry.svg else "<p>Not drawn in this repository; the command draws it.</p>", "<div>"]
    if entry.caption:
        parts.append(f"<p>{html.escape(entry.caption)}</p>")
    parts.append(f'<pre class="mt-command" tabindex="0"><code>{html.escape(entry.command)}</code></pre>')
    if entry.csv is not None:
        parts.append(f'<p><a href="{entry.csv}">The numbers behind it, as CSV</a></p>')
    ids = entry.claim_ids(list(papers.every_claim()))
    if ids:
        links = ", ".join(f'<a href="{papers.page_of(id)}.html#{id}"><code>{id}</code></a>' for id in ids)
        paper = (
            f'<a href="{papers.FOLDER}/{entry.paper}.html">{entry.paper}</a>' if entry.paper in paper_names() else ""
        )
        noun = "claim" if len(ids) == 1 else "claims"
        parts.append(f"<details><summary>{len(ids)} {noun} of {paper}</summary><p>{links}</p></details>")
    return f'<div class="mt-figure">{"".join(parts)}</div></div>'
