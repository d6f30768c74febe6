"""Records of runs of `moe-theory verify`."""

import itertools
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from moe_theory.core.errors import DamagedError, InvalidValueError
from moe_theory.core.papers import paper_names
from moe_theory.plot.document import Document
from moe_theory.plot.markdown import code, paragraphs
from moe_theory.report.pages import as_report, merged, read_printed
from moe_theory.runs.files import prepare_folder, write_whole
from moe_theory.verification import challenge, recorded
from moe_theory.verification.catalog import INDEX, index_text, own_or_tested_statements, statements
from moe_theory.verification.challenged import Challenge
from moe_theory.verification.proofs import require_proofs
from moe_theory.verification.recorded import Recorded
from moe_theory.verification.registry import select_claims
from moe_theory.verification.verdict import Report


class PaperRecord(NamedTuple):
    path: Path
    paper: str
    counts: dict[str, int]
    text: str


def records_document(records: Sequence[PaperRecord]) -> Document:
    rows = [{"path": str(record.path), "paper": record.paper, **record.counts} for record in records]
    lines = []
    for record in records:
        counts = ", ".join(f"{count} {noun}" for noun, count in record.counts.items())
        lines.append(Markup(f"{code(str(record.path))}: {counts}"))
    return Document(lambda: rows, lambda _: paragraphs(lines))


def write(record: PaperRecord) -> None:
    """Write the file with one entry per line. Raises: OutputError. DamagedError for another paper's file."""
    if record.path.name != recorded.SEARCHES and record.path.is_file():  # a file of searches does not name its paper
        paper = recorded.record_at(record.path).paper
        if paper != record.paper:
            raise DamagedError(
                f"{record.path} is the record of {paper}, so the record of {record.paper} cannot be written there. "
                "Every paper needs its own folder. Move the module that defines PAPER into a new folder."
            )
    write_whole(prepare_folder(record.path.parent) / record.path.name, record.text)


def write_indexes(papers: Iterable[str]) -> None:
    for paper in papers:
        text = index_text(paper)
        path = recorded.file_of(paper, INDEX)
        if text is not None and (not path.is_file() or path.read_text(encoding="utf-8") != text):
            write_whole(path, text)


def paper_records(folders: Sequence[Path]) -> list[PaperRecord]:
    """Return the records of all papers with runs in these folders, each made by `updated_record`."""
    by_paper: dict[str, list[Path]] = {}
    for folder in folders:
        papers = [verdict.paper for verdict in read_printed([folder]).verdicts]
        by_paper.setdefault(min(papers, default=""), []).append(folder)  # `updated_record` refuses "" and several
    return [paper_record(updated_record(*folders_of_paper)) for folders_of_paper in by_paper.values()]


def paper_record(run: Recorded, name: str = recorded.NAME) -> PaperRecord:
    path = recorded.file_of(run.paper, name)
    return PaperRecord(path, run.paper, {"verdicts": len(run.verdicts)}, recorded.record_text(run))


def search_records(folders: Sequence[Path]) -> list[PaperRecord]:
    """Return the records of papers' searches, including the searches in these folders.

    A new search replaces a recorded one, unless it is too short for the ends of all axes. Searches of statements
    without free parameters are dropped.
    """
    new: dict[str, Challenge] = {}
    for folder in folders:
        new |= {search.statement: search for search in challenge.saved_searches(folder) if search.is_thorough}
    records = []
    for paper in dict.fromkeys(name.partition(".")[0] for name in new):
        by_name = {search.statement: search for search in recorded.searches_of(paper)} | new
        names = [statement.name for statement in statements(paper) if statement.free]
        searches = [by_name[name] for name in names if name in by_name]
        path = recorded.file_of(paper, recorded.SEARCHES)
        text = recorded.searches_text(searches)
        records.append(PaperRecord(path, paper, {"searches": len(searches)}, text))
    return records


def updated_record(*folders: Path) -> Recorded:
    """Return a paper's record, including the runs in these folders.

    The record has verdicts on every claim under each reading. Verdicts in the folders replace recorded ones. All runs
    have the same seed, so the sum of the remaining errors bounds the probability that any verdict is false.
    """
    report = read_printed(folders)
    folder = " and ".join(map(str, folders))
    papers = {verdict.paper for verdict in report.verdicts}
    if len(papers) != 1:
        names = ", ".join(sorted(papers)) or "nothing"
        raise DamagedError(f"{folder} has verdicts on {names}, not on one paper. Run `moe-theory verify PAPER`.")
    (paper,) = papers
    if paper not in paper_names():
        raise DamagedError(
            f"{folder} has verdicts on {paper}, which is not installed, so its record has no folder. Register its "
            "PAPER by an entry point, as `moe-theory new paper NAME` does."
        )
    undeclared = {verdict.claim for verdict in report.verdicts} - {claim.id for claim in select_claims([paper])}
    if undeclared:
        raise DamagedError(
            f"{folder} has a verdict on {min(undeclared)}, but the installed {paper} does not declare this claim. "
            "Declare it in a file of the paper, and run it again."
        )
    before = recorded.read().get(paper)
    combined = report
    if before is not None and _missing(report, paper):
        combined = merged([as_report(before), report], [f"the record of {paper}", folder])
    missing = _missing(combined, paper)
    if missing:
        claim, reading = missing[0]
        raise DamagedError(
            f"{folder} has no verdict on {claim} under {reading}, and neither has the record. {len(missing) - 1} more "
            f"are missing. Run `moe-theory verify {claim} --seed {report.seed}`, or verify the whole paper."
        )
    seconds = sum(report.seconds.values())
    if before is None or combined is report:
        return _run(combined, paper, report.error, seconds)
    shares = {verdict.command: verdict.error for verdict in combined.verdicts}  # one share, also for several readings
    sum_of_shares = sum(share for share in shares.values() if share > 0)
    error = max(before.error, float(f"{sum_of_shares:.4g}"))
    total_seconds = None if before.seconds is None else before.seconds + seconds
    run = _run(combined, paper, error, total_seconds)
    if run.verdicts == before.verdicts:
        return before  # these folders are already recorded
    return run


def other_data_record(folders: Sequence[Path]) -> PaperRecord:
    """Return a paper's record for a data set other than the usual one. The runs must cover every claim."""
    if not folders:
        raise InvalidValueError("no run on other data is named. Name the folder of a run.", argument="folders")
    report = read_printed(folders)
    pairs = {(verdict.paper, verdict.data) for verdict in report.verdicts}
    if len(pairs) != 1:
        names = ", ".join(sorted(f"{paper} on {data}" for paper, data in pairs)) or "nothing"
        raise DamagedError(f"these folders have verdicts on {names}, but all must be on the same paper and data set.")
    ((paper, data),) = pairs
    missing = {claim.id for claim in select_claims([paper])} - {verdict.claim for verdict in report.verdicts}
    if missing:
        raise DamagedError(f"there is no verdict on {min(missing)}, and {len(missing) - 1} more are missing.")
    name = f"recorded-{re.sub('[^a-z0-9]+', '-', data.lower())}.json"
    return paper_record(_run(report, paper, report.error, None), name)


def _run(report: Report, paper: str, error: float, seconds: float | None) -> Recorded:
    require_proofs(own_or_tested_statements(paper))
    verdicts: dict[tuple[str, str], dict[str, Any]] = {}
    for verdict in report.verdicts:
        command = _without_out(verdict.command)
        for reading in (verdict.reading, *verdict.also):
            verdicts[verdict.claim, reading] = verdict.record | {"reading": reading, "command": command}
    return Recorded(
        paper=paper,
        command=_without_out(report.command),
        seed=report.seed,
        error=error,
        finished=report.finished,
        budget=report.budget,
        seconds=None if seconds is None else round(seconds, 1),
        versions=report.versions,
        readings=_readings(report, paper),
        verdicts=[verdicts[pair] for pair in _claims_with_readings(report, paper) if pair in verdicts],
    )


def _missing(report: Report, paper: str) -> list[tuple[str, str]]:
    judged: set[tuple[str, str]] = set()
    for verdict in report.verdicts:
        judged |= {(verdict.claim, reading) for reading in (verdict.reading, *verdict.also)}
    return [pair for pair in _claims_with_readings(report, paper) if pair not in judged]


def _claims_with_readings(report: Report, paper: str) -> list[tuple[str, str]]:
    ids = [claim.id for claim in select_claims([paper])]
    return list(itertools.product(ids, _readings(report, paper)))


def _readings(report: Report, paper: str) -> dict[str, str]:
    return {name.removeprefix(f"{paper}."): words for name, words in report.readings.items()}


def _without_out(commands: str) -> str:
    """Return commands without `--out` and its value, which names a folder on one machine."""
    shortened = []
    for command in commands.split("; "):
        pairs = itertools.pairwise(["", *shlex.split(command)])
        words = [word for before, word in pairs if "--out" not in (before, word) and not word.startswith("--out=")]
        shortened.append(shlex.join(words))
    return "; ".join(shortened)
