"""Runs of a preset as one dataset with labels."""

import json
from typing import Any

import numpy as np
import xarray as xr

from moe_theory.deep.runs import Plan, digest_of
from moe_theory.runs.provenance import versions
from moe_theory.verify.claim import Runs

EXPERT = "expert_index"  # the axis of what there is one of for each expert


def dataset(plan: Plan, runs: Runs, command: str = "") -> xr.Dataset:
    """All records, over cells, rounds, experts where there is one for each, and replicates.

    Args:
        command: what is said to have made them.
    """
    cells = list(runs)
    first = runs[cells[0]]
    variables = {}
    for name in first.records._fields:
        values = np.stack([getattr(runs[cell].records, name) for cell in cells])
        own = (EXPERT,) * (values.ndim - 3)
        variables[name] = xr.Variable(("cell", "round", *own, "replicate"), values)
    coordinates = {"cell": cells, "round": first.rounds, "replicate": first.replicates}
    coordinates[EXPERT] = np.arange(plan.preset.dims.max_experts)
    return xr.Dataset(variables, coordinates, _attributes(plan, command))


def _attributes(plan: Plan, command: str) -> dict[str, Any]:
    return {
        "preset": plan.preset.name,
        "source": f"{plan.preset.where} of {plan.preset.paper}",
        "data": plan.data.title,
        "data_digest": digest_of(plan.data),
        "reading": plan.setting,
        "seed": plan.seed,
        "parameters": json.dumps({cell: params._asdict() for cell, params in plan.params().items()}),
        "versions": json.dumps(versions()),
        "command": command,
    }
