"""Many settings of a system in one labelled dataset."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import PyTree, Shaped

from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.fields import fields_of
from moe_theory.core.system import Observe, Params, System, check_replicates, observe_info
from moe_theory.runs.cells import Cell, Run, run_cells
from moe_theory.runs.progress import Progress, automatic, shown
from moe_theory.sweep.dataset import REPLICATE, ROUND, long_name


def vary(
    system: System,
    params: Params,
    num_rounds: int,
    replicates: int,
    record_every: int = 1,
    *,
    observe: Observe = observe_info,
    seed: int = 0,
    progress: Progress = automatic,
    **axes: Sequence[Any],
) -> xr.Dataset:
    """Run a system at every combination of some parameters' values, in one program.

    Replicate i draws the same numbers in every setting and in `simulate_batch` with the same seed.

    Args:
        params: the parameters that all settings share.
        replicates: B, the number of replicates of each setting.
        observe: (state, info) -> NamedTuple, dictionary or array returns the record of one replicate's round.
        axes: values by parameter, such as num_experts=range(2, 21).
    Returns: a variable for each recorded array, called `value` if it has no name. Its dimensions are the axes in this
        order, round, the array's own dimensions, and replicate.
    Raises: UnknownNameError if an axis is not a parameter. InvalidValueError for impossible settings.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=4, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params()
        >>> data = mt.vary(system, params, 6, 64, record_every=3, num_experts=[1, 2, 4])
        >>> data.chosen.dims, data.generalization_error.long_name
        (('num_experts', 'round', 'chosen_0', 'replicate'), 'G_t, (16)')
        >>> float(data.generalization_error.sel(num_experts=1).mean("replicate")[-1]) > 0
        True
    """
    values = {name: _axis_values(name, column, params) for name, column in axes.items()}
    count = len(check_replicates(replicates))
    cells = []
    for index, combination in enumerate(itertools.product(*values.values())):
        setting = params._replace(**dict(zip(values, combination, strict=True)))
        cells.append(Cell(str(index), system, setting, num_rounds, record_every, observe=observe, keeps_state=False))
    with shown(progress) as listener:
        runs = run_cells(cells, count, seed=seed, progress=listener, what=", ".join(values) or "run")
    return _dataset(list(runs.values()), values, type(params)).assign_attrs(seed=seed, num_rounds=num_rounds)


def _dataset(runs: Sequence[Run], values: Mapping[str, Sequence[Any]], params_type: type) -> xr.Dataset:
    arrays_by_run = [_named_arrays(run.records) for run in runs]
    comments = {field.name: field.comment for field in fields_of(type(runs[0].records))}
    variables = {}
    for name, first in arrays_by_run[0].items():
        stacked = np.stack([arrays[name] for arrays in arrays_by_run])
        array = stacked.reshape(*map(len, values.values()), *first.shape)  # in the order of `itertools.product`
        own_dims = [f"{name}_{axis}" for axis in range(first.ndim - 2)]  # without round and replicate
        dims = (*values, ROUND, *own_dims, REPLICATE)
        variables[name] = (dims, array, {"long_name": comments.get(name, name)})
    coordinates = {name: (name, column, {"long_name": long_name(name, params_type)}) for name, column in values.items()}
    replicates = runs[0].replicates.astype(np.uint32)
    return xr.Dataset(variables, {**coordinates, ROUND: runs[0].rounds, REPLICATE: replicates})


def _axis_values(name: str, column: Sequence[Any], params: Params) -> list[Any]:
    """Return an axis's values. Raises: UnknownNameError, or InvalidValueError if two would be equal in a run."""
    fields = getattr(type(params), "_fields", ())
    if name not in fields:
        raise unknown_name("parameter", name, fields, type(params))
    array = np.asarray(column)
    rounded = array
    if array.dtype.kind == "f":  # runs round to JAX's precision
        rounded = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
    num_distinct = len(set(map(repr, rounded.ravel().tolist())))  # as texts, all nan are equal
    if array.ndim != 1 or array.size == 0 or num_distinct < array.size:
        raise InvalidValueError(
            f"{name}={column!r} must be a list of values that differ in {rounded.dtype}. Change {name}.",
            argument=name,
        )
    return array.tolist()


def _named_arrays(records: PyTree) -> dict[str, Shaped[np.ndarray, "R ... B"]]:
    arrays = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(records)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator="_") or "value"
        while name in (ROUND, REPLICATE, *arrays):  # joined nested names may already exist
            name += "_"
        arrays[name] = np.asarray(leaf)
    if not arrays:
        raise InvalidValueError("observe returns no array. Return an array or a dict of arrays.", argument="observe")
    return arrays
