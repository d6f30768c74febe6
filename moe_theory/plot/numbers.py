"""The numbers in a figure, which are datasets over axes and statistics of replicates by round."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import ArrayLike, Float, Shaped

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import Observe, System, recorded_rounds
from moe_theory.plot.spec import Setup
from moe_theory.runs import Cell, Run
from moe_theory.verification.claim import Experiment

Values = dict[str, Any]  # at one place in a figure's data, by variable

# The quantiles over replicates that a band spans.
LOW = 0.1
HIGH = 0.9
STRIDE = 2  # early on, when most happens, every other round is drawn
DENSE_ROUNDS = 60  # number of these early rounds
SPARSE_RECORDS = 32  # number of later records, evenly spread on a logarithmic axis


def over(function: Callable[..., Values], inner: Values | None = None, /, **axes: Any) -> xr.Dataset:
    """Return the results of `function` over the `axes` as a dataset, with NaN for missing names.

    Args:
        function: takes a value of each axis by position, and returns numbers or arrays by name.
        inner: values on the axes of these arrays, by axis. An array with fewer axes has the last of them.
    """
    inner = inner or {}
    results = [function(*place) for place in itertools.product(*axes.values())]
    shape = tuple(map(len, axes.values()))
    variables = {}
    for name in dict.fromkeys(itertools.chain(*results)):
        inner_shape = next(np.shape(result[name]) for result in results if name in result)
        values = np.array([result.get(name, np.full(inner_shape, np.nan)) for result in results])
        inner_axes = list(inner)[len(inner) - len(inner_shape) :]
        variables[name] = ([*axes, *inner_axes], values.reshape(*shape, *inner_shape))
    labels = {name: (name, np.asarray(values)) for name, values in {**axes, **inner}.items()}
    return xr.Dataset(variables, labels)


def across_replicates(samples: Shaped[np.ndarray, "*R B"]) -> dict[str, Float[np.ndarray, " *R"]]:
    """Return the mean, band and standard error by recorded round. The error of one replicate is NaN."""
    samples = np.asarray(samples, np.float64)
    low, high = np.quantile(samples, (LOW, HIGH), axis=-1)
    count = samples.shape[-1]
    spread = samples.std(axis=-1, ddof=1) if count > 1 else np.full(samples.shape[:-1], np.nan)
    return {"mean": samples.mean(axis=-1), "low": low, "high": high, "error": spread / np.sqrt(count)}


def means(samples: Mapping[str, Shaped[np.ndarray, "*R B"]]) -> dict[str, Float[np.ndarray, " *R"]]:
    """Return means over replicates by name, and standard errors as NAME_error."""
    statistics = {}
    for name, values in samples.items():
        across = across_replicates(values)
        statistics |= {name: across["mean"], f"{name}_error": across["error"]}
    return statistics


def log_edges(centres: Float[ArrayLike, " R"]) -> Float[np.ndarray, " R+1"]:
    """Return edges between neighbouring centres, and beyond the ends, on a logarithmic axis."""
    logs = np.log(np.asarray(centres))  # an array without labels, by which xarray would subtract a value from itself
    middles = (logs[1:] + logs[:-1]) / 2
    first = 2 * logs[0] - middles[0]
    last = 2 * logs[-1] - middles[-1]
    return np.exp(np.r_[first, middles, last])


def log_axis_cells(
    settings: Mapping[str, Any], system: System, observe: Observe, num_rounds: int, also: Iterable[int] = ()
) -> list[Cell]:
    """Return a cell for each name in `settings`, with its parameters. All cells record further rounds `also`.

    For a further round between two strides, the last round before it is recorded.
    """
    rounds = recorded_rounds(num_rounds, STRIDE)
    dense = np.flatnonzero(rounds <= DENSE_ROUNDS)
    sparse = np.searchsorted(rounds, np.rint(np.geomspace(DENSE_ROUNDS, num_rounds, SPARSE_RECORDS)))
    sparse = np.minimum(sparse, len(rounds) - 1)
    extra = np.searchsorted(rounds, np.array(list(also), int), side="right") - 1
    places = np.concatenate([dense, sparse, extra[extra >= 0]])
    keep = tuple(np.unique(places).tolist())
    return [Cell(name, system, params, num_rounds, STRIDE, observe, keep=keep) for name, params in settings.items()]


def over_rounds(experiment: Experiment) -> Callable[[Setup], xr.Dataset]:
    """Return the data of a figure over an experiment's rounds, by `cell`.

    A record has the name of its field or key, or the name of `observe` for a scalar. Its value is a mean over
    replicates, with the band and error of `across_replicates` as NAME_low, NAME_high and NAME_error.
    """

    def compute(setup: Setup) -> xr.Dataset:
        drawn_experiment = experiment
        if setup.rounds != experiment.num_rounds:
            drawn_experiment = dataclasses.replace(experiment, num_rounds=setup.rounds, lengths={})
        runs = setup.run(drawn_experiment.cells_under(setup.reading))
        cells = [_statistics(run, experiment.observe.__name__) for run in runs.values()]
        return xr.concat(cells, xr.Variable("cell", list(runs)), join="outer")

    return compute


def _statistics(run: Run, name: str) -> xr.Dataset:
    columns = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(run.records):
        field = jax.tree_util.keystr(path, simple=True, separator="_") or name
        if np.ndim(leaf) != 2:
            raise InvalidValueError(
                f"the record {field} has shape {np.shape(leaf)[1:-1]} per replicate, but a curve needs a scalar. "
                "Observe a scalar, or give the figure its own `compute`."
            )
        for kind, values in across_replicates(leaf).items():
            columns[field if kind == "mean" else f"{field}_{kind}"] = ("round", values)
    return xr.Dataset(columns, {"round": run.rounds})
