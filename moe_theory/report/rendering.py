"""Cards of statements, for a terminal and in HTML, and the page of a report."""

import base64
import functools
import hashlib
import html
import itertools
import math
import re
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markupsafe import Markup

from moe_theory.plot import markdown, symbols
from moe_theory.report import bibliography, cards, challenge, wording
from moe_theory.verification.status import Judged
from moe_theory.verification.verdict import Report, Status, Verdict

if typing.TYPE_CHECKING:
    import jinja2
    from matplotlib.figure import Figure

LONGEST_FORMULA = 4000  # characters. Longer formulas take too long to typeset
_UNSAFE = re.compile(r"\\(href|style|class|color|newcommand)")  # links, styles and new commands in a formula
CSS_INCH = 96  # pixels
MOST_OPEN = 5  # statements that are open at first
MOST_WORDS = 260  # in a short card
# Parts that a short card omits, in this order, until it is short.
OMITTED = ("Baseline", "Other reading", "Ablation", "Example")
FACETS = ("status", "paper", "reading", "kind")  # filters of the page's verdicts


class Target(NamedTuple):
    words: Callable[[str], Any]  # renders words, which may contain formulas
    formula: Callable[[str], Any]  # renders a formula in LaTeX
    is_short: bool = False


def to_html(report: Report) -> str:
    from matplotlib.figure import Figure  # takes longer to import than everything else

    figure = Figure()
    judgements = wording.judged_statements(report)
    most_urgent = sorted(judgements, key=wording.urgency)[:MOST_OPEN]
    titles = []
    for name in dict.fromkeys(statement.paper for statement in report.statements):
        work = bibliography.entry_of(name)
        if work is not None:
            url = work.fields.get("url", "")
            if not url.startswith("https://"):
                url = ""
            titles.append((bibliography.title_of(name), url))
    return (
        templates()
        .get_template("page.html")
        .render(
            report=report,
            chapters=wording.arrange_chapters(report),
            claims={verdict.claim for verdict in report.verdicts},
            known=judgements,
            unfolded={judgement.statement.name for judgement in most_urgent},
            titles=titles,
            facets=[(facet, _facet_counts(report, facet)) for facet in FACETS],
            picture=lambda verdict: picture_of(verdict, figure),
        )
    )


def _facet_counts(report: Report, facet: str) -> list[tuple[str, int]]:
    totals: Counter[str] = Counter()
    for verdict in report.verdicts:
        if facet == "reading":
            totals.update(verdict.settings)
        else:
            totals[str(getattr(verdict, facet))] += 1
    if facet == "status":
        return [(str(status), totals[status]) for status in Status if totals[status]]
    return list(totals.items())


def document_text(name: str, **values: Any) -> str:
    return markdown_templates().get_template(name).render(values)


def card(
    judgement: Judged,
    verdicts: Sequence[Verdict],
    folder: Path | None = None,
    failing: Sequence[str] = (),
    *,
    shown_claim: str = "",
    target: Target,
) -> str:
    statement = judgement.statement
    of_claim = (verdict for verdict in verdicts if verdict.claim == shown_claim)
    displayed = next(of_claim, None) or wording.deciding_verdict(judgement, verdicts)
    proofs = [("Exact argument", statement.disproof), ("Exact argument", statement.proof)]
    if not target.is_short:
        proofs.append(("On the correction", statement.derivation))
    values = {
        "known": judgement,
        "of": statement,
        "parts": cards.evidence(judgement, verdicts, displayed),
        "shown": displayed,
        "certainty": cards.certainty(judgement, verdicts, folder, failing),
        "proofs": [(heading, proof) for heading, proof in proofs if proof],
        **target._asdict(),
    }
    text = ""
    for num_omitted in range(len(OMITTED) + 1):
        text = document_text("card.md", omitted=OMITTED[:num_omitted], **values)
        if not target.is_short or len(text.split()) <= MOST_WORDS:
            break
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def html_card(judgement: Judged, verdicts: Sequence[Verdict]) -> Markup:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(card(judgement, verdicts, target=PAGE))
    # Paragraphs that begin with a bold heading, such as "**Claim.**", have its name, for style sheets.
    for paragraph, token in itertools.pairwise(tokens):
        heading = re.match(r"\*\*([\w ]+)\.\*\*", token.content)
        if heading and paragraph.type == "paragraph_open":
            paragraph.attrSet("data-part", heading[1].lower().replace(" ", "-"))
    return Markup(parser.renderer.render(tokens, parser.options, {}))


@functools.cache
def templates() -> "jinja2.Environment":
    import jinja2

    environment = markdown.environment(loader=jinja2.PackageLoader("moe_theory.report"))
    for module in (cards, challenge, wording):
        public_names = [name for name in vars(module) if not name.startswith("_")]
        environment.globals.update({name: getattr(module, name) for name in public_names})
    environment.globals.update(card=html_card, mathml=mathml)
    environment.filters.update(digest=_digest, math=_math)
    environment.tests.update(finite=math.isfinite)
    return environment


@functools.cache
def markdown_templates() -> "jinja2.Environment":
    return templates().overlay(finalize=markdown.words)


def parts() -> Any:
    """Return the macros of `parts.html`, as functions."""
    return templates().get_template("parts.html").module


def mathml(latex: str, display: str = "block") -> Markup:
    """Return a formula in MathML, if it can be converted and has no links or styles."""
    from latex2mathml.converter import convert_to_element

    if len(latex) > LONGEST_FORMULA or _UNSAFE.search(latex):
        return Markup("")
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # the converter raises many kinds of errors. Then the page shows LaTeX
        return Markup("")
    formula.attrib.pop("xmlns", None)
    for element in formula.iter():
        element.text = html.unescape(element.text or "")
        element.tail = html.unescape(element.tail or "")
    return Markup(ElementTree.tostring(formula, encoding="unicode", short_empty_elements=False))


def _digest(text: str) -> str:
    """Return the hash of an inline script or style, as the page's Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def picture_of(verdict: Verdict, figure: "Figure") -> Markup:
    from moe_theory.report import panels

    svg = panels.svg_of(verdict, figure)
    if svg is None or verdict.curve is None:
        return Markup("")
    width, height = (round(CSS_INCH * inches) for inches in panels.plot_size(verdict.curve))
    tag = (
        '<img class="plot" src="data:image/svg+xml;base64,{}" alt="{}" width="{}" height="{}" loading="lazy" '
        'decoding="async">'
    )
    words = panels.picture_words(verdict.curve)
    return Markup(tag).format(base64.b64encode(svg.encode()).decode(), words, width, height)


def _math(words: str) -> Markup:
    pieces = []
    for place, piece in enumerate(re.split(r"(\$[^$]+\$)", words)):
        formula = mathml(piece[1:-1], "inline") if place % 2 else ""  # every second piece is a formula
        pieces.append(formula or symbols.marked(piece))
    return Markup("").join(pieces)


TERMINAL = Target(symbols.plain, symbols.linear, is_short=True)
WHOLE = TERMINAL._replace(is_short=False)  # includes full proofs, notes and free parameters
PAGE = Target(
    words=lambda words: markdown.escaped(_math(words)),
    formula=lambda latex: Markup(" ".join(parts().typeset(latex).split())),  # in one block
)
