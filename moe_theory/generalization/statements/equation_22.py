"""Eqs. (22) and (23): the bound put together from its parts, in float64 for all sizes."""

import dataclasses
import itertools

import numpy as np

from moe_theory.generalization import theory
from moe_theory.generalization.experiments import EXACTLY, FORMULA
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.statement import alike

COMPUTED = dataclasses.replace(FORMULA, labels=("T up to 64",))
RADEMACHER = 0.1  # R_m(H)

EQUATION_22 = statement("equation-22", module=__name__)
EQUATION_23 = statement("equation-23", module=__name__)


def sparsity_grid() -> dict[str, np.ndarray]:
    """Return (22), (23) and the log patterns in (22), for all k <= T <= 64, m and d_N (sizes, m, d_N)."""
    sizes = range(1, 65)
    pairs = np.array([(experts, active) for experts, active in itertools.product(sizes, sizes) if active <= experts])
    experts, active = pairs.T[:, :, None, None]  # each (sizes, 1, 1), to broadcast over m and d_N
    samples = np.array([10, 1000, 10**6])[:, None]
    dimensions = np.array([1, 10, 1000])
    values = {
        form: np.asarray(theory.theorem_1(experts, active, samples, RADEMACHER, dimensions, form=form))
        for form in theory.FORMS
    }
    patterns = np.asarray(theory.equation_16(experts, active, samples, dimensions))
    return {**values, "patterns": patterns, "samples": np.broadcast_to(samples, patterns.shape)}


@EQUATION_22.step("equation-22.inversion", COMPUTED, EXACTLY)
def inversion_error(run) -> np.ndarray:
    grid = sparsity_grid()
    mean = 2 * RADEMACHER
    delta = 0.05
    exponent = 2 * grid["samples"] * (grid["binomial"] / 2 - mean) ** 2
    needed = np.log(4 / delta) + grid["patterns"]
    return alike(run, np.max(np.abs(needed - exponent) / needed))


@EQUATION_23.charitable("equation-23.binomial", COMPUTED, EXACTLY)
def binomial_excess(run) -> np.ndarray:
    grid = sparsity_grid()
    return alike(run, np.max(grid["binomial"] - grid["printed"]).clip(0))
