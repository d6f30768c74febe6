"""Policies by their names: how merging weights are chosen, slot by slot."""

import functools
from collections.abc import Callable

from moe_theory.core.errors import unknown_name
from moe_theory.merging import rivals
from moe_theory.merging.nucb import nucb
from moe_theory.merging.params import Dims
from moe_theory.merging.policy import Policy
from moe_theory.merging.tanbr import tanbr
from moe_theory.merging.uncertainty import EXACT as EXACT
from moe_theory.merging.uncertainty import UNCERTAINTIES as UNCERTAINTIES

# Names of `POLICIES`: the paper's own, and its rivals.
TANBR, NUCB, UNIFORM, AVERAGE, MIX, BEST_EXPERT, GRADIENT = (
    "tanbr",
    "nucb",
    "uniform",
    "average",
    "mix",
    "best-expert",
    "gradient",
)


@functools.lru_cache
def named(policy: str, dims: Dims, uncertainty: str = EXACT) -> Policy:
    """The policy called `policy`; equal arguments give the same object.

    Args:
        uncertainty: how a neural policy computes its norm by Z^-1; others do not ask.
    Raises: UnknownNameError for names there are not, with the nearest suggested.

    Examples:
        >>> from moe_theory import merging
        >>> merging.policies.named("tanbar", merging.Dims())
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.UnknownNameError: unknown policy 'tanbar'. Did you mean 'tanbr'? ...
    """
    if policy not in POLICIES:
        raise unknown_name("policy", policy, POLICIES)
    if uncertainty not in UNCERTAINTIES:
        raise unknown_name("uncertainty", uncertainty, UNCERTAINTIES)
    return POLICIES[policy](dims, uncertainty)


def _plain(policy: Policy) -> Callable[[Dims, str], Policy]:
    def build(dims: Dims, uncertainty: str) -> Policy:
        del dims, uncertainty
        return policy

    return build


# What builds the policy of a name, from sizes and the name of an uncertainty.
POLICIES: dict[str, Callable[[Dims, str], Policy]] = {
    TANBR: tanbr,
    NUCB: nucb,
    UNIFORM: _plain(rivals.UNIFORM),
    AVERAGE: _plain(rivals.AVERAGE),
    MIX: _plain(rivals.MIX),
    BEST_EXPERT: _plain(rivals.BEST_EXPERT),
    GRADIENT: _plain(rivals.GRADIENT),
}
