"""Intervals: simultaneous ones for means over replicates, exact ones for probabilities, and the samples of a slope.

Means have Student's t intervals, asymptotic since samples need not be normal. Over several components their common
critical value is that of the largest |t|: the Gaussian multiplier bootstrap, whose law given the samples is normal with
their correlation, and whose far tail is found by importance sampling in place of millions of resamples. Where the
samples are too heavy-tailed or skewed for t, the interval is widened to hold the median of means' as well.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from moe_theory.core.errors import InvalidClaimError

POWER = 0.9  # the power that the smallest discrepancy is quoted at
BOOTSTRAP_DRAWS = 2048
QUANTILES = 512  # of t that are tabled for them
LARGEST_SQUARED = 1e150  # beyond it a square overflows
REPLICATES_A_COMPONENT = 4  # with fewer, correlations are too uncertain: Bonferroni
SKEWNESS_SHIFT = 0.1  # of a critical value, by skewness, beyond which t is not trusted
VARIANCE_SPREAD = 0.1  # relative variance of a sample variance beyond which t is not trusted
SHORTEST_BLOCK = 8  # of a median of means


class Scheme(NamedTuple):
    """How wide simultaneous intervals of means are."""

    critical: float  # half-width in standard errors
    error_each: float  # a component's share of the error, for intervals that are not of this width
    is_bootstrap: bool


class Intervals(NamedTuple):
    mean: Float[np.ndarray, " V"]
    standard_error: Float[np.ndarray, " V"]
    low: Float[np.ndarray, " V"]
    high: Float[np.ndarray, " V"]
    is_widened: Bool[np.ndarray, " V"]  # to hold the interval of the median of means


def mean_and_error(samples: Float[np.ndarray, "B V"]) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    samples = np.asarray(samples, np.float64)
    with np.errstate(over="ignore"):  # an error that overflows is infinite, and decides nothing
        return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def scheme_for(samples: Float[np.ndarray, "B V"], error: float) -> Scheme:
    """The width of two-sided intervals for the V means that all cover with probability 1 - `error`, asymptotically."""
    count, num_components = samples.shape
    varying = samples[:, _varies(samples)]
    half, odd = divmod(varying.shape[1], 2)
    if not odd and not _varies(varying[:, :half] + varying[:, half:]).any():
        varying = varying[:, :half]  # the sides of an equality are each other's negative and so have the same |t|
    bonferroni = student_tail(error / num_components / 2, count - 1)
    if varying.shape[1] < 2:
        return Scheme(student_tail(error / 2, count - 1), error / num_components, is_bootstrap=False)
    if count < REPLICATES_A_COMPONENT * varying.shape[1]:
        return Scheme(bonferroni, error / num_components, is_bootstrap=False)
    return Scheme(_largest_t(varying, error), error / num_components, is_bootstrap=True)


@functools.lru_cache(maxsize=4096)
def student_tail(tail: float, freedom: int) -> float:
    """The number that Student's t exceeds with probability `tail`: kept, as SciPy is slow and verdicts ask again."""
    return float(scipy.stats.t.isf(tail, freedom))


def intervals(samples: Float[np.ndarray, "B V"], scheme: Scheme) -> Intervals:
    """Intervals of the V means of that width, and wider where t is not to be trusted."""
    mean, standard_error = mean_and_error(samples)
    low, high = mean - scheme.critical * standard_error, mean + scheme.critical * standard_error
    doubtful = is_doubtful(samples, scheme.critical)
    if doubtful.any():
        lowest, highest = median_of_means(samples[:, doubtful], scheme.error_each)
        low[doubtful], high[doubtful] = np.minimum(low[doubtful], lowest), np.maximum(high[doubtful], highest)
    return Intervals(mean, standard_error, low, high, doubtful)


def is_doubtful(samples: Float[np.ndarray, "B V"], critical: float) -> Bool[np.ndarray, " V"]:
    """Which components are too skewed or heavy-tailed, for so few replicates, to trust t that far out in its tail.

    Skewness g moves the true critical value of t by g (2 c^2 + 1)/(6 sqrt(n)) to first order (Hall, The Bootstrap and
    Edgeworth Expansion, 1992, Sec. 2.6): ever more of c the smaller the error. Tails are judged by the variance of a
    sample variance, (kurtosis - 1)/n of its square.
    """
    doubtful, count = _varies(samples), len(samples)
    standard = samples[:, doubtful] - samples[:, doubtful].mean(axis=0)
    with np.errstate(over="ignore"):  # where it is infinite, so is the interval by t
        standard /= standard.std(axis=0)
    shift = np.abs(np.mean(standard**3, axis=0)) * (2 * critical**2 + 1) / (6 * math.sqrt(count))
    is_heavy = np.mean(standard**4, axis=0) - 1 > VARIANCE_SPREAD * count
    doubtful[doubtful] = (shift > SKEWNESS_SHIFT * critical) | is_heavy
    return doubtful


def median_of_means(
    samples: Float[np.ndarray, "B V"], error: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Intervals at `error` each for the median of the means of blocks, from their order statistics. Exact for the
    median of a block mean's law, which is close to the mean once blocks are long. Without bounds where the replicates
    do not make enough blocks of that length.
    """
    num_blocks = 2 * math.ceil(math.log2(2 / error))
    if len(samples) < SHORTEST_BLOCK * num_blocks:
        infinite = np.full(samples.shape[1], np.inf)
        return -infinite, infinite
    means = np.sort([block.mean(axis=0) for block in np.array_split(samples, num_blocks)], axis=0)
    both_tails = 2 * scipy.stats.binom.cdf(np.arange(num_blocks), num_blocks, 0.5)
    outside = int(np.searchsorted(both_tails, error, side="right"))
    # `outside` block means on either side are left out; at least one, since 2 (1/2)^num_blocks < error.
    return means[outside - 1], means[-outside]


def clopper_pearson(
    successes: Float[np.ndarray, " V"], count: int, error: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Exact two-sided interval for a binomial probability, of coverage at least 1 - `error`."""
    return _clopper_pearson(tuple(np.asarray(successes).tolist()), count, error)


def slope_samples(values: Float[np.ndarray, "B V"], abscissa: Float[np.ndarray, " V"]) -> Float[np.ndarray, "B 1"]:
    """One number a replicate whose mean is the least-squares slope of log means over log x, and whose scatter its
    error. Raises: InvalidClaimError where a mean is not positive.
    """
    places = np.log(abscissa) - np.mean(np.log(abscissa))
    return contrast_samples(values, places / np.sum(places**2))


def contrast_samples(values: Float[np.ndarray, "B V"], weights: Float[np.ndarray, " V"]) -> Float[np.ndarray, "B 1"]:
    """One number a replicate whose mean is sum_v a_v log(mean_v), and whose scatter its error: by the delta method a
    replicate's share in that is sum_v a_v (value_v / mean_v - 1).

    Raises: InvalidClaimError where a mean is not positive, and so has no logarithm.
    """
    means = values.mean(axis=0)
    if not np.all(means > 0):
        raise InvalidClaimError(f"a rate or a ratio needs positive means, not {means.min():.3g}")
    return (weights @ np.log(means) + (values / means - 1) @ weights)[:, None]


def asymptotic_end(abscissa: Float[np.ndarray, " V"]) -> tuple[list[int], str]:
    """The two grid points nearest to the limit, 0 on a grid that reaches no higher than 1, and that end's name."""
    order = np.argsort(abscissa)
    return (order[:2].tolist(), "small") if abscissa.max() <= 1 else (order[-2:].tolist(), "large")


def last_decades(abscissa: Float[np.ndarray, " V"], number: int) -> Int[np.ndarray, " P"]:
    """The grid points within so many decades of the one nearest to the limit, which is last: one more than decades at
    least.
    """
    order = np.argsort(abscissa)
    order = order[::-1] if abscissa.max() <= 1 else order
    decades = np.abs(np.log10(abscissa[order] / abscissa[order[-1]]))
    return order[min(int(np.argmax(decades < number + 1e-9)), len(order) - number - 1) :]


def _varies(samples: np.ndarray) -> np.ndarray:
    """Which components are more than rounding around a constant."""
    return np.ptp(samples, axis=0) > 1e-12 * np.max(np.abs(samples), axis=0)


@functools.lru_cache(maxsize=16)
def _clopper_pearson(successes: tuple[float, ...], count: int, error: float) -> tuple[np.ndarray, np.ndarray]:
    """`clopper_pearson`, kept: every verdict on so many replicates asks for the limits of all counts."""
    counts = np.asarray(successes)
    low = scipy.stats.beta.ppf(error / 2, counts, count - counts + 1)
    high = scipy.stats.beta.isf(error / 2, counts + 1, count - counts)
    return _constant(np.where(counts == 0, 0.0, low)), _constant(np.where(counts == count, 1.0, high))


@functools.lru_cache(maxsize=128)
def _tail_quantiles(freedom: int, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    """Log tail probabilities in a range, and where Student's t has them; kept, as SciPy is slow."""
    log_tails = np.linspace(lowest, highest, QUANTILES)
    return _constant(log_tails), _constant(scipy.stats.t.isf(np.exp(log_tails), freedom))


def _constant(values: Any) -> np.ndarray:
    values = np.asarray(values)
    values.setflags(write=False)
    return values


def _largest_t(samples: np.ndarray, error: float) -> float:
    """The value that max_v |T_v| exceeds with probability `error`, T multivariate t with the samples' correlation.

    P(max > c) = V p E[1 / number of |T_u| > c], for p = P(|T_v| > c) and T drawn given that |T_v| > c for a v
    chosen evenly: bounded weights, however small the probability. Draws are the same for every c, and the
    estimate is taken three of its standard errors higher.
    """
    count, num_components = samples.shape
    freedom = count - 1
    alone, bonferroni = (student_tail(error / share / 2, freedom) for share in (1, num_components))
    largest = np.max(np.abs(samples), axis=0)
    correlation = np.corrcoef(samples / largest if np.max(largest) > LARGEST_SQUARED else samples, rowvar=False)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0))
    generator = np.random.default_rng(0)
    places, rows = np.arange(BOOTSTRAP_DRAWS), np.arange(BOOTSTRAP_DRAWS) % num_components
    normals = generator.standard_normal((BOOTSTRAP_DRAWS, num_components)) @ root.T
    remaining = normals - correlation[rows] * normals[places, rows][:, None]  # independent of component v
    chi_squares, uniforms = generator.chisquare(freedom + 1, BOOTSTRAP_DRAWS), generator.random(BOOTSTRAP_DRAWS)
    widest, narrowest = (scipy.stats.t.logsf(critical, freedom) for critical in (alone, bonferroni))
    lowest = float(narrowest + math.log(uniforms.min()))
    log_tails, quantiles = _tail_quantiles(freedom, lowest, float(widest))  # between these, linear

    def log_excess(critical: float) -> float:
        tail = scipy.stats.t.sf(critical, freedom)
        beyond = np.interp(np.log(uniforms * tail), log_tails, quantiles)
        spread = np.sqrt((freedom + beyond**2) / chi_squares)
        drawn = correlation[rows] * beyond[:, None] + spread[:, None] * remaining
        weights = 1 / np.maximum(np.sum(np.abs(drawn) > critical, axis=1), 1)
        probability = weights.mean() + 3 * weights.std() / math.sqrt(BOOTSTRAP_DRAWS)
        return math.log(2 * num_components * tail * probability / error)

    if log_excess(bonferroni) >= 0 or bonferroni == alone:
        return bonferroni
    if log_excess(alone) <= 0:
        return alone
    return float(scipy.optimize.root_scalar(log_excess, bracket=(alone, bonferroni), xtol=1e-4).root)
