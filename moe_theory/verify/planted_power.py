"""How often planted claims should be refuted and supported, from the law of their samples alone.

Nothing here asks the engine. Means are a Gaussian random walk, looked at against Student's t, or against the quantiles
of the largest of several |t|, which are those of the walk itself; counts of one event are a binomial walk, whose law
is carried from look to look exactly; several events are simulated.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from moe_theory.verify.planted import CORRELATION, Planted

NUM_WALKS = 40_000
CHUNK = 4_000  # walks that are drawn together


class Shares(NamedTuple):
    """Probabilities of the two decisions."""

    refuted: float
    supported: float


class Walks(NamedTuple):
    """Sample means and their standard errors at every look, of normal samples with mean 0 and variance 1."""

    mean: Float[np.ndarray, "W K V"]
    standard_error: Float[np.ndarray, "W K V"]


def predicted_shares(planted: Planted) -> Shares:
    """The probabilities of a REFUTED and of a SUPPORTED; of a law that is not normal, as if it were."""
    match planted.kind:
        case "identity":
            return _identity(planted)
        case "probability" | "counterexample":
            return _one_event(planted) if planted.num_components == 1 else _events(planted)
        case _:
            return _means(planted)


def _means(planted: Planted) -> Shares:
    """Of a walk towards the side that a statement forbids; a lower bound is an upper one in a mirror."""
    walks = _walks(planted.looks, planted.num_components)
    critical = _critical_values(planted)[:, None]
    mean = walks.mean + planted.margin * planted.distances()
    if planted.kind == "equality" or planted.side == "equal":
        mean = np.abs(mean)  # nearer to the edge that it may fail at, and inside the other one if inside this
    half = critical * walks.standard_error
    refuted = np.any(mean - half > planted.margin, axis=2)
    supported = np.all(mean + half < planted.margin, axis=2)
    return _first_decisions(refuted, supported)


def _critical_values(planted: Planted) -> Float[np.ndarray, " K"]:
    looks, errors = np.array(planted.looks), np.array(planted.look_errors)
    if planted.num_components == 1:
        return stats.t.isf(errors / 2, looks - 1)
    walks = _walks(planted.looks, planted.num_components)
    largest = np.abs(walks.mean / walks.standard_error).max(axis=2)
    return np.array([np.quantile(largest[:, place], 1 - error) for place, error in enumerate(errors)])


@functools.lru_cache(maxsize=8)
def _walks(looks: tuple[int, ...], num_components: int) -> Walks:
    generator = np.random.default_rng(1)
    correlation = np.full((num_components, num_components), CORRELATION)
    np.fill_diagonal(correlation, 1)
    root = np.linalg.cholesky(correlation)
    counts = np.array(looks)[:, None]
    means, errors = [], []
    for _ in range(NUM_WALKS // CHUNK):
        sums = np.zeros((2, CHUNK, len(looks), num_components))
        for place, fresh in enumerate(np.diff(looks, prepend=0)):
            samples = generator.standard_normal((CHUNK, fresh, num_components), np.float32) @ root.T.astype(np.float32)
            sums[:, :, place] = samples.sum(axis=1), np.square(samples).sum(axis=1)
        total, squares = sums.cumsum(axis=2)
        means.append(total / counts)
        errors.append(np.sqrt((squares - total**2 / counts) / (counts - 1) / counts))
    return Walks(np.concatenate(means), np.concatenate(errors))


def _identity(planted: Planted) -> Shares:
    """One violation refutes, and only all replicates without one support."""
    clean = float(np.prod((1 - planted.frequencies()) ** planted.looks[-1]))
    return Shares(1 - clean, clean)


def _deciding_counts(
    planted: Planted, count: int, error: float
) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
    """Which counts of an event refute and which support, by exact binomial tests at the margin's edge."""
    edge = planted.claimed + planted.sign * planted.margin
    counts = np.arange(count + 1)
    above, below = stats.binom.sf(counts - 1, count, edge) < error / 2, stats.binom.cdf(counts, count, edge) < error / 2
    refuting, supporting = (above, below) if planted.sign > 0 else (below, above)
    return refuting, supporting & (planted.kind != "counterexample")


def _one_event(planted: Planted) -> Shares:
    """Exactly, by the law of the count among the claims that are not decided yet."""
    frequency, undecided, known = planted.frequencies()[0], np.ones(1), 0
    refuted = supported = 0.0
    for count, error in zip(planted.looks, planted.look_errors, strict=True):
        fresh = count - known
        undecided = np.convolve(undecided, stats.binom.pmf(np.arange(fresh + 1), fresh, frequency))
        refuting, supporting = _deciding_counts(planted, count, error)
        refuted, supported = refuted + undecided[refuting].sum(), supported + undecided[supporting].sum()
        undecided, known = np.where(refuting | supporting, 0, undecided), count
    return Shares(float(refuted), float(supported))


def _events(planted: Planted) -> Shares:
    """Several independent events, at a share of the error each."""
    generator = np.random.default_rng(2)
    size = (NUM_WALKS, planted.num_components)
    happened: Int[np.ndarray, "W V"] = np.zeros(size, int)
    refuted, supported, known = [], [], 0
    for count, error in zip(planted.looks, planted.look_errors, strict=True):
        happened = happened + generator.binomial(count - known, planted.frequencies(), size)
        refuting, supporting = _deciding_counts(planted, count, error / planted.num_components)
        refuted.append(refuting[happened].any(axis=1))
        supported.append(supporting[happened].all(axis=1))
        known = count
    return _first_decisions(np.stack(refuted, axis=1), np.stack(supported, axis=1))


def _first_decisions(refuted: Bool[np.ndarray, "W K"], supported: Bool[np.ndarray, "W K"]) -> Shares:
    """Shares of the walks by the decision that comes first."""
    first = np.argmax(refuted | supported, axis=1)  # the first look where nothing decides: neither is true there
    rows = np.arange(len(first))
    is_refuted, is_supported = refuted[rows, first], supported[rows, first]
    return Shares(float(is_refuted.mean()), float((is_supported & ~is_refuted).mean()))
