"""Cards and pages of a report, for a terminal, as HTML and as Markdown, from one template each.

The HTML page needs nothing but itself: no server, no network, and no JavaScript to be read.
"""

import base64
import functools
import hashlib
import html
import itertools
import re
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from moe_theory.plot import markdown, symbols
from moe_theory.report import bibliography, challenge, wording
from moe_theory.report.numbers import WIDTH
from moe_theory.verification.status import Judged, listed
from moe_theory.verification.verdict import Report, Status, Verdict

if typing.TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import jinja2
    from matplotlib.figure import Figure

LONGEST_FORMULA = 4000  # characters that are typeset: longer ones take long
# What a typeset formula is made of. What else LaTeX can ask for, such as links and styles, is left out.
ELEMENTS = frozenset(
    """
    math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts
    mprescripts none mtable mtr mtd mstyle mpadded mphantom menclose
    """.split()
)
ATTRIBUTES = frozenset(
    """
    accent accentunder columnalign columnlines columnspacing depth display displaystyle fence form height largeop
    linethickness lspace mathsize mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace
    scriptlevel separator stretchy symmetric voffset width
    """.split()
)
CSS_INCH = 96  # pixels
SEARCH_WORDS = (  # functions on searches that templates call
    "axis_rows", "bars", "clause", "covered", "headline", "left_free", "orders_of", "placed", "summed",
)  # fmt: skip
MOST_OPEN = 5  # statements that are unfolded at first
FACETS = ("status", "paper", "reading", "kind")  # what the page's verdicts are filtered by


class Target(NamedTuple):
    """What a Markdown template is made for: how mathematics, formulas, pictures and statuses are written there."""

    words: Callable[[str], Any]
    formula: Callable[[str], Any]
    picture: Callable[[Verdict], Any]
    status_mark: Callable[[str], Any]  # of a statement's status
    verdict_mark: Callable[[Status], Any]
    is_short: bool = False


def to_html(report: Report) -> str:
    from matplotlib.figure import Figure  # takes longer to import than all the rest

    figure = Figure()
    counts = Counter(verdict.status for verdict in report.verdicts)
    facets = []  # with how many verdicts have each value, statuses in their own order
    for facet in FACETS:
        totals: Counter[str] = Counter()
        for verdict in report.verdicts:
            totals.update(verdict.settings if facet == "reading" else [str(getattr(verdict, facet))])
        order = [status for status in Status if totals[status]] if facet == "status" else totals
        facets.append((facet, [(str(value), totals[value]) for value in order]))
    page = templates().get_template("page.html")
    return _rendered(page, report, counts=counts, facets=facets, picture=lambda verdict: picture_of(verdict, figure))


def to_markdown(report: Report) -> str:
    """The report as one Markdown page, without pictures: summary, matrix, then each claim with what decided it."""
    page = markdown_templates().get_template("report.md")

    text = _rendered(page, report, card=functools.partial(card, target=FILE), **FILE._asdict())
    return re.sub(r"\n{3,}", "\n\n", text)


def document_text(name: str, **values: Any) -> str:
    """The Markdown that a template makes of these values, for a terminal."""
    return markdown_templates().get_template(name).render(values)


def card(
    judgement: Judged,
    verdicts: Sequence[Verdict],
    folder: Path | None = None,
    failing: Sequence[str] = (),
    on_other_data: Sequence[str] = (),
    *,
    target: Target,
) -> str:
    """The card of a statement as Markdown.

    Args:
        verdicts: those that its status follows from.
        folder: that of the run that judged it; None for the recorded ones.
        failing: names of statements that its proof uses and that are false or vacuous.
        on_other_data: lines on verdicts on other data.
    """
    statement = judgement.statement
    proofs = {"Disproof": statement.disproof, "Proof": statement.proof}
    if not target.is_short:
        proofs["Derivation"] = statement.derivation
    text = document_text(
        "card.md",
        known=judgement,
        of=statement,
        verdicts=verdicts,
        shown=wording.decisive(judgement, verdicts),
        status=_status_line(judgement, folder, failing, target.is_short),
        proofs=[(heading, proof) for heading, proof in proofs.items() if proof],
        on_other_data=on_other_data,
        **target._asdict(),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _status_line(judgement: Judged, folder: Path | None, failing: Sequence[str], is_short: bool) -> str:
    line = judgement.words
    if folder is not None:
        line += f", by the run in {folder}"
    if not (is_short and judgement.search):  # which has a row of its own
        line += challenge.over_region(judgement)
    if failing:
        names = [name.partition(".")[2] for name in failing]
        line += f"; its proof uses {listed(names)}, which fail{'s' if len(names) == 1 else ''}"
    return line


def page_of(text: str) -> Markup:
    """Markdown of ours as HTML, in which a paragraph is named by its heading, for styles."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    for paragraph, token in itertools.pairwise(tokens):
        heading = re.match(r"\*\*(\w+)\.\*\*", token.content)
        if heading and paragraph.type == "paragraph_open":
            paragraph.attrSet("data-part", heading[1].lower())
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _rendered(template: "jinja2.Template", report: Report, **further: Any) -> str:
    chapters = wording.arranged(report)
    judgements = wording.judged_statements(report)
    shares: set[int] = set()
    for chapter in chapters:
        for reading in chapter.readings:
            shares.update(chapter.counts(reading).values())
    return template.render(
        report=report,
        chapters=chapters,
        claims={verdict.claim for verdict in report.verdicts},
        gist=wording.gist(chapters),
        known=judgements,
        unfolded={judgement.statement.name for judgement in sorted(judgements, key=wording.urgency)[:MOST_OPEN]},
        titles=_titles(report),
        shares=sorted(shares),
        cut_short=wording.cut_short(report),
        error_words=wording.error_words(report),
        **further,
    )


def _titles(report: Report) -> list[tuple[str, str]]:
    """Of the published papers whose statements a report has: authors, year and title, and the address."""
    names = dict.fromkeys(statement.paper for statement in report.statements)
    works = {name: bibliography.entry_of(name) for name in names}
    urls = {name: work.fields.get("url", "") for name, work in works.items() if work}
    return [(bibliography.title_of(name), url if url.startswith("https://") else "") for name, url in urls.items()]


@functools.cache
def templates() -> "jinja2.Environment":
    """The templates of all pages, with the words and formulas that they share."""
    import jinja2

    environment = markdown.environment(loader=jinja2.PackageLoader("moe_theory.report"))
    shared: dict[str, Any] = {name: value for name, value in vars(wording).items() if not name.startswith("_")}
    shared |= {name: getattr(challenge, name) for name in SEARCH_WORDS}
    environment.globals.update(shared, WIDTH=WIDTH, mathml=mathml, number_line=_number_line)
    environment.globals["card"] = lambda judgement, verdicts: page_of(card(judgement, verdicts, target=PAGE))
    environment.globals["page_text"] = lambda name, **values: page_of(document_text(name, **PAGE._asdict(), **values))
    environment.filters.update(formula=_formula, digest=_digest, math=_math)
    environment.filters["cell"] = lambda code: Markup(str(code).replace("|", r"\|"))  # of a table in Markdown
    return environment


@functools.cache
def markdown_templates() -> "jinja2.Environment":
    """The same, for templates of Markdown."""
    return templates().overlay(finalize=markdown.words)


def mathml(latex: str, display: str = "block") -> Markup:
    """A formula as MathML, of safe elements and attributes alone; empty for what cannot be converted."""
    from latex2mathml.converter import convert_to_element

    if len(latex) > LONGEST_FORMULA or "newcommand" in latex:  # whose expansion may have any length
        return Markup("")
    try:
        return Markup(_safe(convert_to_element(latex, display=display)))
    except Exception:  # the converter fails with whatever it stumbles over; the page then shows the source
        return Markup("")


def _safe(element: "Element") -> str:
    """An element whose text has character references, as HTML; of one that is not known, only its words."""
    content = "".join([_words(element.text), *(_safe(child) + _words(child.tail) for child in element)])
    if element.tag not in ELEMENTS:
        return content
    pairs = ((name, value) for name, value in element.attrib.items() if name in ATTRIBUTES)
    attributes = (f' {name}="{value}"' for name, value in pairs if re.fullmatch(r"[\w.+%# -]*", value))
    return f"<{element.tag}{''.join(attributes)}>{content}</{element.tag}>"


def _words(text: str | None) -> str:
    return html.escape(html.unescape(text or ""))


def _digest(text: str) -> str:
    """A content policy's name for this text of an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _number_line(verdict: Verdict) -> Any:
    from moe_theory.report import panels  # which needs NumPy, as cards do not

    return panels.number_line(verdict)


def picture_of(verdict: Verdict, figure: "Figure") -> dict[str, str] | None:
    """Source, words and size in pixels of a verdict's curve, for an image; None for a verdict without one."""
    from moe_theory.report import panels

    svg = panels.svg_of(verdict, figure)
    if svg is None or verdict.curve is None:
        return None
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    words = panels.picture_words(verdict, verdict.curve)
    width, height = (str(round(CSS_INCH * inches)) for inches in panels.plot_size(verdict.curve))
    return {"source": source, "alt": words, "width": width, "height": height}


def _formula(latex: str) -> Markup:
    """A formula in one line of Markdown, where no sign is taken for a tag or a link."""
    for sign, same in (("<", r"\lt "), (">", r"\gt "), ("](", "] ("), ("]:", "] :"), ("`", "{}^{\\backprime}")):
        latex = latex.replace(sign, same)
    return Markup(f"${' '.join(latex.split())}$")


def _math(words: str) -> Markup:
    """Words as HTML, with what is between dollars as MathML."""
    parts = re.split(r"(\$[^$]+\$)", words)
    typeset = [mathml(part[1:-1], "inline") if place % 2 else "" for place, part in enumerate(parts)]
    return Markup("").join(formula or symbols.marked(part) for formula, part in zip(typeset, parts, strict=True))


def _page_picture(verdict: Verdict) -> Markup:
    line = _parts().line(verdict, f"card-{wording.verdict_anchor(verdict)}")
    return _in_a_block(f'<div class="pictures">{line}</div>') if line.strip() else Markup("")


def _in_a_block(markup: str) -> Markup:
    """HTML in one block of Markdown, which an empty line ends."""
    return Markup(" ".join(markup.split()))


def _parts() -> Any:
    """The pieces that pages are made of, by name."""
    return templates().get_template("parts.html").module


def _bold(words: str) -> Markup:
    return Markup(f"**{markdown.words(words)}**:")


TERMINAL = Target(symbols.plain, symbols.linear, lambda verdict: "", _bold, _bold, is_short=True)
FILE = Target(symbols.plain, _formula, lambda verdict: "", _bold, lambda status: _bold(wording.status_word(status)))
PAGE = Target(
    words=lambda words: markdown.escaped(_math(words)),
    formula=lambda latex: _in_a_block(_parts().typeset(latex)),
    picture=_page_picture,
    status_mark=lambda status: Markup('<span class="status t-{}">{}</span>').format(status.replace(" ", "-"), status),
    verdict_mark=lambda status: Markup(_parts().badge(status).strip()),
)
