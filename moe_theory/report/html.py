"""A report as one HTML page that needs nothing but itself: no server, no network, and no JavaScript to be read."""

import base64
import functools
import re
import typing
from collections import Counter
from collections.abc import Sequence
from typing import Any

from moe_theory.report import contents, interval, panels, words
from moe_theory.verify.verdict import Report, Status, Stop, Verdict

if typing.TYPE_CHECKING:
    import jinja2

CSS_INCH = 96  # pixels
FACETS = ("status", "paper", "reading", "kind")  # what the page's verdicts are filtered by


def to_html(report: Report) -> str:
    """The report as a page."""
    pictures = {id(verdict): picture for verdict, picture in _pictures(report.verdicts)}
    chapters = contents.arranged(report)
    return (
        templates()
        .get_template("page.html")
        .render(
            report=report,
            chapters=chapters,
            claims={entry.claim for chapter in chapters for entry in chapter.entries},
            counts=Counter(verdict.status for verdict in report.verdicts),
            gist=contents.gist(chapters),
            facets=[(facet, _options(report.verdicts, facet)) for facet in FACETS],
            cut_short=contents.cut_short(report),
            error_words=contents.error_words(report),
            picture=lambda verdict: pictures[id(verdict)],
        )
    )


@functools.cache
def templates() -> "jinja2.Environment":
    """The templates of all pages, with the words and formulas that they share."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("moe_theory.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names: dict[str, Any] = {
        "Status": Status,
        "MEANINGS": words.MEANINGS,
        "STOPS": words.STOPS,
        "ABOUT": (words.ABOUT_MEANS, words.ABOUT_INTERVALS, words.ABOUT_ERROR, words.ABOUT_POWER),
        "Stop": Stop,
        "WIDTH": interval.WIDTH,
        "claim_anchor": contents.claim_anchor,
        "verdict_anchor": contents.verdict_anchor,
        "facts": words.facts,
        "headline": words.headline,
        "kind_words": words.kind_words,
        "mathml": mathml,
        "number": words.number,
        "number_line": interval.number_line,
        "repeat_words": words.repeat_words,
    }
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


def _options(verdicts: Sequence[Verdict], facet: str) -> list[tuple[str, int]]:
    """The values of a facet with how many verdicts have each, statuses in their own order."""
    counts = Counter(str(getattr(verdict, facet)) for verdict in verdicts)
    order = [status for status in Status if counts[status]] if facet == "status" else counts
    return [(str(value), counts[value]) for value in order]
