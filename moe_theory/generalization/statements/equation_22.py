"""Eqs. (22) and (23): the bound put together from its parts, in float64 for all sizes."""

import dataclasses
import functools
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


@functools.cache
def sparsity_grid() -> dict[str, np.ndarray]:
    """Return (22), (23) and the log patterns in (22), for all k <= T <= 64, m and d_N (sizes, m, d_N)."""
    sizes = range(1, 65)
    pairs = np.array([(experts, active) for experts, active in itertools.product(sizes, sizes) if active <= experts])
    experts, active = pairs.T[:, :, None, None]
    samples = np.array([10, 1000, 10**6])[:, None]
    dimensions = np.array([1, 10, 1000])
    values = {
        form: np.asarray(theory.theorem_1(experts, active, samples, RADEMACHER, dimensions, form=form))
        for form in theory.FORMS
    }
    patterns = np.asarray(theory.equation_16(experts, active, samples, dimensions))
    return {**values, "pairs": pairs, "patterns": patterns, "samples": np.broadcast_to(samples, patterns.shape)}


@EQUATION_22.charitable("equation-22.inversion", COMPUTED, EXACTLY)
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


def largest_drop(largest_share: float) -> float:
    """Return the largest relative fall of (22) from k - 1 to k, for k up to `largest_share` T."""
    grid = sparsity_grid()
    experts, active = grid["pairs"].T
    before = grid["binomial"][:-1]
    after = grid["binomial"][1:]
    is_next = (experts[1:] == experts[:-1]) & (active[1:] <= largest_share * experts[1:])
    return float(np.max(np.where(is_next[:, None, None], (before - after) / before, 0)))


@EQUATION_22.ours("equation-22.grows-with-k", COMPUTED, EXACTLY, instead="equation-22.grows-to-half")
def largest_drop_to_all(run) -> np.ndarray:
    return alike(run, largest_drop(1))


@EQUATION_22.ours("equation-22.grows-to-half", COMPUTED, EXACTLY)
def largest_drop_to_half(run) -> np.ndarray:
    return alike(run, largest_drop(0.5))
