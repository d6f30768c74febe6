"""Citations: entries of papers and of this software, the statements a run bears on, as table, LaTeX and JSON."""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import moe_theory
from moe_theory.core.errors import InvalidReportError, MoeTheoryError, shortened
from moe_theory.core.papers import all_papers, find_paper, paper_names, paper_place
from moe_theory.report import pages, plots
from moe_theory.report.bibliography import entry_of, escaped, software, title_of
from moe_theory.report.document import Document, ruled
from moe_theory.runs.files import finish_replacing, unsealed
from moe_theory.runs.reading import read_bytes
from moe_theory.sweep.manifest import MANIFEST, read_manifest
from moe_theory.sweep.systems import sweepable
from moe_theory.verify import explore
from moe_theory.verify.claim import Claim
from moe_theory.verify.registry import declared_claims, select_claims
from moe_theory.verify.statement import statements
from moe_theory.verify.status import listed
from moe_theory.verify.verdict import Status, Verdict

UNJUDGED = "Nothing is judged here: "


@dataclasses.dataclass(frozen=True)
class CitedStatement:
    claim: str  # its id
    where: str  # "Lemma 4"
    statement: str
    verdicts: tuple[tuple[str, str], ...] = ()  # (status, what it holds for), none where nothing was judged


@dataclasses.dataclass(frozen=True)
class Bearing:
    """The statements that a run bears on, by paper, and how it does."""

    run: str  # as it was named
    note: str  # what the run is, and what ties it to the statements
    papers: dict[str, list[CitedStatement]]  # by the paper's name; of deep claims, the one whose figure they are about
    version: str = moe_theory.__version__  # of this package, that ran
    is_map: bool = False  # whether verdicts are of points of a map, and not to be counted as claims


def bearing_of(run: str) -> Bearing:
    """Statements on which the run, figure or claims called `run` bear.

    Args:
        run: a folder that `verify`, `report`, `explore`, `sweep`, `deep` or `merge` wrote, one of the JSON documents in
            it, a file of a figure below its paper's folder, or a claim's id, a glob or a paper's name.
    Raises: InvalidReportError for a place that holds nothing of these; UnknownNameError for what is neither.
    """
    path = Path(run)
    finish_replacing(path if path.is_dir() else path.parent)
    if run in paper_names() or not path.exists():
        if "/" in run or path.suffix in (".json", ".csv", ".svg"):
            raise InvalidReportError(
                f"{shortened(run)} does not exist: name a run's folder, a figure's file or claims."
            )
        chosen = select_claims([run])
        return Bearing(run, UNJUDGED + "these are the claims of that name.", _by_paper(map(_unjudged, chosen)))
    try:
        kinds = (_of_documents, _of_sweep, _of_exploration, _of_figure, _of_verdicts)
        if found := next(filter(None, (bearing(run, path) for bearing in kinds)), None):
            return found
    except MoeTheoryError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as failure:
        raise InvalidReportError(
            f"{run} is damaged ({type(failure).__name__}: {failure}). Run the command that wrote it again."
        ) from None
    raise InvalidReportError(
        f"{run} is no run: it holds no {pages.NUMBERS}, {pages.REPORT_JSON}, {MANIFEST}, map of `moe-theory explore` "
        "or what a paper's own command writes, and is no figure's file. Name one that holds some, a claim or a paper."
    )


def _of_verdicts(run: str, path: Path) -> Bearing | None:
    is_report = path.is_dir() and (any(pages.numbers_below(path)) or (path / pages.REPORT_JSON).is_file())
    if not is_report and path.suffix != ".json":
        return None
    report = pages.read_printed([path])
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        by_claim.setdefault(verdict.claim, []).append(verdict)
    found = [
        (of[0].paper, CitedStatement(id, of[0].where, of[0].statement, tuple((str(v.status), v.setting) for v in of)))
        for id, of in by_claim.items()
    ]
    count = "1 verdict" if len(report.verdicts) == 1 else f"{len(report.verdicts)} verdicts"
    note = f"{count}, false with probability at most {report.error:g} in all: {report.command}"
    return Bearing(run, note, _by_paper(found), report.versions["moe-theory"])


def _of_exploration(run: str, path: Path) -> Bearing | None:
    found, versions = [], {}
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    for document in (read for file in files if file.suffix == ".json" and (read := document_in(file, explore.SCHEMA))):
        versions |= document["versions"]
        verdict = Verdict.from_json(document["points"][0]["verdict"])
        said = tuple((line.partition(" ")[0], line.partition(" ")[2]) for line in document["summary"])
        found.append((verdict.paper, CitedStatement(verdict.claim, verdict.where, verdict.statement, said)))
    if not found:
        return None
    note = f"A map of where {' and '.join(each.claim for _, each in found)} holds."
    return Bearing(run, note, _by_paper(found), " ".join(versions["moe-theory"].split()), is_map=True)


def _of_sweep(run: str, path: Path) -> Bearing | None:
    if not (path / MANIFEST).is_file():
        return None
    specification = read_manifest(path)["specification"]
    name = specification["system"]
    kind = sweepable(name)
    chosen = [
        claim
        for claim in select_claims([paper.name for paper in all_papers().values() if name in paper.systems])
        if claim.experiment.measured is None and claim.experiment.system.init.__module__ == kind.build.__module__
    ]
    note = (
        f"{UNJUDGED}a sweep of the system {name!r}. Listed are the paper's claims that `moe-theory verify` judges "
        "on runs of this system, at settings of their own."
    )
    return Bearing(run, note, _by_paper(map(_unjudged, chosen)))


class Unjudged(NamedTuple):
    """What a folder without verdicts bears on, that a paper's command wrote."""

    note: str  # what it is
    claims: Sequence[Claim]  # on it
    paper: str  # that the claims are about, where there are none


BearsOn = Callable[[Path], Unjudged | None]  # None of a folder that holds something else


def _of_documents(run: str, path: Path) -> Bearing | None:
    """Of a folder that a paper's command wrote."""
    for paper in all_papers().values():
        bears_on: BearsOn | None = paper.import_documents()
        if bears_on is not None and (found := bears_on(path)):
            papers = {found.paper: [], **_by_paper(map(_unjudged, found.claims))}
            return Bearing(run, UNJUDGED + found.note, papers)
    return None


def _of_figure(run: str, path: Path) -> Bearing | None:
    paper, name = path.parent.name, path.stem
    if path.suffix not in (".csv", ".nc", ".pdf", ".png", ".svg") or paper not in (*paper_names(), plots.OVERVIEW):
        return None
    if (figure := plots.figures_of(paper).get(name)) is None:
        return None
    chosen = select_claims(figure.claims) if figure.claims else []
    papers = _by_paper(map(_unjudged, chosen)) or {paper: []}
    return Bearing(run, f"{UNJUDGED}the figure '{figure.title}', which shows these statements over runs.", papers)


def document_in(file: Path, schema: str) -> dict[str, Any] | None:
    """The document in a file; None for a file that is none of this schema."""
    try:
        document = unsealed(read_bytes(file), is_sealed=False)  # earlier ones are not
    except (OSError, ValueError):
        return None
    return document if document.get("schema") == schema else None


def _unjudged(claim: Claim) -> tuple[str, CitedStatement]:
    return claim.paper, CitedStatement(claim.id, claim.where, claim.statement)


def _by_paper(found: Iterable[tuple[str, CitedStatement]]) -> dict[str, list[CitedStatement]]:
    """Statements by paper; those about figures that several papers share, by the papers whose figures they are."""
    papers: dict[str, list[CitedStatement]] = {}
    for paper, statement in found:
        for of in papers_of(paper, statement.claim):
            papers.setdefault(of, []).append(statement)
    return {paper: papers[paper] for paper in sorted(papers, key=paper_place)}


def papers_of(paper: str, claim: str) -> Sequence[str]:
    """The papers that a claim is about: its own, or those that its own answers for and whose statements name it."""
    if paper not in paper_names() or not find_paper(paper).answers_for:
        return [paper]
    find_paper(paper).import_claims()
    if claim not in declared_claims():
        return [paper]
    return [other for other in find_paper(paper).answers_for if any(claim in each.roles for each in statements(other))]


SCHEMA = "moe-theory/citation/1"
MOST_LABELS = 8  # that the paragraph names of a paper
FULL_WIDTH = 150  # columns of a terminal that takes ids with the paper's name
_KINDS = ("Theorem", "Proposition", "Corollary", "Lemma", "Assumption", "Fig", "Table", "Eq")  # the weightiest first
_LABEL = re.compile(
    r"(Theorem|Proposition|Corollary|Lemma|Assumption|Fig|Table|Eq)s?\.? [\dIVX().]*[\dIVX)]"
    r"(?: (?:and|to) [\d()]+)?"
)


def document(bearing: Bearing) -> Document:
    """The statements of each paper (source, claim and verdicts), a paragraph of LaTeX and BibTeX; in a narrow terminal
    ids lose the paper's name.
    """

    def parts(width: int) -> Iterator[RenderableType]:
        yield Text(bearing.note)
        yield from (_table(title_of(paper), found, width) for paper, found in bearing.papers.items())
        yield from (f"\n{page}" for page in (latex(bearing), bibtex(bearing)))

    return Document(lambda: _body(bearing), parts, SCHEMA)


def _table(title: str, found: Sequence[CitedStatement], width: int) -> Table:
    is_judged = any(statement.verdicts for statement in found)
    begins = {statement.claim.partition(".")[0] for statement in found}
    prefix = f"{begins.pop()}." if len(begins) == 1 and width < FULL_WIDTH else ""
    claim = f"claim ({prefix}*)" if prefix else "claim"
    rows = []
    for statement in found:
        says = "\n".join(f"{status} {setting}" for status, setting in statement.verdicts)
        id = statement.claim.removeprefix(prefix)
        rows.append([*map(Text, (statement.where, id, says if is_judged else statement.statement))])
    columns = ("source", claim, "verdicts" if is_judged else "statement")
    return ruled(columns, rows, whole=(claim,), title=Text(title))


def latex(bearing: Bearing) -> str:
    sentences = [rf"We used moe\_theory~\cite{{{software().key}}}, version~{escaped(bearing.version)}."]
    for paper, found in bearing.papers.items():
        entry = entry_of(paper)
        cited = rf"\cite{{{entry.key}}}" if entry else rf"\emph{{{escaped(paper)}}}"
        own = [statement for statement in found if _is_of_the_paper(statement)]
        others = [statement for statement in found if not _is_of_the_paper(statement)]
        begin = "The runs bear on" if any(statement.verdicts for statement in found) else "It concerns"
        told = []
        if own or not others:
            told.append(f"{_labels(own)} of~{cited}{_counted(own, bearing)}")
        if others:
            what = "one statement" if len(others) == 1 else f"{len(others)} statements"
            told.append(f"{what} beside those of~{cited}{_counted(others, bearing)}")
        sentences.append(f"{begin} {' and '.join(told)}.")
    return "% LaTeX\n" + "\n".join(sentences)


def _is_of_the_paper(statement: CitedStatement) -> bool:
    """Whether it is the paper that says so, and not what replaces a statement, or a claim of the user's own."""
    return _LABEL.search(statement.where) is not None and not statement.where.startswith(("replaces", "beside"))


def _counted(found: Sequence[CitedStatement], bearing: Bearing) -> str:
    counts = Counter(status for statement in found for status, _ in statement.verdicts)
    said = ", ".join(f"{counts[status]} {status.lower()}" for status in Status if counts[status])
    return f" ({said})" if said and not bearing.is_map else ""


def _labels(found: Sequence[CitedStatement]) -> str:
    """The numbers of the statements, as far as they have some and there are not too many."""
    labels = [label for statement in found if (label := _LABEL.search(statement.where))]
    labels.sort(key=lambda label: _KINDS.index(label[1]))
    names = list(dict.fromkeys(label[0] for label in labels)) or ["statements"]
    if len(names) > MOST_LABELS:
        names = [*names[:MOST_LABELS], f"{len(names) - MOST_LABELS} other statements"]
    return escaped(listed(names))


def bibtex(bearing: Bearing) -> str:
    papers = (entry_of(paper) for paper in bearing.papers)
    cited = [software().of_version(bearing.version), *(entry for entry in papers if entry is not None)]
    return "\n\n".join(entry.text for entry in cited)


def _body(bearing: Bearing) -> dict[str, Any]:
    papers = [
        {
            "paper": paper,
            "key": entry.key if (entry := entry_of(paper)) else None,
            "title": title_of(paper),
            "statements": [
                {name: getattr(statement, name) for name in ("claim", "where", "statement")}
                | {
                    "verdicts": [{"status": status, "setting": setting} for status, setting in statement.verdicts],
                }
                for statement in found
            ],
        }
        for paper, found in bearing.papers.items()
    ]
    own = {name: getattr(bearing, name) for name in ("run", "note", "version")}
    return {**own, "papers": papers, "latex": latex(bearing), "bibtex": bibtex(bearing)}
