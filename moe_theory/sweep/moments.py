"""Moments over replicates, reduced inside a scan and merged on the host in float64.

A chunk is centred before it is squared, so float32 loses little. Chunks merge in pairs (Chan, Golub, LeVeque 1983).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Shaped

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import array_namespace


class Moments(NamedTuple):
    """The count, mean, sum of squared deviations and extremes along an axis."""

    count: Shaped[Any, "..."]  # number of samples
    mean: Shaped[Any, "..."]
    m2: Shaped[Any, "..."]  # sum of squared deviations from the mean
    minimum: Shaped[Any, "..."]
    maximum: Shaped[Any, "..."]

    @property
    def variance(self) -> Shaped[Any, "..."]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.count > 1, self.m2 / np.maximum(self.count - 1, 1), np.nan)

    @property
    def standard_error(self) -> Shaped[Any, "..."]:
        return np.sqrt(self.variance / self.count)


def over_replicates(samples: Float[Array, "... B"]) -> Moments:
    """Return moments along the trailing axis, for JAX arrays inside a scan or NumPy arrays."""
    xp = array_namespace(samples)
    mean = xp.mean(samples, axis=-1)
    deviations = samples - mean[..., None]
    return Moments(
        count=xp.full(mean.shape, samples.shape[-1], mean.dtype),
        mean=mean,
        m2=xp.sum(xp.square(deviations), axis=-1),
        minimum=xp.min(samples, axis=-1),
        maximum=xp.max(samples, axis=-1),
    )


def merge(parts: Iterable[Moments]) -> Moments:
    """Merge moments in float64, in the given order. Raises: InvalidValueError if there are none."""
    parts = [Moments(*(np.asarray(leaf, np.float64) for leaf in part)) for part in parts]
    if not parts:
        raise InvalidValueError("there are no moments to merge. Run at least one chunk of replicates.")
    total = parts[0]
    for part in parts[1:]:
        total = _merge_two(total, part)
    return total


def _merge_two(first: Moments, second: Moments) -> Moments:
    count = first.count + second.count
    gap = second.mean - first.mean
    gap_per_sample = gap / count
    return Moments(
        count=count,
        mean=first.mean + gap_per_sample * second.count,
        m2=first.m2 + second.m2 + gap * gap_per_sample * first.count * second.count,
        minimum=np.minimum(first.minimum, second.minimum),
        maximum=np.maximum(first.maximum, second.maximum),
    )
