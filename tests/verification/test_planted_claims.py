"""Planted claims, at fewer claims a condition: catches an engine that errs more often than it says, and a blind test.

Seeds are fixed. With 100 claims a condition, or 30 where one takes long, and powers held to 25 points, a right engine
fails with a probability below 1e-5. Each planted defect is one that a change could bring in, and makes the count
fail. Searches of planted regions: catches a search that misses a flip, or finds one where there is none.
"""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from moe_theory.verification import KINDS, criteria, interim, intervals, judgement

from . import planted_counts, planted_regions
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
MANY, FEW = 100, 30


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
    many = outcome_of(*(each for each in quick if each.kind not in SLOW), most_claims=MANY, tolerance=0.25)
    few = outcome_of(*(each for each in quick if each.kind in SLOW), most_claims=FEW, tolerance=0.25)
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


@pytest.mark.parametrize("planted", HOSTILE, ids=lambda each: each.law)
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


def defects():
    """Name, what it replaces, by what, and the conditions that it shows in, of so many claims each at most."""
    scheme, exact = judgement.scheme_for, judgement.clopper_pearson
    slopes = judgement.judge_slopes

    def shrunk(samples, error):
        made = scheme(samples, error)
        return made._replace(critical=0.5 * made.critical)

    def wald(successes, count, error):
        share = np.asarray(successes) / count
        reach = stats.norm.isf(error / 2) * np.sqrt(share * (1 - share) / count)
        return share - reach, share + reach

    def alone(samples, error):
        return float(stats.t.isf(error / 2, len(samples) - 1))

    def small(law):
        return [each for each in chosen("upper_bound", "edge", law=law) if each.replicates == REPLICATES]

    bet, edge = judgement.betting_intervals, chosen("upper_bound", "edge")
    several = chosen("upper_bound", "false by 1", num_components=8)
    events = chosen("probability", "true", num_components=4, side="at_least")
    yield "every look spends all", interim, "alpha_spent", lambda error, number: error, edge, 1000
    yield "critical value too small", judgement, "scheme_for", shrunk, edge, 400
    yield "components as if alone", intervals, "_largest_t", alone, several, 200
    yield "Wald's interval", judgement, "clopper_pearson", wald, chosen("probability", "edge", side="at_most"), 800
    yield (
        "events as if alone",
        judgement,
        "clopper_pearson",
        lambda successes, count, error: exact(successes, count, error * len(successes)),
        events,
        200,
    )
    yield "discrepancy at half the power", judgement, "POWER", 0.5, chosen("lower_bound", planted_counts.SMALLEST), 200
    yield (
        "bending ignored",
        criteria.LimitRate,
        "_judge",
        staticmethod(slopes),
        chosen("limit_rate", "bends to true", side="at_most"),
        60,
    )
    yield (
        "a slow fall for none",
        judgement,
        "SLOWEST_FALL",
        0.2,
        chosen("limit_probability", "falls slowly", side="at_least"),
        200,
    )
    trusted = lambda samples, critical: (np.zeros(samples.shape[1]), [""] * samples.shape[1])  # noqa: E731
    for law in ("Pareto 2.1", "1 in 100", "zero but 1 in 20"):
        yield f"t always trusted, {law}", intervals, "_trust_in_t", trusted, small(law), 200
    yield "copies taken for replicates", interim, "is_dependent", lambda column: False, small("64 share a part"), 100
    late = lambda samples, low, high, error: bet(samples, low, high, 200 * error)  # noqa: E731
    yield "a bet won too soon", judgement, "betting_intervals", late, small("in [0, 1]: uniform"), 200


LONG = {"every look spends all", "critical value too small", "components as if alone", "bending ignored"}
DEFECTS = [
    pytest.param(defect, id=defect[0].replace(" ", "-"), marks=[pytest.mark.thorough] if defect[0] in LONG else [])
    for defect in defects()
]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect, monkeypatch):
    _, module, name, replacement, conditions, most_claims = defect
    monkeypatch.setattr(module, name, replacement)
    assert conditions
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


@pytest.mark.thorough
def test_what_has_to_be_found_is_found_and_nothing_else():
    rows = {row.region: row for row in planted_regions.search_planted(1, seed=40)}
    assert all(row.is_ok for row in rows.values())
    assert rows["false in a corner"].flipped == rows["true at one point"].flipped == 1
    assert rows["fading in the limit"].flipped == rows["true everywhere"].flipped == 0


@pytest.mark.thorough
def test_every_region_is_searched_twenty_times():
    rows = planted_regions.search_planted()
    assert [row for row in rows if not row.is_ok] == []


@pytest.mark.thorough
def test_a_search_that_takes_its_looks_for_verdicts_is_seen(monkeypatch):
    monkeypatch.setattr(planted_regions.RegionSearch, "_is_flip", lambda self, verdicts: True)
    (row,) = [row for row in planted_regions.search_planted(8) if row.region == "at its margin everywhere"]
    assert row.false > 0
    assert not row.is_ok
