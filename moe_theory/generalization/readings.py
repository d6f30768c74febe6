"""Readings of the paper on generalization: what its d_N is the dimension of.

Definition 4 makes d_N the size of a set on which the router's MASKS are shattered; Theorem 1 calls it the Natarajan
dimension of the router function class A, weights included. For k = 1 the two agree, as the weight of a lone expert is
1. For k = T there is one mask, so that the first is 0 whatever the weights do.
"""

from moe_theory.core.errors import unknown_name
from moe_theory.core.readings import Reading as Reading
from moe_theory.generalization.params import Params

# The readings by name; the first is that of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("mask-dimension", "d_N of the masks alone, as in Definition 4", Params()),
        Reading(
            "router-dimension",
            "d_N of the whole router, its weights included, as in Theorem 1",
            Params(),
            {"whole_router": True},
        ),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import generalization
        >>> generalization.reading("router-dimension").params(num_experts=4).whole_router
        True
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]
