"""Verdicts with their intervals, and numbers behind figures, at a fixed seed: no clock decides anything.

Of a figure: the variables that its CSV file shows to six digits, here to the last one.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import moe_theory as mt
from benchmarks.oracle.records import Record, number_or_array

SEED = 7
NUMBERS = (
    "replicates", "predicted", "observed", "standard_error", "interval", "margin", "error", "smallest_discrepancy",
    "trivial", "is_exact",
)  # fmt: skip
LOOK = ("replicates", "estimate", "low", "high", "error")  # numbers of an interim analysis
CURVE = ("abscissa", "predicted", "observed", "low", "high", "margin")  # numbers of all components


class Request(NamedTuple):
    """Claims that are judged together, so that the error is split over them alone."""

    patterns: Sequence[str]  # ids, globs or papers
    replicates: int  # at most, of every experiment
    readings: str | None = "quick"  # None: each paper's defaults
    without: Sequence[str] = ()  # patterns of claims that are left out


def verdicts(requests: Sequence[Request]) -> Iterator[Record]:
    """Judge the claims of each request and yield a record for each verdict."""
    for request in requests:
        ids = _ids(request.patterns)
        left_out = _ids(request.without)
        chosen = [claim for claim in ids if claim not in left_out]
        for verdict in mt.verify(chosen, readings=request.readings, replicates=request.replicates, seed=SEED):
            yield Record(f"verify/{verdict.claim}/{verdict.reading}/{request.replicates}", _fields(verdict))


def _ids(patterns: Sequence[str]) -> dict[str, None]:
    """Return the ids of the claims that match, each once, in their order."""
    claims = [claim for pattern in patterns for claim in mt.claims(pattern)]
    return {claim.id: None for claim in claims}


def _fields(verdict: mt.Verdict) -> dict[str, Any]:
    fields: dict[str, Any] = {"status": str(verdict.status), "stopped": str(verdict.stopped)}
    fields |= {name: number_or_array(getattr(verdict, name)) for name in NUMBERS}
    fields |= {f"looks/{name}": _column(verdict.looks, name) for name in LOOK}
    if verdict.curve is not None:
        curve = {name: getattr(verdict.curve, name) for name in CURVE}
        fields |= {f"curve/{name}": number_or_array(values) for name, values in curve.items() if values is not None}
    return fields


def _column(rows: Sequence[Any], name: str) -> Any:
    return number_or_array(np.array([getattr(row, name) for row in rows]))


NUMERIC = "biufc"  # kinds of NumPy's types that are numbers


class Drawing(NamedTuple):
    """A figure at small sizes."""

    name: str  # "PAPER.FIGURE"
    options: dict[str, Any]  # of `mt.figure`
    clocked: tuple[str, ...] = ()  # variables that a clock measures, which are left out


def figures(drawings: Sequence[Drawing]) -> Iterator[Record]:
    """Compute each figure and yield a record with its variables."""
    for drawing in drawings:
        data, picture = mt.figure(drawing.name, seed=SEED, **drawing.options)
        plt.close(picture)
        numbers = variables_of(data.drop_vars(drawing.clocked))
        yield Record(f"figures/{drawing.name}", numbers)


def variables_of(data: xr.Dataset) -> dict[str, Any]:
    """Return the numbers of a dataset's variables and coordinates by name. Texts are left out."""
    arrays = {str(name): data[name].values for name in data.variables}
    return {name: number_or_array(values) for name, values in arrays.items() if values.dtype.kind in NUMERIC}
