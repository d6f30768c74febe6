"""Eqs. (22) and (23): the bound from its parts, evaluated over all sizes in float64."""

import dataclasses
import functools

import numpy as np

from moe_theory.generalization import theory
from moe_theory.generalization.experiments import EXACTLY, FORMULA
from moe_theory.verify.statement import alike, statement

COMPUTED = dataclasses.replace(FORMULA, labels=("T up to 64",))

EQUATION_22 = statement(
    "equation-22",
    where="Eq. (22)",
    says="Solving the union bound for the gap that leaves a chance of delta gives twice the mean of phi and a square "
    r"root.$$2\, \mathbb{E} \phi + 2 \sqrt{\frac{\log \Gamma + \log(4 / \delta)}{2m}}$$",
    note="What the remark says of the term of (23), that it grows with k, is not so of (22), which the paper does not "
    "say; grows-with-k is on record for whoever takes the tighter form.",
    proof="equation_22.py",
)
EQUATION_23 = statement(
    "equation-23",
    where="Eqs. (22) and (23)",
    says="Replacing the binomial coefficient by (e T/k)^k only raises the bound."
    r"$$\log \binom{T}{k} \le k \left( 1 + \log \frac{T}{k} \right)$$",
    proof="equation_23.py",
)


@functools.cache
def sparsity_grid() -> dict[str, np.ndarray]:
    """(22) and (23) over all k <= T <= 64, m and d_N, with what (22) is solved for: arrays (sizes, m, d_N)."""
    pairs = np.array([(experts, active) for experts in range(1, 65) for active in range(1, experts + 1)])
    experts, active = pairs.T[:, :, None, None]
    samples, dimensions = np.array([10, 1000, 10**6])[:, None], np.array([1, 10, 1000])
    values = {
        form: np.asarray(theory.theorem_1(experts, active, samples, 0.1, dimensions, form=form))
        for form in theory.FORMS
    }
    patterns = np.asarray(theory.equation_16(experts, active, samples, dimensions))
    return {**values, "pairs": pairs, "patterns": patterns, "samples": np.broadcast_to(samples, patterns.shape)}


@EQUATION_22.charitable("equation-22.inversion", COMPUTED, EXACTLY)
def inversion_error(run) -> np.ndarray:
    r"""(22) is what (10), (15), (16) and (20) give together, as the gap at which they leave a chance of delta.
    $$4\, \Gamma\, e^{-2m \left( \frac{\epsilon}{2} - \mathbb{E} \phi \right)^2} = \delta
    \quad \text{at } \epsilon = 2\, \mathbb{E} \phi + 2 \sqrt{\frac{\log \Gamma + \log(4 / \delta)}{2m}}$$"""
    # log of 4 Gamma exp(-2 m (eps/2 - E phi)^2) against log delta, relative to log(4 Gamma / delta).
    grid, mean, delta = sparsity_grid(), 2 * 0.1, 0.05
    exponent = 2 * grid["samples"] * (grid["binomial"] / 2 - mean) ** 2
    needed = np.log(4 / delta) + grid["patterns"]
    return alike(run, np.max(np.abs(needed - exponent) / needed))


@EQUATION_23.charitable("equation-23.binomial", COMPUTED, EXACTLY)
def binomial_excess(run) -> np.ndarray:
    """Bounding the binomial coefficient only raises the bound: (22) is at most (23), for every k up to T = 64."""
    grid = sparsity_grid()
    return alike(run, np.max(grid["binomial"] - grid["printed"]).clip(0))


def largest_drop(most: float) -> float:
    """The largest fall of (22) from k - 1 to k, over all k up to `most` T, relative to what it falls from."""
    grid = sparsity_grid()
    experts, active = grid["pairs"].T
    before, after = grid["binomial"][:-1], grid["binomial"][1:]
    is_next = (experts[1:] == experts[:-1]) & (active[1:] <= most * experts[1:])
    return float(np.max(np.where(is_next[:, None, None], (before - after) / before, 0)))


@EQUATION_22.ours(
    "equation-22.grows-with-k",
    COMPUTED,
    EXACTLY,
    where="Eq. (22), read as the remark reads (23)",
    instead="equation-22.grows-to-half",
)
def largest_drop_to_all(run) -> np.ndarray:
    r"""(22) grows with k up to T: the largest share of itself that it loses with one more active expert is 0.
    $$k \mapsto 2 \sqrt{\frac{2 d_N \log \binom{T}{k} + d_N \log(2m) + \log(4/\delta)}{2m}} \text{ increases}$$"""
    return alike(run, largest_drop(1))


@EQUATION_22.ours("equation-22.grows-to-half", COMPUTED, EXACTLY, where="replaces the remark on Eq. (22)")
def largest_drop_to_half(run) -> np.ndarray:
    r"""(22) grows with k up to T/2, where a mask is most of a choice.
    $$\binom{T}{k - 1} \le \binom{T}{k}, \quad k \le \frac{T}{2}$$"""
    return alike(run, largest_drop(0.5))
