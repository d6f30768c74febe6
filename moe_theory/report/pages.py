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
from moe_theory.verification.catalog import answers_for, own_or_tested_statements
from moe_theory.verification.verdict import Report, Statement, Status, Verdict

SCHEMA = "moe-theory/verdicts/6"
NUMBERS = "verdicts.json"  # written by `verify`
PAGE = "report.html"  # written by `verify` and `report`
REPORT_JSON = "report.json"  # written by `report`
OWN_NAMES = (PAGE, REPORT_JSON)


def to_json(report: Report) -> str:
    counts = {status: sum(verdict.status is status for verdict in report.verdicts) for status in Status}
    summary = {str(status): count for status, count in counts.items() if count}
    document = {"schema": SCHEMA, "summary": summary, **report.to_json()}
    for statement, judgement in zip(document["statements"], wording.tested_statements(report), strict=True):
        statement |= wording.status_json(judgement)
    return sealed(document)


def write_report(report: Report, folder: Path, numbers: str = REPORT_JSON) -> list[Path]:
    """Write both the page and its source `numbers`, or neither. Raises: OutputError."""
    return write_together(folder, {PAGE: to_html(report), numbers: to_json(report)})


def write_numbers(report: Report, folder: Path) -> list[Path]:
    """Write only the verdicts, and remove older pages. Raises: OutputError."""
    paths = write_together(folder, {NUMBERS: to_json(report)})
    for name in OWN_NAMES:
        (folder / name).unlink(missing_ok=True)
    return paths


def of_paper(name: str) -> Report:
    """Return the recorded verdicts on a paper's statements as a report."""
    statements = own_or_tested_statements(name)
    records = recorded.read()
    papers = [name, *(other for other in paper_names() if name in answers_for(other))]  # others test its statements
    if name not in records:
        raise DamagedError(f"{name} has no published results. Run `moe-theory verify {name}`, which writes a report.")
    ids = set().union(*(statement.roles for statement in statements))
    reports = []
    for record in [records[paper] for paper in papers if paper in records]:
        report = as_report(record, statements)
        verdicts = [verdict for verdict in report.verdicts if verdict.paper == name or verdict.claim in ids]
        reports.append(dataclasses.replace(report, verdicts=verdicts))
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
    """Return the reports at `paths` as one. Later verdicts on a claim under a reading replace earlier ones."""
    files = list(dict.fromkeys(_file(Path(path)) for path in paths))
    return merged([_read(file) for file in files], [str(file) for file in files])


def read_printed(paths: Iterable[str | os.PathLike[str]]) -> Report:
    """Return the reports as `read_reports` does. Raises: DamagedError, also for verdicts on a user's algorithm."""
    paths = [*paths]
    report = read_reports(paths)
    if report.own_system:
        raise DamagedError(
            f"{' and '.join(map(str, paths))} has verdicts on your own algorithm {report.own_system}, which cannot be "
            "published as the paper's. Run `moe-theory verify` without --system."
        )
    return report


def merged(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """Return many reports as one. Errors and budgets are added.

    The sum of errors bounds the probability that any verdict is false, including replaced ones. Reports with different
    seeds cannot be merged, because verdicts selected from several seeds have no known error.
    """
    first = reports[0]
    for report, name in zip(reports, names, strict=True):
        for field in ("seed", "is_x64", "own_system"):
            first_value = getattr(first, field)
            value = getattr(report, field)
            if value != first_value:
                raise DamagedError(
                    f"{names[0]} has {field}={first_value} and {name} has {field}={value}, so a selection of their "
                    "verdicts would have no known error probability. Make separate reports, or rerun one of them."
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
    settings: dict[int, list[str]] = {}  # by `id` of a verdict (it has no hash), its settings without a later verdict
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
    raise DamagedError(f"{path} has no {NUMBERS}. Name a folder that `moe-theory verify --out` wrote.")


def _read(path: Path) -> Report:
    try:
        document = unsealed(path.read_bytes())  # earlier versions have no digest
    except (OSError, ValueError) as failure:
        reason = " ".join(str(getattr(failure, "strerror", None) or failure).split())
        raise DamagedError(f"{path} cannot be read as JSON ({reason}). Run `moe-theory verify` again.") from None
    schema = document.get("schema")
    if schema != SCHEMA:
        raise DamagedError(
            f"{path} has schema {shortened(schema)}, but this version has {SCHEMA!r}. Rerun the command that wrote it."
        )
    try:
        return Report.from_json(document)
    except DamagedError as failure:
        raise DamagedError(f"{path} is not a complete report ({failure}). Rerun the command that wrote it.") from None
