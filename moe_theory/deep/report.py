"""Runs of a deep preset: tables, warnings, a picture, and the same as JSON."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moe_theory.deep.datasets import DATASETS
from moe_theory.deep.experiments import claims_for
from moe_theory.deep.figures import draw_runs
from moe_theory.deep.fitting import words
from moe_theory.deep.judging import FILES, Judgement
from moe_theory.deep.presets import CONTINUAL, EDGE, PRESETS
from moe_theory.deep.runs import Plan, Stored
from moe_theory.deep.summary import LEAST_CHANGE, Estimate, Summary
from moe_theory.plot.document import Document, Picture
from moe_theory.plot.markdown import Markup, filled, paragraphs, table
from moe_theory.runs.files import plain, sealed
from moe_theory.sweep.dataset import to_netcdf
from moe_theory.verification.claim import Runs
from moe_theory.verification.request import MIN_REPLICATES
from moe_theory.verification.verdict import Verdict

HEIGHTS = {CONTINUAL: 5.2, EDGE: 3.0}  # of the picture, inches
SCHEMA = "moe-theory/deep/1"
BEGIN = (
    "M: experts, T: rounds; digits are embedded, other data needs --data DIR",
    "to begin: moe-theory deep continual-mnist-small",
)
# Column titles of measures, in this order; those in `COMPARED` have a column of differences too.
TITLES = {
    "generalization_error": "error G_T",
    "generalization_error_flushed": "G_T, flushed",
    "forgetting": "forgetting F_T",
    "accuracy": "accuracy",
    "generalization_error_routed": "G_T, routed",
    "accuracy_routed": "accuracy, routed",
}
COMPARED = ("generalization_error", "accuracy")
MEANING = {
    "generalization_error": "G_T: mean-squared test error of all tasks after the last round",
    "generalization_error_flushed": "flushed: once the tasks in progress are done",
    "forgetting": "F_T: its rise since each task was learned",
    "accuracy": "accuracy: on all tasks so far, mean over rounds",
    "accuracy_routed": "routed: tested with the expert that the router picks for the test images, else (task-given) "
    "with the one that served the task",
    "terminated": "ended: rounds after termination of the gate updates",
    "dropped": "dropped: tasks that found all servers busy",
}


def presets() -> Document:
    """Return the presets, with the figure, the data and the sizes of each."""
    facts = [
        {
            "preset": preset.name,
            "where": preset.where,
            "paper": preset.paper,
            "data": preset.data,
            "is_embedded": not DATASETS[preset.data].files,
            "experts": preset.experts,
            "rounds": preset.num_rounds,
            "network": preset.dims.network,
            "cells": [*preset.cells()],
        }
        for preset in PRESETS.values()
    ]
    rows = [
        (preset.name, preset.where, preset.data, ", ".join(map(str, preset.experts)), str(preset.num_rounds))
        for preset in PRESETS.values()
    ]
    text = paragraphs([table(("preset", "figure", "data", "M", "T"), rows, ("T",)), *BEGIN])
    return Document(lambda: facts, lambda _: text)


def heading(plan: Plan) -> str:
    preset = plan.preset
    return (
        f"{preset.name}: {preset.where} of {preset.paper} on {plan.data.title}, reading {plan.setting}, "
        f"{plan.replicates:,} {'seed' if plan.replicates == 1 else 'seeds'}, {preset.num_rounds} rounds; {words(plan)}"
    )


def tables(summary: Summary) -> list[Markup]:
    """Return tables of the cells: measures, paired differences to a baseline, and tests that are routed.

    Numbers are mean ± standard error.
    """
    blocks = (_measures(summary, is_routed=False), _differences(summary), _measures(summary, is_routed=True))
    made = []
    for block in blocks:
        titles = list(block[0])
        rows = [[cell.name, *row.values()] for cell, row in zip(summary.cells, block, strict=True)]
        made.append(table(("cell", *titles), rows, titles))
    return made


def _measures(summary: Summary, is_routed: bool) -> list[dict[str, str]]:
    """Return the measures of each cell by title."""
    titles = {name: title for name, title in TITLES.items() if name.endswith("_routed") == is_routed}
    return [
        {title: _shown(name, cell.measures[name]) for name, title in titles.items() if name in cell.measures}
        for cell in summary.cells
    ]


def _differences(summary: Summary) -> list[dict[str, str]]:
    """Return the differences of each cell, the gate drive, and the share of rounds after termination, by title."""
    baselines = {cell.baseline for cell in summary.cells if cell.baseline}
    terminates = "terminated" in summary.cells[0].measures
    baseline = "with termination" if terminates else "adaptive"
    if len(baselines) == 1:
        baseline = baselines.pop()
    rows = []
    for cell in summary.cells:
        row = {}
        for name in COMPARED:
            title = f"{TITLES[name].removeprefix('error ')} less {baseline}"
            row[title] = _shown(name, cell.differences[name], "+") if cell.differences else ""
        row["κ"] = f"{cell.drive:.2g}"
        if terminates:
            row["ended"] = "" if cell.exploration_rounds is None else f"{cell.measures['terminated'].mean:.0%}"
        else:
            row["dropped"] = f"{cell.measures['dropped'].mean:.1f}"
        rows.append(row)
    return rows


def sigma_line(summary: Summary) -> str:
    return (
        f"sigma_0, of an element of the normalised mean images across tasks: variance {summary.variance:.3g}, "
        f"deviation {summary.deviation:.3g}"
    )


def drive_line(summary: Summary) -> str:
    return (
        f"κ = eta |g|^2 |w_t - w_(t-1)|: median {summary.drive:.3g}, 95 % below {summary.drive_quantile:.3g} (far "
        "above 10 the first step freezes the router; below 1 it takes many arrivals to specialise)"
    )


def warnings_of(summary: Summary) -> list[str]:
    lines = []
    least, most = summary.drives
    if summary.drive > most:
        lines.append(
            f"WARNING: the median of κ, {summary.drive:.3g}, is above {most:g}: experts specialise, but the router "
            "freezes by itself with its first steps, and termination has little to do. Lower gate_scale, as --kappa 3 "
            "does, to see what it does."
        )
    if summary.drive < least:
        lines.append(
            f"WARNING: the median of κ, {summary.drive:.3g}, is below {least:g}: experts hardly specialise in "
            f"{summary.num_rounds} rounds. Raise gate_scale, as a larger --kappa does."
        )
    for cell in summary.cells:
        if cell.num_unmoved:
            experts = ", ".join(map(str, cell.unmoved_experts))
            lines.append(
                f"WARNING: dead experts in {cell.name}: {cell.num_unmoved:,} of {cell.num_learned:,} tasks changed "
                f"their expert's weights by less than {LEAST_CHANGE:g} (experts {experts})"
            )
    taken = {cell.name: cell.exploration_rounds for cell in summary.cells if cell.exploration_rounds is not None}
    exploring = {name: rounds for name, rounds in taken.items() if rounds >= summary.num_rounds}
    if exploring:
        cells = ", ".join(f"{rounds} in {name}" for name, rounds in exploring.items())
        lines.append(
            f"WARNING: nothing can be terminated in {summary.num_rounds} rounds where exploration takes T1 = "
            f"ceil(M / eta) of them: {cells}. Raise learning_rate."
        )
    return lines


def picture(plan: Plan, runs: Runs, summary: Summary) -> Picture:
    caption = " ".join(f"{line}." for line in (heading(plan), sigma_line(summary), drive_line(summary)))
    title = f"{plan.preset.name} on {plan.data.title}"
    height = HEIGHTS[plan.preset.paper] * max(len(plan.preset.scales), 1)
    return Picture(title, height, lambda figure: draw_runs(plan.preset, title, runs, figure), caption)


def document(judgement: Judgement, folder: Path) -> Document:
    """Each cell's errors, how they differ, and the verdicts on the figure's claims, with files for the folder."""
    plan, summary = judgement.plan, judgement.summary
    verdicts = judgement.verdicts.source
    paths = [folder / name for name in FILES]
    numbers = sealed(summary_json(plan, summary, judgement.verdicts, paths))

    def text(_: int) -> str:
        is_judged = bool(claims_for(plan.preset, plan.data.title))
        return filled(
            Path(__file__).with_name("deep.md"),
            tables=tables(summary),
            meaning=[text for name, text in MEANING.items() if name in summary.cells[0].measures],
            magnitudes=[sigma_line(summary), drive_line(summary)],
            warnings=[*warnings_of(summary), *(verdict_warnings(summary) if is_judged else ())],
        )

    contents = (
        lambda path: to_netcdf(judgement.to_xarray(), path),
        lambda path: path.write_text(numbers),
        verdicts,
        picture(plan, judgement.runs, summary).write,
    )
    return Document(
        lambda: json.loads(numbers),
        text,
        verdicts=verdicts if judgement.verdicts else None,
        folder=folder,
        files=dict(zip(FILES, contents, strict=True)),
    )


def verdict_warnings(summary: Summary) -> list[str]:
    """What is said of too few seeds."""
    if summary.num_replicates >= MIN_REPLICATES:
        return []
    many = f"--replicates {MIN_REPLICATES} resumes, and is another look at the claims, with an error of its own."
    if summary.num_replicates == 1:
        return [f"WARNING: one seed decides no claim; none is judged. {many}"]
    return [
        f"WARNING: verdicts from {summary.num_replicates} seeds: with fewer than {MIN_REPLICATES} most stay "
        f"inconclusive. {many}"
    ]


def summary_json(plan: Plan, summary: Summary, judged: Sequence[Verdict], paths: Sequence[Path]) -> dict[str, Any]:
    """All cells, magnitudes, warnings and verdicts; numbers that do not exist are null."""
    preset, params = plan.preset, next(iter(plan.params().values()))
    return {
        "schema": SCHEMA,
        "preset": preset.name,
        "where": preset.where,
        "paper": preset.paper,
        "data": plan.data.title,
        "reading": plan.reading.name,
        "settings": {name: getattr(params, name) for name in plan.settings},
        "seed": plan.seed,
        "replicates": plan.replicates,
        "rounds": preset.num_rounds,
        "dims": dataclasses.asdict(preset.dims),
        "test_images": len(plan.data.test.labels),
        "cells": [plain(dataclasses.asdict(cell)) for cell in summary.cells],
        "sigma_0": {"variance": summary.variance, "deviation": summary.deviation},
        "drive": {"median": summary.drive, "q95": summary.drive_quantile},
        "warnings": warnings_of(summary),
        "verdicts": [verdict.to_json() for verdict in judged],
        "files": [str(path) for path in paths],
    }


def _shown(measure: str, estimate: Estimate, sign: str = "") -> str:
    digits = 3 if measure.startswith("accuracy") else 4
    mean = f"{estimate.mean:{sign}.{digits}f}"
    return f"{mean} ± {estimate.standard_error:.{digits}f}" if math.isfinite(estimate.standard_error) else mean


def stored_lines(plan: Plan) -> list[str]:
    """Return a line on the runs that the plan's folder has."""
    complete = plan.stored[Stored.COMPLETE]
    partial = plan.stored[Stored.PARTIAL]
    damaged = plan.stored[Stored.DAMAGED]
    lines = []
    if complete + partial:
        lines.append(f"resuming: of {plan.stored.total()} runs {complete} are complete and {partial} begun")
    if damaged:
        lines.append(f"of {plan.stored.total()} runs {damaged} are damaged, and are computed again")
    return lines
