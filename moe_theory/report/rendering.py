"""A report's pages, as HTML and as Markdown, from templates.

The HTML page needs nothing but itself: no server, no network, and no JavaScript to be read.
"""

import base64
import functools
import hashlib
import html
import re
import typing
from collections import Counter
from typing import Any

from moe_theory.plot import symbols
from moe_theory.report import bibliography, panels, wording
from moe_theory.report.challenge import bars, left_free, orders_of, summed
from moe_theory.verify.verdict import Report, Status, Verdict

if typing.TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import jinja2
    from markupsafe import Markup

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
MOST_OPEN = 5  # statements that are unfolded at first
FACETS = ("status", "paper", "reading", "kind")  # what the page's verdicts are filtered by


def to_html(report: Report, pictures: panels.Pictures | None = None) -> str:
    drawn = panels.Pictures() if pictures is None else pictures
    counts = Counter(verdict.status for verdict in report.verdicts)
    facets = []  # with how many verdicts have each value, statuses in their own order
    for facet in FACETS:
        found = Counter(value for verdict in report.verdicts for value in _facet_of(verdict, facet))
        order = [status for status in Status if found[status]] if facet == "status" else found
        facets.append((facet, [(str(value), found[value]) for value in order]))
    page = templates().get_template("page.html")
    return _rendered(page, report, counts=counts, facets=facets, picture=lambda verdict: picture_of(verdict, drawn))


def _facet_of(verdict: Verdict, facet: str) -> list[str]:
    return verdict.settings if facet == "reading" else [str(getattr(verdict, facet))]


def to_markdown(report: Report) -> str:
    """The report as one Markdown page, without pictures: summary, matrix, then each claim with what decided it."""
    environment = templates().overlay(autoescape=True, finalize=_markdown)
    return re.sub(r"\n{3,}", "\n\n", _rendered(environment.get_template("report.md"), report))


def _rendered(template: "jinja2.Template", report: Report, **further: Any) -> str:
    chapters, known = wording.arranged(report), wording.judged_statements(report)
    shared = {
        "report": report,
        "chapters": chapters,
        "claims": {entry.claim for chapter in chapters for entry in chapter.entries},
        "gist": wording.gist(chapters),
        "known": known,
        "unfolded": {each.statement.name for each in sorted(known, key=wording.urgency)[:MOST_OPEN]},
        "titles": _titles(report),
        "shares": sorted(
            {count for each in chapters for name in each.readings for count in each.counts(name).values()}
        ),
        "cut_short": wording.cut_short(report),
        "error_words": wording.error_words(report),
    }
    return template.render(**shared, **further)


def _titles(report: Report) -> list[tuple[str, str]]:
    """Of the published papers whose statements a report has: authors, year and title, and the address."""
    names = dict.fromkeys(each.paper for each in report.statements)
    entries = {name: entry for name in names if (entry := bibliography.entry_of(name))}
    urls = {name: entry.fields.get("url", "") for name, entry in entries.items()}
    return [(bibliography.title_of(name), url if url.startswith("https://") else "") for name, url in urls.items()]


@functools.cache
def templates() -> "jinja2.Environment":
    """The templates of all pages, with the words and formulas that they share."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("moe_theory.report"),
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    shared: dict[str, Any] = {name: each for name, each in vars(wording).items() if not name.startswith("_")}
    shared |= {each.__name__: each for each in (bars, left_free, orders_of, summed)}
    environment.globals.update(shared, WIDTH=panels.WIDTH, mathml=mathml, number_line=panels.number_line)
    environment.filters.update(
        {
            "code": _code,
            "cell": _cell,
            "formula": _formula,
            "digest": _digest,
            "math": symbols.marked,
            "plain": symbols.plain,
        }
    )
    return environment


def mathml(latex: str, display: str = "block") -> "Markup":
    """A formula as MathML, of safe elements and attributes alone; empty for what cannot be converted."""
    from latex2mathml.converter import convert_to_element
    from markupsafe import Markup

    if len(latex) > LONGEST_FORMULA or "newcommand" in latex:  # whose expansion may have any length
        return Markup("")
    try:
        return Markup(_safe(convert_to_element(latex, display=display)))
    except Exception:  # the converter fails with whatever it stumbles over; the page then shows the source
        return Markup("")


def _safe(element: "Element") -> str:
    """An element whose text has character references, as HTML; of one that is not known, only its words."""
    within = [_words(element.text), *(_safe(child) + _words(child.tail) for child in element)]
    if element.tag not in ELEMENTS:
        return "".join(within)
    known = ((name, value) for name, value in element.attrib.items() if name in ATTRIBUTES)
    attributes = (f' {name}="{value}"' for name, value in known if re.fullmatch(r"[\w.+%# -]*", value))
    return f"<{element.tag}{''.join(attributes)}>{''.join(within)}</{element.tag}>"


def _words(text: str | None) -> str:
    return html.escape(html.unescape(text or ""))


def _digest(text: str) -> str:
    """A content policy's name for this text of an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def picture_of(verdict: Verdict, pictures: panels.Pictures) -> dict[str, str] | None:
    """Source, words and size in pixels of a verdict's curve, for an image; None for a verdict without one."""
    svg = pictures.of(verdict)
    if svg is None or verdict.curve is None:
        return None
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    described = panels.picture_words(verdict, verdict.curve)
    width, height = (str(round(CSS_INCH * part)) for part in panels.plot_size(verdict.curve))
    return {"source": source, "alt": described, "width": width, "height": height}


def _markdown(value: Any) -> "Markup":
    """A value for a Markdown template: words in one line, with markup escaped, unless it is a `Markup`."""
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    words = re.sub(r"<|&(?=#?\w+;)", lambda found: html.escape(found[0]), " ".join(str(value).split()))
    # Escapes, code, emphasis, cells, fences, mathematics and links; then what makes a block where it begins a line.
    words = re.sub(r"[\\`*|~$]|(?<!\w)_|_(?!\w)|(?<=\])[(:]", r"\\\g<0>", words)
    words = re.sub(r"^(?:[#>]|[-+=](?=[-+= ]|$))", r"\\\g<0>", words)
    return Markup(re.sub(r"^(\d{1,9})(?=[.)](?: |$))", r"\1\\", words))


def _formula(latex: str) -> "Markup":
    """A formula in one line of Markdown, where no sign is taken for a tag or a link."""
    from markupsafe import Markup

    for sign, same in (("<", r"\lt "), (">", r"\gt "), ("](", "] ("), ("]:", "] :"), ("`", "{}^{\\backprime}")):
        latex = latex.replace(sign, same)
    return Markup(f"${' '.join(latex.split())}$")


def _code(words: str) -> "Markup":
    """Words between as many backticks as they need."""
    from markupsafe import Markup

    words = " ".join(words.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    room = " " if "`" in words else ""
    return Markup(f"{fence}{room}{words}{room}{fence}")


def _cell(code: "Markup") -> "Markup":
    """Code in a cell of a table in Markdown."""
    return type(code)(str(code).replace("|", r"\|"))
