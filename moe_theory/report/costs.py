"""What a sweep will take, and what a run of it did, for a terminal."""

import datetime

from rich.table import Table

from moe_theory.sweep.estimate import Estimate
from moe_theory.sweep.runner import ChunkCounts

MOST_DAMAGED = 5  # files that are named


def estimate_table(costs: Estimate) -> Table:
    """A sweep's size and price, a row each."""
    table = Table(title="what this sweep takes", title_justify="left", show_header=False)
    shape = " x ".join(f"{size} {name}" for name, size in costs.shape.items())
    rows = {
        "cells": f"{costs.cells:,}" + (f" ({shape})" if costs.shape else ""),
        "replicates": f"{costs.replicates:,} of each cell",
        "chunks": f"{costs.chunks:,} of {costs.width:,} replicates, {costs.present:,} of them there already",
        "compilations": f"{costs.programs:,}, about {_seconds(costs.compile_seconds)} in all unless kept from before",
        "memory": f"{_size(costs.chunk_bytes)} a chunk, {costs.workers} at once",
        "disk": _size(costs.disk_bytes),
        "work": f"{costs.replicate_rounds / 1e6:,.1f} M replicate-rounds to compute",
        "time": f"about {_seconds(costs.run_seconds)} with {costs.workers} worker{'s' if costs.workers > 1 else ''}, "
        "from a short run on this machine",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def closing_lines(counts: ChunkCounts) -> list[str]:
    """What a run of a sweep did, in words."""
    lines = [
        f"damaged, computed again: {name}.npz: {reason}" for name, reason in list(counts.damaged.items())[:MOST_DAMAGED]
    ]
    if len(counts.damaged) > MOST_DAMAGED:
        lines.append(f"and {len(counts.damaged) - MOST_DAMAGED} more damaged chunks, computed again")
    facts = [f"{counts.computed:,} computed", f"{counts.present:,} were there"]
    if counts.elsewhere:
        facts.append(f"{counts.elsewhere:,} computed by other processes")
    return [*lines, f"{counts.num_chunks:,} chunks: {', '.join(facts)}"]


def _seconds(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return str(datetime.timedelta(seconds=round(seconds)))


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
