"""(22) and (23), the bounds that the proof of Theorem 1 ends with, for all k of up to 64 experts."""

import functools

import numpy as np

from moe_theory.generalization import theory
from moe_theory.generalization.claims.steps import EXACT
from moe_theory.generalization.claims.values import computed, named
from moe_theory.generalization.lemma_experiments import LONE_CELL, LONE_POINT
from moe_theory.verify.claim import claim


@functools.cache
def _sparsity_grid() -> dict[str, np.ndarray]:
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


def _binomial_excess() -> float:
    grid = _sparsity_grid()
    return float(np.max(grid["binomial"] - grid["printed"]).clip(0))


def _inversion_error() -> float:
    """log of 4 Gamma exp(-2 m (eps/2 - E phi)^2) against log delta, relative to log(4 Gamma / delta)."""
    grid, mean, delta = _sparsity_grid(), 2 * 0.1, 0.05
    exponent = 2 * grid["samples"] * (grid["binomial"] / 2 - mean) ** 2
    needed = np.log(4 / delta) + grid["patterns"]
    return float(np.max(np.abs(needed - exponent) / needed))


def _largest_drop(most: float) -> float:
    """The largest fall of (22) from k - 1 to k, over all k up to `most` T, relative to what it falls from."""
    grid = _sparsity_grid()
    experts, active = grid["pairs"].T
    before, after = grid["binomial"][:-1], grid["binomial"][1:]
    is_next = (experts[1:] == experts[:-1]) & (active[1:] <= most * experts[1:])
    return float(np.max(np.where(is_next[:, None, None], (before - after) / before, 0)))


@claim("generalization.equation-22.inversion", paper="generalization", where="Eq. (22)", kind="identity", margin=EXACT)
class Equation22:
    """(22) is what (10), (15), (16) and (20) give together, as the gap at which they leave a chance of delta."""

    formula = (
        r"4\, \Gamma\, e^{-2m \left( \frac{\epsilon}{2} - \mathbb{E} \phi \right)^2} = \delta "
        r"\quad \text{at } \epsilon = 2\, \mathbb{E} \phi + 2 \sqrt{\frac{\log \Gamma + \log(4 / \delta)}{2m}}"
    )
    experiment = LONE_POINT
    labels = named("T up to 64")
    observe = computed(LONE_CELL, _inversion_error)


@claim(
    "generalization.equation-23.binomial",
    paper="generalization",
    where="Eqs. (22) and (23)",
    kind="identity",
    margin=EXACT,
)
class Equation23:
    """Bounding the binomial coefficient only raises the bound: (22) is at most (23), for every k up to T = 64."""

    formula = r"\log \binom{T}{k} \le k \left( 1 + \log \frac{T}{k} \right)"
    experiment = LONE_POINT
    labels = named("T up to 64")
    observe = computed(LONE_CELL, _binomial_excess)


@claim(
    "generalization.equation-22.grows-with-k",
    paper="generalization",
    where="Eq. (22), read as the remark reads (23)",
    kind="identity",
    margin=EXACT,
    replaced_by="generalization.equation-22.grows-to-half",
)
class Equation22Grows:
    """(22) grows with k up to T: the largest share of itself that it loses with one more active expert is 0."""

    formula = r"k \mapsto 2 \sqrt{\frac{2 d_N \log \binom{T}{k} + d_N \log(2m) + \log(4/\delta)}{2m}} \text{ increases}"
    experiment = LONE_POINT
    labels = named("T up to 64")
    observe = computed(LONE_CELL, lambda: _largest_drop(1))


@claim(
    "generalization.equation-22.grows-to-half",
    paper="generalization",
    where="replaces the remark on Eq. (22)",
    kind="identity",
    margin=EXACT,
)
class Equation22GrowsToHalf:
    """(22) grows with k up to T/2, where a mask is most of a choice."""

    formula = r"\binom{T}{k - 1} \le \binom{T}{k}, \quad k \le \frac{T}{2}"
    experiment = LONE_POINT
    labels = named("T up to 64")
    observe = computed(LONE_CELL, lambda: _largest_drop(0.5))
