"""What a verification says at its end: how sure its verdicts are, where time went, and how to see each refutation."""

from moe_theory.report.contents import cut_short, error_words, summary
from moe_theory.verify.verdict import Report, Status

MOST_NAMED = 3  # experiments named for the time they took


def closing_lines(report: Report) -> list[str]:
    """Lines under the table of verdicts."""
    return [
        summary(report.verdicts),
        *_refutations(report),
        *_errors(report),
        _error_budget(report),
        *_time_budget(report),
    ]


def _refutations(report: Report) -> list[str]:
    refuted = [verdict for verdict in report.verdicts if verdict.status is Status.REFUTED]
    lines = [f"  {verdict.replicates} replicates: {verdict.command}" for verdict in refuted]
    return ["see them fail:", *lines] if refuted else []


def _errors(report: Report) -> list[str]:
    return [
        f"ERROR in {verdict.claim} under {verdict.setting}: {verdict.reason}"
        for verdict in report.verdicts
        if verdict.status is Status.ERROR
    ]


def _error_budget(report: Report) -> str:
    asymptotic = sum(bool(verdict.interval_kind) and not verdict.is_exact for verdict in report.verdicts)
    if len(report.verdicts) == 1:
        return error_words(report)
    return f"{error_words(report)} {asymptotic} of them have asymptotic intervals."


def _time_budget(report: Report) -> list[str]:
    if report.budget is None:
        return []
    stopped = cut_short(report)
    slowest = sorted(report.seconds.items(), key=lambda item: -item[1])[:MOST_NAMED]
    most = ", ".join(f"{name} ({seconds:.0f} s)" for name, seconds in slowest)
    lines = [f"budget: {report.budget:.0f} s, of which {sum(report.seconds.values()):.0f} s were used; most by {most}"]
    if stopped:
        lines.append(f"it was used up with {len(stopped)} undecided; the same command goes on with them:")
    lines += [f"  {verdict.claim} under {verdict.setting}, {verdict.replicates} replicates" for verdict in stopped]
    return lines
