"""Planted claims, judged from samples of a known law: catches an engine that errs more often than it says, or is blind.

At the edge of a claim, which is as far off as its margin, every decision is false. Seeds are fixed: a right
engine fails with a probability below 1e-5.
"""

import numpy as np
import pytest
from scipy import stats

from moe_theory.runs import Run
from moe_theory.verification import Status
from moe_theory.verification.interim import SequentialTest, look_sizes
from moe_theory.verification.ranges import Range
from moe_theory.verification.request import blank_verdict

from .declarations import make

REPLICATES, ERROR = 512, 0.1
NUM_CLAIMS = 120
# Laws of mean 0 on which a claim rests that has no range; by the event alone that no replicate may show.
LAWS = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "exponential": lambda generator, shape: generator.standard_exponential(shape) - 1,
    "log-normal": lambda generator, shape: generator.lognormal(0, 2, shape) - np.exp(2),
    "1 in 100": lambda generator, shape: 100.0 * (generator.random(shape) < 0.01) - 1,
    "zero but 1 in 20": lambda generator, shape: (
        (generator.random(shape) < 0.05) * generator.standard_exponential(shape) / 0.05 - 1
    ),
    "counts": lambda generator, shape: generator.poisson(0.1, shape) - 0.1,
    "pairs of a seed": lambda generator, shape: np.repeat(generator.standard_normal((shape[0] // 2, shape[1])), 2, 0),
}
IN_RANGE = {  # laws of values in [0, 1], and their means
    "coin": (lambda generator, shape: generator.random(shape) < 0.5, 0.5),
    "1 in 100": (lambda generator, shape: generator.random(shape) < 0.01, 0.01),
    "uniform": (lambda generator, shape: generator.random(shape), 0.5),
}


def count_statuses(kind, observed, num_claims=NUM_CLAIMS, **changes):
    """How many claims of a kind are refuted and supported, each on samples of its own, look after look."""
    statuses = []
    for seed in range(num_claims):
        samples = observed(np.random.default_rng([4, seed])).astype(np.float64)
        claim = make(kind=kind, observe=lambda runs, samples=samples: samples[runs["M=1"].replicates], **changes)
        test = SequentialTest(claim, blank_verdict(claim, "planted", 0, ERROR), REPLICATES)
        first = 0
        for count in look_sizes(REPLICATES, REPLICATES):
            test.extend({"M=1": Run((), np.array([1]), np.arange(first, count), None, None)}, overflows={})
            first = count
            test.look(count)
            if test.has_ended:
                break
        statuses.append(test.latest.status)
    return statuses.count(Status.REFUTED), statuses.count(Status.SUPPORTED)


def most(error, num_claims=NUM_CLAIMS):
    """As many false decisions as a right engine makes of so many claims."""
    return stats.binom.isf(1e-6, num_claims, error)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("kind", "sign"), [("upper_bound", 1), ("lower_bound", -1)])
def test_a_bound_at_its_edge_is_rarely_decided(kind, sign, law):
    """Catches support from samples that have not shown what their law can do."""
    refuted, supported = count_statuses(
        kind,
        lambda generator: 0.15 * sign + LAWS[law](generator, (REPLICATES, 1)),
        margin=0.15,
        predict=lambda runs: 0.0,
        scale=lambda runs: 1.0,
    )
    assert max(refuted, supported) <= most(ERROR / 2)


@pytest.mark.parametrize("law", IN_RANGE)
def test_a_bound_with_a_range_at_its_edge_is_rarely_decided(law):
    draw, mean = IN_RANGE[law]
    ranges = {"observed": Range(0, 1), "predicted": Range(is_constant=True)}
    refuted, supported = count_statuses(
        "upper_bound",
        lambda generator: draw(generator, (REPLICATES, 1)),
        margin=0.0,
        predict=lambda runs: mean,
        ranges=ranges,
    )
    assert refuted + supported <= most(ERROR)


# By kind, what is observed of 512 replicates where the claim is off by so many margins, and how it is declared.
SHAPE = (REPLICATES, 1)
GRID = np.array([0.01, 1.0])
KINDS = {
    "equality": (lambda g, off: 0.2 * off + g.standard_normal(SHAPE), {"margin": 0.2}),
    "upper_bound": (lambda g, off: 0.25 * off + g.standard_normal((REPLICATES, 8)), {"margin": 0.25}),
    "ordering": (lambda g, off: 0.2 * off + g.standard_normal(SHAPE), {"margin": 0.2}),
    "probability": (
        lambda g, off: g.random(SHAPE) < 0.3 + 0.1 * off,
        {"margin": 0.1, "side": "at_most", "predict": lambda runs: 0.3},
    ),
    "counterexample": (lambda g, off: g.random(SHAPE) < 0.1 * off, {"margin": 0.1, "predict": None}),
    "rate": (
        lambda g, off: GRID ** (0.5 + 0.02 * off) * (1 + 0.3 * g.standard_normal((REPLICATES, 2))),
        {"margin": 0.02, "side": "at_most", "abscissa": tuple(GRID), "predict": lambda runs: 0.5},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_of_a_kind_is_refuted_where_it_is_false_and_supported_where_it_is_true(kind):
    """Catches an error that every look spends anew, intervals that are too short or too wide, and a side exchanged."""
    draw, changes = KINDS[kind]
    about = {"predict": lambda runs: 0.0} | changes
    if kind in ("equality", "upper_bound", "ordering"):
        about["scale"] = lambda runs: 1.0
    number = 20 if kind == "rate" else NUM_CLAIMS
    shares = [
        count_statuses(kind, lambda generator, off=off: draw(generator, off), num_claims=number, **about)
        for off in (0, 1, 3)
    ]
    (_, true), edge, (false, _) = shares
    assert true > 0.5 * number or kind == "counterexample"  # which is never supported
    assert max(edge) <= most(ERROR / 2, number)
    assert false > 0.9 * number
