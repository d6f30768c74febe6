"""Readings of the paper on expert merging: named choices where it is silent or goes two ways.

What the paper leaves open, and the parameter that decides it:

| open | parameter |
| --- | --- |
| "a random dimension" of a box that is cut with the simplex: many a split cuts nothing off it | `split_rule` |
| which feasible point of a leaf "an LP" gives | `point_rule` |
| the constant C of the threshold (2) | `split_constant` |
| gamma_t of (4), whose constants C_1, C_2, C_3 and S are unknown | `exploration`, in place of gamma_t |
| eta, with losses that are summed over slots: a mean, so that steps do not grow with t | `learning_rate` |
| two matrices, as (3) with L = 2 has, or three, as the number of parameters p has | `Dims.num_hidden` |
| the steps J | `Dims.num_steps` |
| how task shares are distributed and drift, and what a slot's mean rewards scatter by | `mix_*`, `noise_scale` |
| the monitor's constants | `monitor_rate` |

Trying weights equal to the estimated task mix, `warm-start`, is not in the paper.
"""

from moe_theory.core.errors import unknown_name
from moe_theory.core.readings import Reading as Reading
from moe_theory.merging.params import CYCLIC_SPLIT, EFFECTIVE_SPLIT, FILLED_POINT, RANDOM_POINT, Params

# The readings by name; the first is that of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading(
            "random-split",
            "a leaf is halved along any dimension, as Algorithm 1 says; candidates on its box's diagonal",
            Params(),
        ),
        Reading(
            "effective-split",
            "boxes are tightened to the simplex, the longest side is halved: no leaf is inactive",
            Params(),
            {"split_rule": EFFECTIVE_SPLIT},
        ),
        Reading("cyclic-split", "dimensions are halved in turn, by depth", Params(), {"split_rule": CYCLIC_SPLIT}),
        Reading(
            "filled-point",
            "random dimensions; a candidate is the leaf's point nearest to equal weights",
            Params(),
            {"point_rule": FILLED_POINT},
        ),
        Reading(
            "random-point",
            "random dimensions; a candidate is a random point of the leaf",
            Params(),
            {"point_rule": RANDOM_POINT},
        ),
        Reading(
            "warm-start",
            "random dimensions; weights equal to the task mix are tried first and stay a candidate",
            Params(),
            {"warm_start": True},
        ),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import merging
        >>> merging.reading("warm-start").params(num_experts=8).warm_start
        True
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]
