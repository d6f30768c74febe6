"""Many settings of any system at once, as one labelled dataset in memory; `Sweep` is for those that are kept."""

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import PyTree, Shaped

from moe_theory.core.errors import FaultyRunError, InvalidParamsError, InvalidRunError, unknown_name
from moe_theory.core.fields import fields_of, long_name
from moe_theory.core.random import root_key
from moe_theory.core.system import (
    Observe,
    Params,
    System,
    check_replicates,
    observe_info,
    recorded_rounds,
    simulate_batch,
)
from moe_theory.runs.cells import Cell, run_cells
from moe_theory.runs.progress import Progress, automatic, shown

if TYPE_CHECKING:
    import xarray as xr

ROUND, REPLICATE = "round", "replicate"
_SHAPE = re.compile(r"\[\w+, '([^']*)'\]$")


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
    debug: bool = False,
    **axes: Sequence[Any],
) -> "xr.Dataset":
    """Run a system at every combination of some parameters' values: one program, on all cores, replicates in each.

    Replicate i draws the same numbers in every setting, and those of `simulate_batch` with the same seed.

    Args:
        params: what all settings share.
        replicates: B, of each setting.
        observe: what a recorded round keeps of one replicate: a NamedTuple, a dictionary or an array.
        progress: where it is reported; by default a line in a notebook, else standard error.
        debug: as for `simulate`, one setting after another.
        axes: values by the names of parameters, such as num_experts=range(2, 21).
    Returns: a variable for each array that is kept, called `value` where it is one; its dimensions are the axes in the
        order given, round, its own and replicate, its `long_name` is what the comment beside its field says.
    Raises: UnknownNameError for an axis that is no parameter; InvalidRunError, InvalidDimsError, InvalidParamsError
        or InvalidSystemError for what cannot be run, before anything is; with `debug`, FaultyRunError.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=4, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params()
        >>> data = mt.vary(system, params, 6, 64, record_every=3, num_experts=[1, 2, 4])
        >>> dict(data.forgetting.sizes), data.chosen.dims, data.generalization_error.long_name
        ({'num_experts': 3, 'round': 2, 'replicate': 64}, ('num_experts', 'round', 'M', 'replicate'), 'G_t, (16)')
        >>> float(data.generalization_error.sel(num_experts=1).mean("replicate")[-1]) > 0
        True
    """
    import xarray as xr

    values = {name: _values(name, given, params) for name, given in axes.items()}
    count = len(check_replicates(replicates))
    settings = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    cells = [
        Cell(cell_name(each), system, params._replace(**each), num_rounds, record_every, observe, keeps_state=False)
        for each in settings
    ]
    if debug:
        found = [_asserted(cell, count, seed) for cell in cells]
    else:
        with shown(progress) as shown_progress:
            runs = run_cells(cells, count, seed=seed, progress=shown_progress, what=", ".join(values) or "run")
        found = [runs[cell.name].records for cell in cells]
    sizes = tuple(len(each) for each in values.values())
    leaves = [_named(records) for records in found]
    about = {field.name: field for field in fields_of(type(found[0]))}
    variables, known = {}, dict.fromkeys((*values, ROUND, REPLICATE), 0)  # dimensions and their sizes
    for name, first in leaves[0].items():
        stacked = np.stack([each[name] for each in leaves]).reshape(*sizes, *first.shape)
        own = _own_dims(name, about[name].annotation if name in about else "", first.shape[1:-1], known)
        comment = about[name].comment if name in about else ""
        variables[name] = ((*values, ROUND, *own, REPLICATE), stacked, {"long_name": comment} if comment else {})
    return xr.Dataset(
        variables,
        {
            **{name: (name, each, {"long_name": long_name(name, type(params))}) for name, each in values.items()},
            ROUND: recorded_rounds(num_rounds, record_every),
            REPLICATE: np.arange(count, dtype=np.uint32),
        },
        {"seed": seed, "num_rounds": num_rounds},
    )


def _asserted(cell: Cell, count: int, seed: int) -> PyTree:
    """What is recorded of a cell in which nothing is wrong."""
    try:
        run = (cell.params, cell.num_rounds, cell.record_every)
        return simulate_batch(cell.system, root_key(seed), count, *run, observe=cell.observe, debug=True)[1]
    except FaultyRunError as fault:
        raise FaultyRunError(f"{cell.name}: {fault}") from None


def cell_name(setting: dict[str, Any]) -> str:
    """The name of a setting's cell."""
    return ", ".join(f"{name} = {value}" for name, value in setting.items()) or "run"


def _values(name: str, given: Sequence[Any], params: Params) -> list[Any]:
    fields = getattr(type(params), "_fields", ())
    if name not in fields:
        raise unknown_name("parameter", name, fields, type(params))
    array = np.asarray(list(given) if isinstance(given, range) else given)
    if array.ndim != 1 or array.size == 0 or len(np.unique(array)) < array.size:
        raise InvalidParamsError(f"{name}={given!r} must be a list of different values. Change {name}.")
    held = array.astype(jax.dtypes.canonicalize_dtype(array.dtype)) if array.dtype.kind == "f" else array
    if len(np.unique(held)) < array.size:
        raise InvalidParamsError(
            f"{name}={given!r} must be different values in {held.dtype}, which they run in. Change {name}, or run in "
            "float64."
        )
    return array.tolist()


def _named(records: PyTree) -> dict[str, Shaped[np.ndarray, "R ... B"]]:
    """The arrays of what was recorded, by the names of its fields."""
    named = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(records)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator="_") or "value"
        if name in (ROUND, REPLICATE):
            name = f"{name}_"
        named[name] = np.asarray(leaf)
    if not named:
        raise InvalidRunError("observe keeps nothing: return an array, or several by name.")
    return named


def _own_dims(name: str, annotation: str, sizes: tuple[int, ...], known: dict[str, int]) -> list[str]:
    """Names of an array's own axes: those of its annotated shape, where it has them and they mean one size."""
    shape = _SHAPE.search(annotation)
    names = shape[1].split() if shape else []
    is_fitting = len({*names}) == len(sizes) == len(names) and all(map(str.isidentifier, names))
    if is_fitting and all(known.setdefault(each, size) == size for each, size in zip(names, sizes, strict=True)):
        return names
    return [f"{name}_{axis}" for axis in range(len(sizes))]
