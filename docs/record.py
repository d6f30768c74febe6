"""Records verdicts for README and site: trims FOLDER/verdicts.json, which `moe-theory verify --out FOLDER` writes.

    python docs/record.py runs/verdicts/continual runs/verdicts/edge

writes moe_theory/continual/recorded.json and moe_theory/edge/recorded.json; `make readme` then fills the README's
tables. What `moe-theory deep` found on a data set, in as many folders as it has presets, is recorded beside that:

    python docs/record.py --elsewhere runs/deep/*

writes moe_theory/deep/recorded-fashion-mnist.json, or what the data set's name is.
"""

import re
import shlex
import sys
from pathlib import Path

from gallery import ROOT

from moe_theory.cli.output import refuse
from moe_theory.core.errors import InvalidReportError, MoeTheoryError
from moe_theory.report.pages import read_reports
from moe_theory.verify import recorded, select_claims
from moe_theory.verify.recorded import FIELDS, Recorded


def main(folders: list[str]) -> None:
    """Record each folder; a folder that cannot be published is one line on standard error and exit code 2."""
    try:
        if not folders:
            raise InvalidReportError("name the folders that `moe-theory verify PAPER --out FOLDER` wrote.")
        if folders[0] == "--elsewhere":
            title, found = together([Path(folder) for folder in folders[1:]])
            name = f"recorded-{re.sub('[^a-z0-9]+', '-', title.lower())}.json"
            _write(found, name)
            return
        for folder in folders:
            _write(trimmed(Path(folder)), recorded.NAME)
    except MoeTheoryError as failure:
        refuse(failure)


def _write(found: Recorded, name: str) -> None:
    path = ROOT / "moe_theory" / found.paper / name
    path.write_text(recorded.written(found), encoding="utf-8")
    sys.stdout.write(f"{path}\n")


def trimmed(folder: Path) -> Recorded:
    """Published part of a run: verdicts on every claim of one paper, under each of its readings.

    Raises: InvalidReportError for a run of several papers, or of only some of a paper's claims.
    """
    report = read_reports([folder])
    papers = {verdict.paper for verdict in report.verdicts}
    if len(papers) != 1:
        found = ", ".join(sorted(papers)) or "nothing"
        raise InvalidReportError(f"{folder} has verdicts on {found}, not on one paper. Run `moe-theory verify PAPER`.")
    (paper,) = papers
    readings = {name.removeprefix(f"{paper}."): words for name, words in report.readings.items()}
    judged = {
        (verdict.claim, reading): {**verdict.to_json(), "reading": reading}
        for verdict in report.verdicts
        for reading in (verdict.reading, *verdict.also)
    }
    wanted = [(claim.id, reading) for claim in select_claims([paper]) for reading in readings]
    if missing := [pair for pair in wanted if pair not in judged]:
        raise InvalidReportError(
            f"{folder} has no verdict on {missing[0][0]} under {missing[0][1]}, and {len(missing) - 1} more are "
            f"missing. Run `moe-theory verify {paper}` whole."
        )
    return Recorded(
        paper=paper,
        command=without_out(report.command),
        seed=report.seed,
        error=report.error,
        finished=report.finished,
        budget=report.budget,
        seconds=round(sum(report.seconds.values()), 1),
        versions=report.versions,
        readings=readings,
        verdicts=[{field: judged[pair][field] for field in FIELDS} for pair in wanted],
    )


def together(folders: list[Path]) -> tuple[str, Recorded]:
    """A data set's title, and what is published of runs on it: verdicts on every claim that there is a run for.

    Raises: InvalidReportError for verdicts on several papers, several data sets, or none.
    """
    reports = [read_reports([folder]) for folder in folders]
    verdicts = [verdict for report in reports for verdict in report.verdicts]
    about = {(verdict.paper, verdict.data) for verdict in verdicts}
    if len(about) != 1:
        found = ", ".join(sorted(f"{paper} on {data}" for paper, data in about)) or "nothing"
        raise InvalidReportError(f"these have verdicts on {found}, not on one paper's claims on one data set.")
    ((paper, data),) = about
    places = {claim.id: place for place, claim in enumerate(select_claims([paper]))}
    if missing := places.keys() - {verdict.claim for verdict in verdicts}:
        raise InvalidReportError(f"there is no verdict on {min(missing)}, and {len(missing) - 1} more are missing.")
    readings = {name.removeprefix(f"{paper}."): words for report in reports for name, words in report.readings.items()}
    kept = [{field: verdict.to_json()[field] for field in FIELDS} for verdict in verdicts]
    for each in kept:
        each["command"] = without_out(each["command"])
    return data, Recorded(
        paper=paper,
        command="; ".join(without_out(report.command) for report in reports),
        seed=reports[0].seed,
        error=sum(report.error for report in reports),
        finished=max(report.finished for report in reports),
        budget=None,
        seconds=None,
        versions=reports[0].versions,
        readings=readings,
        verdicts=sorted(kept, key=lambda verdict: places[verdict["claim"]]),
    )


def without_out(command: str) -> str:
    """Command lines, several between semicolons, without --out: it says where the files of one machine are."""
    return "; ".join(map(_without_out, command.split("; ")))


def _without_out(command: str) -> str:
    words = shlex.split(command)
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if "--out" not in (before, word) and not word.startswith("--out=")
    ]
    return shlex.join(kept)


if __name__ == "__main__":
    main(sys.argv[1:])
