"""Reports on disk, as page, Markdown and JSON, and merged reports."""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from moe_theory.core.errors import DamagedError, shortened
from moe_theory.core.papers import paper_names
from moe_theory.report import wording
from moe_theory.report.rendering import to_html
from moe_theory.runs.files import sealed, unsealed, write_together
from moe_theory.verification import recorded
from moe_theory.verification.catalog import answered, answers_for
from moe_theory.verification.verdict import Report, Statement, Status, Verdict

SCHEMA = "moe-theory/verdicts/6"
NUMBERS = "verdicts.json"  # what verifying writes
PAGE_NAMES = ("report.html",)  # what is made of it
REPORT_JSON = "report.json"  # the numbers of pages that are made again
OWN_NAMES = (*PAGE_NAMES, REPORT_JSON)


def to_json(report: Report) -> str:
    counts = {status: sum(verdict.status is status for verdict in report.verdicts) for status in Status}
    summary = {str(status): count for status, count in counts.items() if count}
    document = {"schema": SCHEMA, "summary": summary, **report.to_json()}
    for statement, judgement in zip(document["statements"], wording.tested_statements(report), strict=True):
        statement |= wording.status_json(judgement)
    return sealed(document)


def write_report(report: Report, folder: Path, numbers: str = REPORT_JSON) -> list[Path]:
    """Write `report.html` and its source `numbers`, both or neither. Raises: OutputError."""
    return write_together(folder, {"report.html": to_html(report), numbers: to_json(report)})


def write_numbers(report: Report, folder: Path) -> list[Path]:
    """Write the verdicts alone, and remove older pages. Raises: OutputError."""
    paths = write_together(folder, {NUMBERS: to_json(report)})
    for name in OWN_NAMES:
        (folder / name).unlink(missing_ok=True)
    return paths


def of_paper(name: str) -> Report:
    """Return the recorded verdicts on a paper's statements as a report."""
    statements = answered(name)
    records = recorded.read()
    papers = [name, *(answering for answering in paper_names() if name in answers_for(answering))]
    if name not in records:
        raise DamagedError(f"no run of {name} is recorded. Run `moe-theory verify {name}`, which writes a report.")
    ids = set().union(*(statement.roles for statement in statements))
    reports = [as_report(records[paper], statements) for paper in papers if paper in records]
    for report in reports:
        report.verdicts[:] = [verdict for verdict in report.verdicts if verdict.paper == name or verdict.claim in ids]
    return merged(reports, [report.command for report in reports])


def as_report(run: recorded.Recorded, statements: Sequence[Statement] = ()) -> Report:
    return Report(
        verdicts=run.whole(),
        command=run.command,
        seed=run.seed,
        error=run.error,
        versions=run.versions,
        is_x64=False,
        readings={f"{run.paper}.{reading}": words for reading, words in run.readings.items()},
        budget=run.budget,
        finished=run.finished,
        statements=list(statements),
    )


def read_reports(paths: Iterable[str | os.PathLike[str]]) -> Report:
    """Return the reports at `paths` as one, where later verdicts on a claim under a reading replace earlier ones."""
    files = list(dict.fromkeys(_file(Path(path)) for path in paths))
    return merged([_read(file) for file in files], [str(file) for file in files])


def read_printed(paths: Iterable[str | os.PathLike[str]]) -> Report:
    """Return `read_reports`. Raises: DamagedError also for a user's own algorithm."""
    paths = [*paths]
    report = read_reports(paths)
    if report.own_system:
        raise DamagedError(
            f"{' and '.join(map(str, paths))} has verdicts on {report.own_system}, an algorithm of your own, which "
            "enter no record and no status of the paper's. Run `moe-theory verify` without --system."
        )
    return report


def merged(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """Return many reports as one, with sums of errors and of budgets.

    The sum of errors bounds the probability that any verdict is false, replaced ones included. Reports of different
    seeds are not merged, because verdicts chosen among seeds have no known error.
    """
    first = reports[0]
    for report, name in zip(reports, names, strict=True):
        for field in ("seed", "is_x64", "own_system"):
            value = getattr(first, field)
            value_of_report = getattr(report, field)
            if value != value_of_report:
                raise DamagedError(
                    f"{names[0]} has {field}={value} and {name} has {field}={value_of_report}: verdicts chosen among "
                    "them would have no known error. Make a report of each, or run one again."
                )
    if len(reports) == 1:
        return first
    last: dict[tuple[str, str], Verdict] = {}
    versions: dict[str, str] = {}
    readings: dict[str, str] = {}
    seconds: dict[str, float] = {}
    statements: dict[str, Statement] = {}
    for report in reports:
        for verdict in report.verdicts:
            last |= {(verdict.claim, setting): verdict for setting in verdict.settings}
        for name, version in report.versions.items():
            if version not in versions.setdefault(name, version).split(" and "):
                versions[name] += f" and {version}"
        readings |= report.readings
        seconds |= report.seconds
        statements |= {statement.name: statement for statement in report.statements}
    settings: dict[int, list[str]] = {}  # of a verdict by its identity, those that no later one is on
    for (_, setting), verdict in last.items():
        settings.setdefault(id(verdict), []).append(setting)
    by_id = {id(verdict): verdict for verdict in last.values()}
    budgets = [report.budget for report in reports if report.budget is not None]
    return dataclasses.replace(
        first,
        verdicts=[by_id[id].held_for(settings_of_verdict) for id, settings_of_verdict in settings.items()],
        command="; ".join(dict.fromkeys(report.command for report in reports)),
        error=min(sum(report.error for report in reports), 1.0),
        versions=versions,
        readings=readings,
        budget=sum(budgets) or None,
        finished=max(report.finished for report in reports),
        seconds=seconds,
        statements=list(statements.values()),
    )


def _file(path: Path) -> Path:
    for file in (path, path / NUMBERS, path / REPORT_JSON):
        if file.is_file():
            return file
    raise DamagedError(f"{path} holds no {NUMBERS}: name a folder that `moe-theory verify --out` wrote.")


def _read(path: Path) -> Report:
    try:
        document = unsealed(path.read_bytes())  # earlier ones are not
    except (OSError, ValueError) as failure:
        reason = " ".join(str(getattr(failure, "strerror", None) or failure).split())
        raise DamagedError(f"{path} cannot be read as JSON ({reason}). Run `moe-theory verify` again.") from None
    schema = document.get("schema")
    if schema != SCHEMA:
        raise DamagedError(
            f"{path} has schema {shortened(schema)} and not {SCHEMA!r}: it is no report, or another version's. Run the "
            "command that wrote it again."
        )
    try:
        return Report.from_json(document)
    except DamagedError as failure:
        raise DamagedError(f"{path} is not a whole report ({failure}). Run the command that wrote it again.") from None
