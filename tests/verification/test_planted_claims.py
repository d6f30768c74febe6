"""Planted claims, at fewer claims a condition: catches an engine that errs more often than it says, and a blind test.

Seeds are fixed. With 60 claims a condition, or 20 where one takes long, and powers held to 30 points, a right engine
fails with a probability below 1e-4. Each planted defect is one that a change could bring in, and makes the count
fail.
"""

import dataclasses
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from moe_theory.verification import KINDS, criteria, interim, intervals, judgement

from . import planted_counts
from .planted import EXPERIMENT, REPLICATES

CONDITIONS = list(planted_counts.planted_conditions())


def chosen(kind, *conditions, num_components=1, law="normal", side=None, error=planted_counts.ERROR):
    wanted = (kind, side, law, num_components, error)
    return [
        each
        for each in CONDITIONS
        if (each.kind, each.side, each.law, each.num_components, each.error) == wanted
        and (not conditions or each.condition in conditions)
    ]


# Kinds that take ten times as long as a mean, and the one condition that is judged of each, by as few claims.
SLOW = {"rate": "edge", "limit_rate": "false by 1"}
MANY, FEW = 60, 20


def is_quick(planted):
    is_chosen = planted.side in {None, "equal"} and planted.condition == SLOW.get(planted.kind)
    return planted.law == "normal" and (planted.kind not in SLOW or is_chosen)


def outcome_of(*conditions, most_claims=200, tolerance=0.2):
    return planted_counts.count_decisions(conditions, seed=4, most_claims=most_claims, tolerance=tolerance)


MAIN = [
    each
    for each in CONDITIONS
    if each.condition in {"edge", "false by 1"} and each.num_components == 1 and each.error == planted_counts.ERROR
]


@pytest.fixture(scope="module")
def reduced():
    """The whole, but for conditions that take long or are like others."""
    quick = [each for each in MAIN if is_quick(each)]
    many = outcome_of(*(each for each in quick if each.kind not in SLOW), most_claims=MANY, tolerance=0.3)
    few = outcome_of(*(each for each in quick if each.kind in SLOW), most_claims=FEW, tolerance=0.3)
    return dataclasses.replace(many, rows=many.rows + few.rows)


@pytest.mark.thorough
def test_the_engine_passes_at_every_condition_and_number_of_claims():
    """Margins, error rates and numbers of claims are those of the whole test."""
    found = planted_counts.count_decisions(CONDITIONS)
    assert found.passed, [row for row in found.rows if not row.is_ok]


@pytest.mark.thorough
def test_the_engine_passes_under_other_laws_and_in_what_takes_long():
    found = outcome_of(*(each for each in MAIN if not is_quick(each) or each.kind in SLOW))
    assert found.passed, [row for row in found.rows if not row.is_ok]


def test_the_engine_passes(reduced):
    assert reduced.passed, [row for row in reduced.rows if not row.is_ok]
    assert {row.kind for row in reduced.rows} == set(KINDS)
    assert all(row.num_claims >= (FEW if row.kind in SLOW else MANY) for row in reduced.rows)
    assert {row.measure for row in reduced.rows} == {"size", "power"}


HOSTILE = [
    each for each in CONDITIONS if each.law != "normal" and each.kind == "upper_bound" and each.replicates == REPLICATES
]


@pytest.mark.parametrize(
    "planted",
    [*HOSTILE[::2], *(pytest.param(each, marks=pytest.mark.thorough) for each in HOSTILE[1::2])],
    ids=lambda each: each.law,
)
def test_no_law_makes_the_engine_err_more_often_than_it_says(planted):
    """Catches support from samples that have not shown what their law can do, whatever the law."""
    found = planted_counts.count_decisions([planted], seed=4, most_claims=40)
    assert found.passed, found.rows


def test_claims_of_a_seed_are_the_same():
    """Catches verdicts that depend on the other conditions."""
    claims = chosen("probability", "edge", "false by 1", side="at_most")
    both = planted_counts.count_decisions(claims, seed=1, most_claims=60)
    alone = planted_counts.count_decisions(claims[1:], seed=1, most_claims=60)
    assert both.rows[2:] == alone.rows
    assert planted_counts.count_decisions(claims, seed=2, most_claims=60).rows != both.rows


def shrunk_scheme(samples, error):
    made = intervals.scheme_for(samples, error)
    return made._replace(critical=0.5 * made.critical)


def wald(successes, count, error):
    share = np.asarray(successes) / count
    reach = stats.norm.isf(error / 2) * np.sqrt(share * (1 - share) / count)
    return share - reach, share + reach


def alone(samples, error):
    return float(stats.t.isf(error / 2, len(samples) - 1))


def trusted(samples, critical):
    return np.zeros(samples.shape[1]), [""] * samples.shape[1]


def won_too_soon(samples, low, high, error):
    return intervals.betting_intervals(samples, low, high, 200 * error)


def small(law):
    return [each for each in chosen("upper_bound", "edge", law=law) if each.replicates == REPLICATES]


EDGE = chosen("upper_bound", "edge")
SEVERAL = chosen("upper_bound", "false by 1", num_components=8)
SMALLEST = chosen("lower_bound", planted_counts.SMALLEST)
SLOW_FALL = chosen("limit_probability", "falls slowly", side="at_least")
BENT = chosen("limit_rate", "bends to true", side="at_most")
SHARES = chosen("probability", "edge", side="at_most")
# What it replaces, by what, the conditions that it shows in, and of how many claims each at most.
DEFECTS = {
    "discrepancy at half the power": (judgement, "POWER", 0.5, SMALLEST, 200),
    "a slow fall for none": (judgement, "SLOWEST_FALL", 0.2, SLOW_FALL, 200),
    "t always trusted": (intervals, "_trust_in_t", trusted, small("1 in 100"), 200),
    "copies taken for replicates": (interim, "is_dependent", lambda column: False, small("64 share a part"), 100),
    "a bet won too soon": (judgement, "betting_intervals", won_too_soon, small("in [0, 1]: uniform"), 200),
}
LONG_DEFECTS = {
    "Wald's interval": (judgement, "clopper_pearson", wald, SHARES, 800),
    "every look spends all": (interim, "alpha_spent", lambda error, number: error, EDGE, 1000),
    "critical value too small": (judgement, "scheme_for", shrunk_scheme, EDGE, 400),
    "components as if alone": (intervals, "_largest_t", alone, SEVERAL, 200),
    "bending ignored": (criteria.LimitRate, "_judge", staticmethod(judgement.judge_slopes), BENT, 60),
}


@pytest.mark.parametrize(
    "defect",
    [*DEFECTS.items(), *(pytest.param(each, marks=pytest.mark.thorough) for each in LONG_DEFECTS.items())],
    ids=lambda defect: defect[0],
)
def test_a_planted_defect_is_found(defect):
    _, (module, name, replacement, conditions, most_claims) = defect
    assert conditions
    with mock.patch.object(module, name, replacement):
        assert not planted_counts.count_decisions(conditions, seed=4, most_claims=most_claims).passed


def test_samples_do_not_depend_on_looks_and_have_the_declared_law():
    """Catches a condition whose distance is not where it says, on which every prediction rests."""
    assert EXPERIMENT.replicates == REPLICATES
    for each in CONDITIONS:
        if each.kind in {"probability", "counterexample"} and each.num_components == 1:
            shares = [each.draw(np.random.default_rng(index))["observed"].mean() for index in range(40)]
            deviation = np.sqrt(each.frequencies()[0] * (1 - each.frequencies()[0]) / (40 * REPLICATES))
            assert abs(np.mean(shares) - each.frequencies()[0]) <= 6 * deviation
        if each.kind == "ordering" and each.law == "normal":
            drawn = each.draw(np.random.default_rng(0))
            gap = np.mean(drawn["observed"] - drawn["predicted"])
            assert abs(gap - each.margin * each.distance) < 6 / np.sqrt(REPLICATES)


def test_a_predicted_power_is_that_of_the_t_test():
    """By another way: a mean that is false by four margins is refuted at the first look that t is trusted with."""
    (condition,) = chosen("upper_bound", "false by 4")
    looks, errors = np.array(condition.looks), np.array(condition.look_errors)
    place = int(np.argmax(looks >= 256))
    critical = stats.t.isf(errors[place] / 2, looks[place] - 1)
    power = stats.nct.sf(critical, looks[place] - 1, 4 * condition.margin * np.sqrt(looks[place]))
    assert planted_counts.expected_shares(condition).refuted == pytest.approx(1, abs=1 - power + 0.005)
