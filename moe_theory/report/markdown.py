"""A report as a Markdown page: summary, matrix, then each claim with what decided it."""

import html
import re
from collections.abc import Iterator, Sequence

from moe_theory.report.contents import (
    Chapter,
    Entry,
    arranged,
    claim_anchor,
    cut_short,
    error_words,
    gist,
    summary,
    verdict_anchor,
)
from moe_theory.report.words import (
    ABOUT_ERROR,
    ABOUT_INTERVALS,
    ABOUT_MEANS,
    ABOUT_POWER,
    MEANINGS,
    facts,
    headline,
    kind_words,
    number,
    repeat_words,
    status_word,
)
from moe_theory.verify.verdict import Report, Status, Verdict


def to_markdown(report: Report) -> str:
    """The report as one page, without pictures."""
    chapters = arranged(report)
    claims = {entry.claim for chapter in chapters for entry in chapter.entries}
    lines = ["# Verdicts", "", f"{summary(report.verdicts)}. {gist(chapters)}", ""]
    lines += [*_counts(chapters), "", *_about(report)]
    for chapter in chapters:
        lines += [f"## {_text(chapter.paper)}", "", *_matrix(chapter), ""]
    lines += ["## Claims", ""]
    for chapter in chapters:
        for entry in chapter.entries:
            lines += [*_card(entry, claims), ""]
    lines += [*_made(report)]
    return "\n".join(lines) + "\n"


def _counts(chapters: Sequence[Chapter]) -> list[str]:
    rows = [
        [_text(chapter.paper), _code(reading), *(str(counts[status] or "") for status in Status)]
        for chapter in chapters
        for reading in chapter.readings
        for counts in [chapter.counts(reading)]
    ]
    return _table(["paper", "reading", *Status], rows)


def _about(report: Report) -> list[str]:
    lines = ["## How to read this page", ""]
    lines += [f"- **{status_word(status)}**: {meaning}" for status, meaning in MEANINGS.items()]
    for words in (ABOUT_MEANS, ABOUT_INTERVALS, f"{ABOUT_ERROR} {error_words(report)}", ABOUT_POWER):
        lines += ["", words]
    return [*lines, ""]


def _matrix(chapter: Chapter) -> list[str]:
    rows = []
    for entry in chapter.entries:
        cells = (chapter.verdict(entry, reading) for reading in chapter.readings)
        marks = [f"[{cell.status}](#{verdict_anchor(cell)})" if cell else "" for cell in cells]
        rows.append([_link(entry.claim), _text(entry.first.where), *marks])
    return _table(["claim", "source", *(_text(reading) for reading in chapter.readings)], rows)


def _card(entry: Entry, claims: set[str]) -> Iterator[str]:
    first = entry.first
    yield f'### <a id="{claim_anchor(entry.claim)}"></a>{_code(entry.claim)}'
    yield ""
    yield f"{_text(first.statement)} ({_text(first.where)}; {kind_words(first)})"
    yield ""
    if first.formula:
        yield _formula(first.formula)
        yield ""
    if first.replaced_by:
        known = first.replaced_by in claims
        yield f"Replaced by: {_link(first.replaced_by) if known else _code(first.replaced_by)}."
        yield ""
    if entry.replaces:
        yield f"Replaces {', '.join(_link(claim) for claim in entry.replaces)}."
        yield ""
    for verdict in entry.verdicts:
        yield from _verdict(verdict)


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield f'#### <a id="{verdict_anchor(verdict)}"></a>{status_word(verdict.status)} under {_code(verdict.setting)}'
    yield ""
    yield _text(headline(verdict))
    yield ""
    yield from _table(["", ""], [[fact.label, _text(fact.text())] for fact in facts(verdict)])
    yield ""
    if len(verdict.looks) > 1:
        names = ["replicates", "at", "observed − predicted", "low", "high", "error of the look"]
        rows = [
            [str(look.replicates), _text(look.at), *map(number, (look.estimate, look.low, look.high, look.error))]
            for look in verdict.looks
        ]
        yield from _table(names, rows)
        yield ""
    yield f"{repeat_words(verdict)} {_code(verdict.command)}"
    yield ""


def _made(report: Report) -> Iterator[str]:
    yield "## How this was made"
    yield ""
    yield f"- Command: {_code(report.command)}"
    if report.finished:
        yield f"- Finished: {_text(report.finished)}"
    yield f"- Seed: {report.seed}; runs in {'double' if report.is_x64 else 'single'} precision"
    yield f"- Versions: {', '.join(f'{_text(name)} {_text(version)}' for name, version in report.versions.items())}"
    if report.budget is not None:
        spent = ", ".join(f"{_link(verdict.claim)} ({_text(verdict.setting)})" for verdict in cut_short(report))
        yield f"- Budget: {number(report.budget)} seconds; used up by: {spent or 'none'}"
    for name, words in report.readings.items():
        yield f"- Reading {_code(name)}: {_text(words)}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    return lines + ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]


def _link(claim: str) -> str:
    return f"[{_code(claim)}](#{claim_anchor(claim)})"


def _text(words: str) -> str:
    """Words in one line, where nothing is taken for markup."""
    words = re.sub(r"<|&(?=#?\w+;)", lambda found: html.escape(found[0]), " ".join(words.split()))
    return re.sub(r"[\\`*]|(?<=\])\(", r"\\\g<0>", words)


def _formula(latex: str) -> str:
    """A formula in one line, where no sign is taken for a tag."""
    words = latex.replace("<", r"\lt ").replace(">", r"\gt ").split()
    return f"${' '.join(words)}$"


def _code(words: str) -> str:
    """Words between as many backticks as they need."""
    words = " ".join(words.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    room = " " if "`" in words else ""
    return f"{fence}{room}{words}{room}{fence}"
