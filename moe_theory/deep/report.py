"""Reports of the runs of a deep preset."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

from moe_theory.core.errors import plural
from moe_theory.deep.datasets import DATASETS
from moe_theory.deep.experiments import claims_for
from moe_theory.deep.figures import draw_runs
from moe_theory.deep.judging import FILES, Judgement
from moe_theory.deep.presets import CONTINUAL, EDGE, PRESETS
from moe_theory.deep.runs import Plan
from moe_theory.deep.summary import LEAST_CHANGE, CellSummary, Estimate, Summary
from moe_theory.plot.document import Document, Picture
from moe_theory.plot.markdown import Markup, filled, paragraphs, table
from moe_theory.runs.files import plain, sealed
from moe_theory.sweep.dataset import to_netcdf
from moe_theory.verification.claim import Runs
from moe_theory.verification.request import MIN_REPLICATES
from moe_theory.verification.verdict import Verdict

HEIGHTS = {CONTINUAL: 5.2, EDGE: 3.0}  # height of the picture in inches
SCHEMA = "moe-theory/deep/1"
BEGIN = (
    "M: experts, T: rounds; digits are embedded, and other data needs --data DIR",
    "to begin: moe-theory deep continual-mnist-small",
)
# Column titles of measures, in this order. Measures in `COMPARED` also have a column of differences.
TITLES = {
    "generalization_error": "error G_T",
    "generalization_error_flushed": "G_T, flushed",
    "forgetting": "forgetting F_T",
    "accuracy": "accuracy",
}
COMPARED = {"generalization_error": "G_T", "accuracy": "accuracy"}
MEANING = {
    "generalization_error": "G_T: mean-squared test error of all tasks after the last round",
    "generalization_error_flushed": "flushed: G_T once the tasks in progress are done",
    "forgetting": "F_T: rise of the error since each task was learned",
    "accuracy": "accuracy: mean over rounds of the accuracy on all tasks so far",
    "terminated": "ended: share of rounds after termination of the gate updates",
    "dropped": "dropped: tasks that found all servers busy",
}


def presets() -> Document:
    facts = []
    rows = []
    for preset in PRESETS.values():
        is_embedded = not DATASETS[preset.data].files
        fact = {"preset": preset.name, "where": preset.where, "paper": preset.paper, "data": preset.data}
        fact |= {"is_embedded": is_embedded, "experts": preset.experts, "rounds": preset.num_rounds}
        facts.append(fact | {"network": preset.dims.network, "cells": [*preset.cells()]})
        experts = ", ".join(map(str, preset.experts))
        rows.append((preset.name, preset.where, preset.data, experts, str(preset.num_rounds)))
    text = paragraphs([table(("preset", "figure", "data", "M", "T"), rows, ("T",)), *BEGIN])
    return Document(lambda: facts, lambda _: text)


def heading(plan: Plan) -> str:
    preset = plan.preset
    dims = plan.preset.dims
    return (
        f"{preset.name}: {preset.where} of {preset.paper} on {plan.data.title}, reading {plan.setting}, "
        f"{plan.replicates:,} {plural(plan.replicates, 'seed')}, {preset.num_rounds} rounds; network "
        f"{dims.network}, {dims.num_epochs} epochs of {dims.num_samples} images in batches of {dims.batch_size}, "
        f"{len(plan.data.test.labels):,} test images"
    )


def tables(summary: Summary) -> list[Markup]:
    """Return two tables of the cells: measures, and paired differences to a baseline, both with standard errors."""
    tables_of_cells = []
    for columns_of in (_measures, _differences):
        rows = [columns_of(summary, cell) for cell in summary.cells]
        cells = [[cell.name, *row.values()] for cell, row in zip(summary.cells, rows, strict=True)]
        tables_of_cells.append(table(("cell", *rows[0]), cells, numbers=list(rows[0])))
    return tables_of_cells


def _measures(_: Summary, cell: CellSummary) -> dict[str, str]:
    return {title: _estimate(name, cell.measures[name]) for name, title in TITLES.items() if name in cell.measures}


def _differences(summary: Summary, cell: CellSummary) -> dict[str, str]:
    baselines = {cell.baseline for cell in summary.cells if cell.baseline}
    terminates = "terminated" in cell.measures
    baseline = "with termination" if terminates else "adaptive"
    if len(baselines) == 1:  # all cells have the same baseline
        baseline = baselines.pop()
    row = {}
    for name, title in COMPARED.items():
        difference = cell.differences.get(name)  # None for the baseline itself
        row[f"{title} less {baseline}"] = "" if difference is None else _estimate(name, difference, sign="+")
    row["κ"] = f"{cell.drive:.2g}"
    if terminates:
        row["ended"] = "" if cell.exploration_rounds is None else f"{cell.measures['terminated'].mean:.0%}"
    else:
        row["dropped"] = f"{cell.measures['dropped'].mean:.1f}"
    return row


def _estimate(measure: str, estimate: Estimate, sign: str = "") -> str:
    digits = {"accuracy": 3}.get(measure, 4)
    mean = f"{estimate.mean:{sign}.{digits}f}"
    if math.isfinite(estimate.standard_error):
        return f"{mean} ± {estimate.standard_error:.{digits}f}"
    return mean


def magnitudes(summary: Summary) -> tuple[str, str]:
    return (
        f"sigma_0 of an element of the normalised mean images across tasks: variance {summary.variance:.3g}, "
        f"deviation {summary.deviation:.3g}",
        f"κ = eta |g|^2 |w_t - w_(t-1)|: median {summary.drive:.3g}, 95 % below {summary.drive_quantile:.3g} (far "
        "above 10 the first step freezes the router, and below 1 it takes many arrivals to specialise)",
    )


def warnings_of(summary: Summary) -> list[str]:
    lines = []
    lowest, highest = summary.drives
    if summary.drive > highest:
        lines.append(
            f"WARNING: the median of κ, {summary.drive:.3g}, is above {highest:g}. Experts specialise, but the router "
            "freezes by itself in its first steps, so termination has little effect. κ grows like the square of "
            "gate_scale. Lower gate_scale to see the effect of termination."
        )
    if summary.drive < lowest:
        lines.append(
            f"WARNING: the median of κ, {summary.drive:.3g}, is below {lowest:g}. Experts hardly specialise in "
            f"{summary.num_rounds} rounds. κ grows like the square of gate_scale. Raise gate_scale."
        )
    for cell in summary.cells:
        if cell.num_unmoved:
            lines.append(
                f"WARNING: dead experts in {cell.name}: {cell.num_unmoved:,} of {cell.num_learned:,} tasks changed "
                f"their expert's weights by less than {LEAST_CHANGE:g} (experts "
                f"{', '.join(map(str, cell.unmoved_experts))})"
            )
        if cell.exploration_rounds is not None and cell.exploration_rounds >= summary.num_rounds:
            lines.append(
                f"WARNING: nothing can be terminated in {cell.name} in {summary.num_rounds} rounds: exploration takes "
                f"T1 = ceil(M / eta) = {cell.exploration_rounds} of them. Raise learning_rate."
            )
    return lines


def verdict_warnings(summary: Summary) -> list[str]:
    number = summary.num_replicates
    if number >= MIN_REPLICATES:
        return []
    why = "a single seed cannot decide claims, so there are no verdicts"
    if number > 1:
        why = f"the verdicts are from {number} seeds, but with fewer than {MIN_REPLICATES} seeds most stay inconclusive"
    advice = f"--replicates {MIN_REPLICATES} resumes, and tests the claims again with a separate error budget."
    return [f"WARNING: {why}. {advice}"]


def picture(plan: Plan, runs: Runs, summary: Summary) -> Picture:
    caption = " ".join(f"{line}." for line in (heading(plan), *magnitudes(summary)))
    title = f"{plan.preset.name} on {plan.data.title}"
    height = HEIGHTS[plan.preset.paper] * max(len(plan.preset.scales), 1)
    return Picture(title, height, lambda figure: draw_runs(plan.preset, title, runs, figure), caption)


def document(judgement: Judgement, folder: Path) -> Document:
    plan = judgement.plan
    summary = judgement.summary
    verdicts = judgement.verdicts.source
    paths = [folder / name for name in FILES]
    sealed_json = sealed(summary_json(plan, summary, judgement.verdicts, paths))
    explanations = [text for name, text in MEANING.items() if name in summary.cells[0].measures]

    def text(_: int) -> str:
        is_judged = bool(claims_for(plan.preset, plan.data.title))
        return filled(
            Path(__file__).with_name("deep.md"),
            tables=tables(summary),
            meaning=explanations,
            magnitudes=[*magnitudes(summary)],
            warnings=[*warnings_of(summary), *(verdict_warnings(summary) if is_judged else ())],
        )

    contents = (  # of `FILES`
        lambda path: to_netcdf(judgement.to_xarray(), path),
        lambda path: path.write_text(sealed_json),
        verdicts,
        picture(plan, judgement.runs, summary).write,
    )
    return Document(
        lambda: json.loads(sealed_json),
        text,
        verdicts=verdicts if judgement.verdicts else None,
        folder=folder,
        files=dict(zip(FILES, contents, strict=True)),
    )


def summary_json(plan: Plan, summary: Summary, judged: Sequence[Verdict], paths: Sequence[Path]) -> dict[str, object]:
    preset = plan.preset
    params = next(iter(plan.params().values()))
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
