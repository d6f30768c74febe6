"""Intervals of means and probabilities, and samples of slopes.

Intervals of values with a declared range are exact, for any distribution and stopping time. Consider a gambler with
capital 1 whose bets are fair if the mean is m. The capital reaches 1/error with probability at most `error`. The
interval contains every m for which this has not happened. The bets are Cover's universal portfolio. Its wealth is
within a known factor of the best constant bet in hindsight (Cover and Ordentlich, IEEE Trans. Inf. Theory 42, 1996.
Orabona and Jun, IEEE Trans. Inf. Theory 70, 2024).

Other means have intervals by Student's t. The multiplier bootstrap of the largest |t| makes them simultaneous over
components, and they are widened by the effect of skewness. Without evidence that t can be trusted, a mean has no
interval, and a slope has an interval derived from its means. Probabilities have Clopper and Pearson's intervals.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Int

from moe_theory.core.errors import DeclarationError

POWER = 0.9  # probability of refuting the smallest discrepancy
BOOTSTRAP_DRAWS = 2048  # draws of the largest |t|
QUANTILES = 512  # entries in the table of t's quantiles
LARGEST_SQUARED = 1e150  # the square of a larger number overflows
REPLICATES_A_COMPONENT = 4  # with fewer, correlations are too uncertain and Bonferroni applies
# Conditions to trust t, from known distributions at errors 0.1 to 1e-5 (`tests/verification/test_planted_claims.py`).
LEAST_REPLICATES = 256
LEAST_DISTINCT = 5  # with fewer distinct values, a rare one may be missing
SKEWNESS_SHIFT = 0.1  # largest relative shift of the critical value by skewness
CAUTION = 1.5  # the shift is multiplied by this, because a sample's skewness tends to be too small
VARIANCE_SPREAD = 0.02  # largest relative variance of a sample variance, which is (kurtosis - 1) / n
MOST_RELATIVE_ERROR = 0.05  # of a mean, so that its logarithm is linear within 15 % at five standard errors
FEWEST_BLOCKS = 4  # blocks of replicates in the test of dependence
MOST_KURTOSIS = 3.0  # of ranks whose products are nearly normal, as for events of probability .21 to .79
DEPENDENCE_ERROR = 1e-6  # probability of calling independent replicates dependent
ROUNDING = 1e-6  # tolerance of a range, relative to its width, or to the largest value if the range is infinite


class Scheme(NamedTuple):
    critical: float  # half-width in standard errors
    is_bootstrap: bool


class Intervals(NamedTuple):
    mean: Float[np.ndarray, " V"]
    standard_error: Float[np.ndarray, " V"]
    low: Float[np.ndarray, " V"]  # minus infinity if there is no bound
    high: Float[np.ndarray, " V"]
    doubts: list[str]  # by component, why t cannot be trusted, or ""


def mean_and_error(samples: Float[np.ndarray, "B V"]) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    samples = np.asarray(samples, np.float64)
    with np.errstate(over="ignore"):  # a standard error that overflows becomes infinite
        return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def scheme_for(samples: Float[np.ndarray, "B V"], error: float) -> Scheme:
    """Return the width of intervals that asymptotically cover all V means with probability 1 - `error`."""
    count, num_components = samples.shape
    varying = samples[:, varies(samples)]
    half, odd = divmod(varying.shape[1], 2)
    if not odd and not varies(varying[:, :half] + varying[:, half:]).any():
        varying = varying[:, :half]  # the halves are the two sides of an equality, with the same |t|
    if varying.shape[1] < 2:
        return Scheme(student_tail(error / 2, count - 1), is_bootstrap=False)
    if count < REPLICATES_A_COMPONENT * varying.shape[1]:
        return Scheme(student_tail(error / num_components / 2, count - 1), is_bootstrap=False)
    return Scheme(_largest_t(varying, error), is_bootstrap=True)


@functools.lru_cache(maxsize=4096)
def student_tail(tail: float, freedom: int) -> float:
    """Return the value that Student's t exceeds with probability `tail`."""
    return float(scipy.stats.t.isf(tail, freedom))


def student_intervals(samples: Float[np.ndarray, "B V"], scheme: Scheme) -> Intervals:
    """Return intervals of the V means by t. Ends are infinite if t cannot be trusted.

    To first order, skewness g shifts the critical value c of t by g (2 c^2 + 1)/(6 sqrt(n)), which grows as the error
    falls (Hall, The Bootstrap and Edgeworth Expansion, 1992, Sec. 2.6). Both ends move out by `CAUTION` times this.
    """
    mean, standard_error = mean_and_error(samples)
    shift, doubts = _trust_in_t(samples, scheme.critical)
    is_doubted = [bool(doubt) for doubt in doubts]
    half_width = np.where(is_doubted, np.inf, (scheme.critical + CAUTION * shift) * standard_error)
    return Intervals(mean, standard_error, mean - half_width, mean + half_width, doubts)


def _trust_in_t(samples: Float[np.ndarray, "B V"], critical: float) -> tuple[Float[np.ndarray, " V"], list[str]]:
    """Return by component the shift of t's critical value by skewness, and the reason to distrust t."""
    count, num_components = samples.shape
    shift = np.zeros(num_components)  # stays 0 where t is distrusted
    doubts = [""] * num_components
    is_varying = varies(samples)
    possible_shift, kurtosis = skewness_shift(samples, critical)
    for place in range(num_components):
        distinct = len(np.unique(samples[:, place]))
        if not is_varying[place]:
            doubts[place] = f"all {count:,} replicates are equal"
        elif distinct < LEAST_DISTINCT:
            doubts[place] = f"{count:,} replicates take {distinct} values"
        elif count < LEAST_REPLICATES:
            doubts[place] = f"{count:,} replicates are fewer than {LEAST_REPLICATES}"
        elif possible_shift[place] <= SKEWNESS_SHIFT * critical and kurtosis[place] - 1 <= VARIANCE_SPREAD * count:
            shift[place] = possible_shift[place]
        else:  # also if the shift or the kurtosis is NaN
            doubts[place] = f"{count:,} replicates are too few for tails like these"
    return shift, doubts


def skewness_shift(
    samples: Float[np.ndarray, "B V"], critical: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Return the first-order shift of t's critical value by skewness, and the kurtosis. Both are NaN for constants."""
    standard = samples - samples.mean(axis=0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        standard /= standard.std(axis=0)
        skewness = np.mean(standard**3, axis=0)
        kurtosis = np.mean(standard**4, axis=0)
    return np.abs(skewness) * (2 * critical**2 + 1) / (6 * math.sqrt(len(samples))), kurtosis


def betting_intervals(
    samples: Float[np.ndarray, "B V"], low: Float[np.ndarray, " V"], high: Float[np.ndarray, " V"], error: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Return simultaneous intervals for the V means of values in [low, high].

    With probability 1 - `error` they hold for every number of replicates at once. An end is infinite if the values have
    no bound on that side. If both bounds of a component are equal, they are its interval.
    """
    width = high - low
    slack = rounding_of(samples, low, high)
    bottom = np.full(len(low), -np.inf)
    top = np.full(len(low), np.inf)
    for place in range(len(low)):
        if width[place] == 0:
            bottom[place] = top[place] = low[place]
            continue
        values = samples[:, place]
        # Between two bounds one gambler bets in both directions. With one bound, the other end has half of the error.
        is_two_sided = np.isfinite(width[place])
        num_gamblers = 1 if is_two_sided else 2
        share = error / len(low) / num_gamblers
        if np.isfinite(low[place]):
            begin = low[place] - slack[place]
            bottom[place] = begin + _least_mean(np.maximum(values - begin, 0), share)
        if np.isfinite(high[place]):
            end = high[place] + slack[place]
            top[place] = end - _least_mean(np.maximum(end - values, 0), share)
    return np.maximum(bottom, low), np.minimum(top, high)


def rounding_of(samples: Float[np.ndarray, "B V"], low: Any, high: Any) -> Float[np.ndarray, " V"]:
    """Return by how much values may exceed their range through rounding."""
    width = np.broadcast_to(np.subtract(high, low), samples.shape[1:])
    return ROUNDING * np.where(np.isfinite(width), width, np.abs(samples).max(axis=0))


def _least_mean(values: Float[np.ndarray, " B"], error: float) -> float:
    """Return the lower end m of the interval for the mean of nonnegative values.

    At m the best constant bet has the log wealth -log(error) + regret, and so the gambler at least -log(error).
    """
    count = len(values)
    scale = values.mean()
    if scale == 0:
        return 0.0
    values = values / scale
    regret = 0.5 * math.log(math.pi) + scipy.special.gammaln(count + 1) - scipy.special.gammaln(count + 0.5)
    target = -math.log(error) + regret

    def mean_at(log_theta: float) -> float:
        # If the mean is m, the best bet is the share theta m / (1 + theta m) of the capital.
        odds = 1 + math.exp(log_theta) * values
        return float(np.sum(values / odds) / np.sum(1 / odds))

    def excess(log_theta: float) -> float:
        # The log wealth of the best bet at this m, over the target.
        theta = math.exp(log_theta)
        mean = mean_at(log_theta)
        gain = float(np.sum(np.log1p(theta * values)))
        return gain - count * math.log1p(theta * mean) - target

    if values.min() > 0:
        total = float(np.sum(np.log(values)))
        harmonic = count / float(np.sum(1 / values))
        # The best bet is everything, and theta infinite. Without 1e-6 the search for `high` might not end.
        if total - count * math.log(harmonic) < target + 1e-6:
            return scale * math.exp((total - target) / count)
    variance = max(float(values.var()), 1e-12)  # not 0, which is a divisor
    guess = 0.5 * math.log(2 * target / (count * variance))  # correct for normal values
    low = guess - 0.5
    high = guess + 0.5
    while excess(low) > 0:
        low -= 2
    while excess(high) < 0:
        high += 2
    return scale * mean_at(scipy.optimize.brentq(excess, low, high, xtol=1e-9))


def clopper_pearson(
    successes: Float[np.ndarray, " V"], count: int, error: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Return the exact two-sided interval of a binomial probability. Its coverage is at least 1 - `error`."""
    return _clopper_pearson(tuple(np.asarray(successes).tolist()), count, error)


def is_dependent(values: Float[np.ndarray, " B"]) -> bool:
    """Return whether replicates 0, 1, ... depend on each other, for example through a shared seed.

    If they do, ranks are correlated at some distance up to half their number, or between neighbours in blocks.
    Independent replicates are called dependent with probability about `DEPENDENCE_ERROR`. Events with frequency below
    1/5 or above 4/5 give False, because their sums are far from normal.
    """
    count = len(values)
    ranks = scipy.stats.rankdata(values)
    ranks -= ranks.mean()
    variance = ranks.var()
    if variance == 0 or np.mean(ranks**4) > MOST_KURTOSIS * variance**2:
        return False
    distances = np.arange(1, count // 2 + 1)
    spectrum = np.abs(np.fft.rfft(ranks, 2 * count)) ** 2  # of padded ranks, so that distances do not wrap around
    products = np.fft.irfft(spectrum)[distances]  # sums over pairs at each distance
    tails = [*scipy.stats.norm.sf(products / (variance * np.sqrt(count - distances)))]
    num_lengths = int(math.log2(count / FEWEST_BLOCKS))
    for length in 2 ** np.arange(1, num_lengths + 1):  # 2, 4, 8, ...
        blocks = ranks[: count // length * length].reshape(-1, length)
        between = np.sum(blocks.mean(axis=1) ** 2) * length / variance  # chi-squared, for normal rank sums of blocks
        tails.append(scipy.stats.chi2.sf(between, len(blocks) - 1))
    return bool(tails) and min(tails) * len(tails) < DEPENDENCE_ERROR


def slope_weights(abscissa: Float[np.ndarray, " V"], places: Any = slice(None)) -> Float[np.ndarray, " V"]:
    """Return the weights a_v of log means in the least-squares slope over log x at `places`, and 0 elsewhere."""
    weights = np.zeros(len(abscissa))
    logs = np.log(abscissa[places])
    centred = logs - logs.mean()
    weights[places] = centred / np.sum(centred**2)
    return weights


def contrast_samples(values: Float[np.ndarray, "B V"], weights: Float[np.ndarray, "C V"]) -> Float[np.ndarray, "B C"]:
    """Return a number per replicate whose mean is sum_v a_v log(mean_v), for each row a of the weights.

    By the delta method a replicate deviates by sum_v a_v (value_v / mean_v - 1), whose scatter is the error.
    """
    means = values.mean(axis=0)
    if not np.all(means > 0):
        raise DeclarationError(f"a rate needs positive means, not {means.min():.3g}")
    return weights @ np.log(means) + (values / means - 1) @ weights.T


def contrast_limits(
    means: Intervals, weights: Float[np.ndarray, "C V"]
) -> tuple[Float[np.ndarray, " C"], Float[np.ndarray, " C"]]:
    """Return bounds on sum_v a_v log(mean_v) from simultaneous intervals of the means, for any distribution.

    The bounds are wide if the means are correlated, and infinite if a mean has no interval.
    """
    if any(means.doubts) or not np.all(means.low > 0):
        infinite = np.full(len(weights), np.inf)
        return -infinite, infinite
    low = np.log(means.low)
    high = np.log(means.high)
    rising = np.maximum(weights, 0)
    falling = np.minimum(weights, 0)
    return rising @ low + falling @ high, rising @ high + falling @ low


def doubt_of_logs(values: Float[np.ndarray, "B V"]) -> str:
    """Return the reason why logarithms of these means cannot be treated as linear, or ""."""
    mean, standard_error = mean_and_error(values)
    if np.all(standard_error <= MOST_RELATIVE_ERROR * np.abs(mean)):
        return ""
    return f"{len(values):,} replicates leave a mean uncertain by more than {MOST_RELATIVE_ERROR:.0%}"


def asymptotic_end(abscissa: Float[np.ndarray, " V"]) -> tuple[list[int], str]:
    """Return the two grid points closest to the limit, and the name of that end. On a grid up to 1 the limit is 0."""
    order = np.argsort(abscissa)
    if abscissa.max() <= 1:
        return order[:2].tolist(), "small"
    return order[-2:].tolist(), "large"


def last_decades(abscissa: Float[np.ndarray, " V"], number: int) -> Int[np.ndarray, " P"]:
    """Return the grid points within `number` decades of the point closest to the limit, but at least `number` + 1."""
    order = np.argsort(abscissa)
    if abscissa.max() <= 1:
        order = order[::-1]
    decades = np.abs(np.log10(abscissa[order] / abscissa[order[-1]]))
    first_within = int(np.argmax(decades < number + 1e-9))
    return order[min(first_within, len(order) - number - 1) :]


def varies(samples: np.ndarray) -> np.ndarray:
    """Return which components vary by more than rounding."""
    return np.ptp(samples, axis=0) > 1e-12 * np.max(np.abs(samples), axis=0)


@functools.lru_cache(maxsize=16)
def _clopper_pearson(successes: tuple[float, ...], count: int, error: float) -> tuple[np.ndarray, np.ndarray]:
    counts = np.asarray(successes)
    low = scipy.stats.beta.ppf(error / 2, counts, count - counts + 1)
    high = scipy.stats.beta.isf(error / 2, counts + 1, count - counts)
    low = np.where(counts == 0, 0.0, low)
    high = np.where(counts == count, 1.0, high)
    return _read_only(low), _read_only(high)


@functools.lru_cache(maxsize=128)
def _tail_quantiles(freedom: int, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    log_tails = np.linspace(lowest, highest, QUANTILES)
    return _read_only(log_tails), _read_only(scipy.stats.t.isf(np.exp(log_tails), freedom))


def _read_only(values: Any) -> np.ndarray:  # because all callers receive the same cached array
    values = np.asarray(values)
    values.setflags(write=False)
    return values


def _largest_t(samples: np.ndarray, error: float) -> float:
    """Return the upper `error` quantile of max_v |T_v|, where T is multivariate t with the samples' correlation.

    P(max > c) = V p E[1 / number of |T_u| > c], where p = P(|T_v| > c), v is uniform, and T is drawn given |T_v| > c.
    """
    count, num_components = samples.shape
    freedom = count - 1
    # The quantile lies between those for one component and for the union bound.
    alone = student_tail(error / 2, freedom)
    bonferroni = student_tail(error / num_components / 2, freedom)
    largest = np.max(np.abs(samples), axis=0)
    if np.max(largest) > LARGEST_SQUARED:
        samples = samples / largest
    correlation = np.corrcoef(samples, rowvar=False)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0))
    generator = np.random.default_rng(0)
    places = np.arange(BOOTSTRAP_DRAWS)
    components = places % num_components  # v of each draw
    normals = generator.standard_normal((BOOTSTRAP_DRAWS, num_components)) @ root.T
    # The part of the other components that is independent of component v.
    remaining = normals - correlation[components] * normals[places, components][:, None]
    chi_squares = generator.chisquare(freedom + 1, BOOTSTRAP_DRAWS)
    uniforms = generator.random(BOOTSTRAP_DRAWS)
    highest = float(scipy.stats.t.logsf(alone, freedom))
    lowest = float(scipy.stats.t.logsf(bonferroni, freedom) + math.log(uniforms.min()))
    log_tails, quantiles = _tail_quantiles(freedom, lowest, highest)

    def log_excess(critical: float) -> float:
        tail = scipy.stats.t.sf(critical, freedom)
        beyond = np.interp(np.log(uniforms * tail), log_tails, quantiles)  # T_v, given that it is above `critical`
        spread = np.sqrt((freedom + beyond**2) / chi_squares)
        deviations = correlation[components] * beyond[:, None] + spread[:, None] * remaining
        weights = 1 / np.maximum(np.sum(np.abs(deviations) > critical, axis=1), 1)
        # Three of its standard errors are added, so that the interval is not too narrow by chance.
        probability = weights.mean() + 3 * weights.std() / math.sqrt(BOOTSTRAP_DRAWS)
        return math.log(2 * num_components * tail * probability / error)

    if log_excess(bonferroni) >= 0 or bonferroni == alone:
        return bonferroni
    if log_excess(alone) <= 0:
        return alone
    return float(scipy.optimize.root_scalar(log_excess, bracket=(alone, bonferroni), xtol=1e-4).root)
