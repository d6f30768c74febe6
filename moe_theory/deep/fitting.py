"""Presets at other sizes, with a gate drive to reach, or with the parameters that the theorems ask for.

A gate drive is measured in the first rounds of one run, the pilot.
"""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from moe_theory.core.constraints import Positive, require
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.gate import mean_image
from moe_theory.deep.presets import Preset
from moe_theory.deep.runs import WITHOUT_EFFECT, Plan, pilot, set_by
from moe_theory.deep.tasks import pool_of, sample_rows

PILOT_ROUNDS = 10
MEASURED_TASKS = 200  # whose mean images give sigma_0


def resized(
    preset: Preset, experts: tuple[int, ...] | None, classes: tuple[int, ...] | None, **sizes: int | str | None
) -> Preset:
    """The preset with other sizes of `Dims`, where these are not None. A batch is never larger than the samples.

    Raises: UnknownNameError for an unknown network; InvalidValueError for sizes below 1, a batch that does not
        divide the samples, or no number of experts, or one twice.
    """
    experts = preset.experts if experts is None else experts
    classes = preset.classes if classes is None else classes
    if not experts or len(set(experts)) < len(experts):
        raise InvalidValueError(
            f"experts={list(experts)} must be one or more different numbers. Change experts.", argument="experts"
        )
    changes: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
    changes |= {"num_classes": len(classes), "max_experts": max(experts)}
    samples = changes.get("num_samples", preset.dims.num_samples)
    changes.setdefault("batch_size", min(preset.dims.batch_size, max(samples, 1)))
    return dataclasses.replace(
        preset, dims=dataclasses.replace(preset.dims, **changes), experts=experts, classes=classes
    )


def thinned(data: DataSet, default: int | None, test_images: int | None) -> DataSet:
    """The data set with `test_images` test images, or the default number, evenly spread; None takes all.

    Raises: InvalidValueError for none, or for more than there are.
    """
    total = len(data.test.labels)
    if test_images is not None and not 1 <= test_images <= total:
        raise InvalidValueError(
            f"test_images={test_images} must be in 1..{total}, as many as {data.title} has. Change test_images.",
            argument="test_images",
        )
    number = min(test_images or default or total, total)
    if number == total:
        return data
    rows = np.linspace(0, total - 1, number).round().astype(int)
    return dataclasses.replace(data, test=Images(data.test.pixels[rows], data.test.labels[rows]))


def check(plan: Plan, kappa: float | None, is_literal: bool = False) -> None:
    """Refuse what cannot be asked for, before anything runs.

    Raises: InvalidValueError for a gate drive that is not above 0, or where gate_scale is set as well or differs
        between the cells.
    """
    has_scale = "gate_scale" in set_by(plan.preset) or "gate_scale" in plan.settings
    if kappa is not None:
        require(Positive, kappa=kappa)
        if has_scale or is_literal:
            raise InvalidValueError("kappa, gate_scale and literal decide the gate's scale: drop one of both.")
    if is_literal and "gate_scale" in set_by(plan.preset):
        raise InvalidValueError(f"{plan.preset.name} compares scales of the gate's input: drop literal.")


def literal(plan: Plan) -> tuple[Plan, str]:
    """The plan with the parameters that the theorems ask for, at the measured sigma_0, and a line on them.

    The mean images stay as they are: eta = alpha = sigma_0^.5 and lambda = Gamma = sigma_0^1.25.

    Source: Section 3.2 and Theorem 1 of `continual`, Section VI of `edge`.
    Raises: InvalidValueError where one of them is set as well.
    """
    deviation = deviation_of(plan)
    rate = float(f"{deviation**0.5:.3g}")
    scale = float(f"{deviation**1.25:.3g}")
    settings = {
        "gate_scale": 1.0,
        "centre": False,
        "learning_rate": rate,
        "balance_weight": rate,
        "perturbation_scale": scale,
        "termination_threshold": scale,
    }
    settings = {name: value for name, value in settings.items() if name not in WITHOUT_EFFECT[plan.preset.paper]}
    if both := sorted(settings.keys() & plan.settings.keys()):
        raise InvalidValueError(f"--literal sets {both[0]}: drop one of both.")
    listed = ", ".join(f"{name}={value}" for name, value in settings.items())
    told = f"sigma_0 of the mean images of {MEASURED_TASKS} tasks is {deviation:.3g}: {listed}"
    return dataclasses.replace(plan, settings={**plan.settings, **settings}), told


def deviation_of(plan: Plan) -> float:
    """Root of the variance across tasks of an element of their normalised mean images, mean over elements."""
    pool = pool_of(plan.data, plan.preset.classes)
    dims = plan.preset.dims
    params = next(iter(plan.params().values()))
    rng = np.random.default_rng(plan.seed)
    means = []
    for _ in range(MEASURED_TASKS):
        task = jnp.asarray(int(rng.integers(dims.num_classes)))
        uniforms = jnp.asarray(rng.random(dims.num_samples, np.float32))
        rows = sample_rows(pool.train, task, uniforms, params.positive_share)
        means.append(np.asarray(mean_image(jnp.asarray(pool.train.pixels[np.asarray(rows)]))))
    return float(np.sqrt(np.mean(np.var(means, axis=0))))


def at_drive(plan: Plan, target: float) -> tuple[Plan, str]:
    """The plan with the gate's scale at which the pilot's median kappa is the target, and a line on it.

    Kappa goes as the square of the scale. The plan has passed `check`. Raises: InvalidValueError without a gate drive.
    """
    cell, params = max(plan.params().items(), key=lambda item: int(item[1].num_experts))
    # All where classes arrive one after the other: the first rounds of those are of one class alone.
    num_rounds = plan.preset.num_rounds if params.incremental else min(PILOT_ROUNDS, plan.preset.num_rounds)
    records = pilot(plan, cell, num_rounds)
    drive = float(np.median(records.drive[records.expert >= 0]))
    if not math.isfinite(drive) or drive <= 0:
        raise InvalidValueError(
            f"the pilot's median kappa is {drive:g}: its experts diverge or stay as they are. Lower expert_rate, "
            "or set gate_scale."
        )
    before = float(params.gate_scale)
    scale = float(f"{before * math.sqrt(target / drive):.3g}")
    told = (
        f"gate_scale {before:g} has a median kappa of {drive:.2g} in {num_rounds} pilot rounds of {cell}: {scale:g} is "
        f"taken, for {target:g}"
    )
    return dataclasses.replace(plan, settings={**plan.settings, "gate_scale": scale}), told
