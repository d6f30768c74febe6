"""A report's pages, as HTML and as Markdown, from templates.

The HTML page needs nothing but itself: no server, no network, and no JavaScript to be read.
"""

import base64
import functools
import html
import re
import typing
from collections import Counter
from collections.abc import Sequence
from typing import Any

from moe_theory.report import panels, wording
from moe_theory.verify.verdict import Report, Status, Stop, Verdict

if typing.TYPE_CHECKING:
    import jinja2

CSS_INCH = 96  # pixels
FACETS = ("status", "paper", "reading", "kind")  # what the page's verdicts are filtered by


def to_html(report: Report) -> str:
    pictures = {id(verdict): picture for verdict, picture in _pictures(report.verdicts)}
    counts = Counter(verdict.status for verdict in report.verdicts)
    facets = []  # with how many verdicts have each value, statuses in their own order
    for facet in FACETS:
        found = Counter(str(getattr(verdict, facet)) for verdict in report.verdicts)
        order = [status for status in Status if found[status]] if facet == "status" else found
        facets.append((facet, [(str(value), found[value]) for value in order]))
    return _rendered("page.html", report, counts=counts, facets=facets, picture=lambda verdict: pictures[id(verdict)])


def to_markdown(report: Report) -> str:
    """The report as one Markdown page, without pictures: summary, matrix, then each claim with what decided it."""
    return re.sub(r"\n{3,}", "\n\n", _rendered("report.md", report))


def _rendered(template: str, report: Report, **further: Any) -> str:
    chapters = wording.arranged(report)
    shared = {
        "report": report,
        "chapters": chapters,
        "claims": {entry.claim for chapter in chapters for entry in chapter.entries},
        "gist": wording.gist(chapters),
        "cut_short": wording.cut_short(report),
        "error_words": wording.error_words(report),
    }
    return templates().get_template(template).render(**shared, **further)


@functools.cache
def templates() -> "jinja2.Environment":
    """The templates of all pages, with the words and formulas that they share."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("moe_theory.report"),
        autoescape=lambda name: name is None or not name.endswith(".md"),
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names: dict[str, Any] = {
        "Status": Status,
        "MEANINGS": wording.MEANINGS,
        "STOPS": wording.STOPS,
        "ABOUT": (wording.ABOUT_MEANS, wording.ABOUT_INTERVALS, wording.ABOUT_ERROR, wording.ABOUT_POWER),
        "Stop": Stop,
        "WIDTH": panels.WIDTH,
        "claim_anchor": wording.claim_anchor,
        "verdict_anchor": wording.verdict_anchor,
        "facts": wording.facts,
        "headline": wording.headline,
        "kind_words": wording.kind_words,
        "mathml": mathml,
        "number": wording.number,
        "number_line": panels.number_line,
        "repeat_words": wording.repeat_words,
        "status_word": wording.status_word,
        "summary": wording.summary,
    }
    environment.filters.update({"text": _text, "code": _code, "formula": _formula})
    environment.filters["cell"] = lambda words: words.replace("|", r"\|")  # of a table in Markdown
    environment.globals.update(names)
    return environment


def mathml(latex: str) -> str:
    """A formula as MathML; empty for what cannot be converted."""
    from latex2mathml.converter import convert

    try:
        made = convert(latex, display="block")
    except Exception:  # the converter fails with whatever it stumbles over; the page then shows the source
        return ""
    return re.sub(r' xmlns="[^"]*"', "", made)


def _pictures(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, dict[str, str] | None]]:
    pictures = []
    for verdict, svg in zip(verdicts, panels.curve_pictures(verdicts), strict=True):
        if svg is None or verdict.curve is None:
            pictures.append((verdict, None))
            continue
        source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        described = panels.picture_words(verdict, verdict.curve)
        width, height = (str(round(CSS_INCH * part)) for part in panels.plot_size(verdict.curve))
        pictures.append((verdict, {"source": source, "alt": described, "width": width, "height": height}))
    return pictures


def _text(words: str) -> str:
    """Words in one line of Markdown, where nothing is taken for markup."""
    words = re.sub(r"<|&(?=#?\w+;)", lambda found: html.escape(found[0]), " ".join(words.split()))
    return re.sub(r"[\\`*]|(?<=\])\(", r"\\\g<0>", words)


def _formula(latex: str) -> str:
    """A formula in one line of Markdown, where no sign is taken for a tag."""
    words = latex.replace("<", r"\lt ").replace(">", r"\gt ").split()
    return f"${' '.join(words)}$"


def _code(words: str) -> str:
    """Words between as many backticks as they need."""
    words = " ".join(words.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    room = " " if "`" in words else ""
    return f"{fence}{room}{words}{room}{fence}"
