"""Probabilities, rates and limits, from intervals to pictures: catches errors other than those that are stated."""

import dataclasses
import re

import numpy as np
import pytest
from judging import judge
from refusals import refusal
from samples import panel_of
from scipy import stats

from moe_theory import continual
from moe_theory.core.errors import DeclarationError
from moe_theory.report.wording import claimed as claimed_words
from moe_theory.report.wording import sentence
from moe_theory.runs import Run
from moe_theory.verification import Status, Verdict, intervals, judgement

from .declarations import make

COUNT = 400
ERROR = 1e-9  # of every verdict here
RUNS = {"M=1": Run(continual.Params(), np.array([1, 2, 3, 4]), np.arange(COUNT), None, None)}
GRID = np.array([0.01, 0.02, 0.1, 0.5])  # unevenly spaced
NOISE = np.random.default_rng(17).standard_normal((COUNT, len(GRID)))
LIMIT = np.array([0.001, 1.0, 0.01, 0.1])  # of a limit, whose points may come in any order
SIDES = pytest.mark.parametrize("side", ["at_most", "at_least"])


def events(*successes, count=COUNT):
    """(count, V): event v happened in `successes[v]` replicates, in no order."""
    order = np.random.default_rng(29).permutation(count)
    return (order[:, None] < np.array(successes)).astype(float)


def judged(kind, **changes):
    grid = LIMIT if kind.startswith("limit") else GRID if kind == "rate" else None
    settings = {"kind": kind, "side": "at_most", "margin": 0.0, "abscissa": grid}
    return judge(make(**(settings | changes)), "unit-signal", RUNS, seed=5, error=ERROR)


def probability(*successes: int, claimed: float | np.ndarray = 0.5, **changes):
    return judged("probability", observe=lambda runs: events(*successes), predict=lambda runs: claimed, **changes)


def rate(slope, claimed, **changes):
    return judged("rate", observe=lambda runs: power_law(slope), predict=lambda runs: claimed, **changes)


def rate_of(values, claimed, side):
    return judged("rate", side=side, observe=lambda runs: values, predict=lambda runs: claimed)


def power_law(slope, noise=NOISE):
    return 3 * GRID**slope * (1 + 0.2 * noise)


def slope_samples(values):
    return intervals.contrast_samples(values, intervals.slope_weights(GRID)[None])


def statuses(count, claimed, margin, error, side):
    """What is decided at each count of a single event."""
    decide = [
        judgement.judge_probability(
            events(successes, count=count), np.array([claimed]), margin, error, at_most=side == "at_most"
        )
        for successes in range(count + 1)
    ]
    return np.array([result.status for result in decide]), decide[0]


def outward(side):
    return 1 if side == "at_most" else -1


def chance(decided, status, true):
    """Probability of a status where the event has probability `true`."""
    return float(stats.binom.pmf(np.arange(len(decided)), len(decided) - 1, true) @ (decided == status))


@pytest.mark.parametrize("count", [1, 7, 40, 1000])
@pytest.mark.parametrize("error", [0.3, 0.05, 1e-6])
def test_clopper_pearson_is_scipys(count, error):
    """Catches ends that are swapped, off by one success, or undefined at no or nothing but successes."""
    successes = np.unique(np.linspace(0, count, 15).astype(int))
    low, high = intervals.clopper_pearson(successes, count, error)
    for place, number in enumerate(successes):
        other = stats.binomtest(int(number), count).proportion_ci(1 - error, method="exact")
        # SciPy's method finds roots, so that its last digits differ.
        np.testing.assert_allclose([low[place], high[place]], [other.low, other.high], rtol=1e-6, atol=1e-9)
    assert low[0] == 0
    assert high[-1] == 1


@SIDES
@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("claimed", [0.15, 0.5, 0.85])
def test_a_probability_is_wrongly_judged_no_more_often_than_stated(side, claimed, margin):
    """Exact size: catches a margin on the wrong side, intervals too short, and an error split once too often."""
    for error in (0.2, 0.01):
        decided, _ = statuses(200, claimed, margin, error, side)
        assert set(decided) == {Status.SUPPORTED, Status.INCONCLUSIVE, Status.REFUTED}
        edge = claimed + outward(side) * margin
        beyond = edge + outward(side) * 1e-9
        for size in (chance(decided, Status.REFUTED, edge), chance(decided, Status.SUPPORTED, beyond)):
            assert error / 2 / 8 < size <= error / 2  # each end has half; counts being whole costs some of it


@SIDES
@pytest.mark.parametrize("claimed", [0.01, 0.3, 0.97])
def test_a_probability_off_by_the_smallest_discrepancy_is_refuted(side, claimed):
    """Exact power: catches a smallest discrepancy that is missed, is not the smallest, or leaves the margin out."""
    margin, count = 0.005, 150
    decided, first = statuses(count, claimed, margin, 0.02, side)
    if claimed == {"at_most": 0.97, "at_least": 0.01}[side]:
        assert np.isnan(first.smallest_discrepancy)  # 150 replicates cannot refute it
        assert Status.REFUTED not in decided
        return
    seen, limit = first.smallest_discrepancy, float(side == "at_most")
    assert margin < seen < abs(limit - claimed)
    for true in np.linspace(claimed + outward(side) * (seen + 1e-9), limit, 50):
        assert chance(decided, Status.REFUTED, true) >= judgement.POWER
    for true in np.linspace(claimed, claimed + outward(side) * (seen - 1e-6), 50):
        assert chance(decided, Status.REFUTED, true) < judgement.POWER


def pairs(count, claimed, error, side):
    """What is decided of two events at each pair of counts."""
    return np.array(
        [
            [
                judgement.judge_probability(
                    events(first, second, count=count), claimed, 0.0, error, at_most=side == "at_most"
                ).status
                for second in range(count + 1)
            ]
            for first in range(count + 1)
        ]
    )


@SIDES
def test_several_events_share_the_error(side):
    """Exact, for two events independent or one and the same: catches Bonferroni's correction left out or made twice."""
    count, error, claimed = 18, 0.1, np.array([0.4, 0.6])
    decided = pairs(count, claimed, error, side)
    binomials = [stats.binom.pmf(np.arange(count + 1), count, true) for true in claimed]
    refuted = binomials[0] @ (decided == Status.REFUTED) @ binomials[1]
    alone = [statuses(count, true, 0.0, error / 2, side)[0] for true in claimed]
    apart = [chance(one, Status.REFUTED, true) for one, true in zip(alone, claimed, strict=True)]
    assert refuted == pytest.approx(1 - (1 - apart[0]) * (1 - apart[1]))  # either refutes, at half the error
    assert refuted <= error / 2
    # One at the edge, the other where nothing would refute it: support needs both, so it is rarer still.
    certain = float(side == "at_least")
    others = stats.binom.pmf(np.arange(count + 1), count, certain)
    supported = binomials[0] @ (decided == Status.SUPPORTED) @ others
    assert 0 < supported <= error / 2
    same = pairs(count, np.array([0.5, 0.5]), error, side).diagonal()
    assert chance(same, Status.REFUTED, 0.5) <= error / 2
    assert chance(same, Status.SUPPORTED, 0.5) <= error / 2


def test_the_error_of_a_slope_is_the_bootstraps():
    """Catches a delta method that forgets what grid points share, or that the fit's residuals are not the error."""
    shared = NOISE @ np.linalg.cholesky(0.4 * np.eye(4) + 0.6).T
    values = 3 * GRID**1.3 * np.exp(np.array([0.1, 0.6, 0.3, 0.8]) * shared)
    resampled = np.random.default_rng(23).multinomial(COUNT, np.full(COUNT, 1 / COUNT), size=4000) / COUNT @ values
    slopes = np.polyfit(np.log(GRID), np.log(resampled).T, 1)[0]
    _, error = intervals.mean_and_error(slope_samples(values))
    assert error[0] == pytest.approx(slopes.std(ddof=1), rel=0.1)  # 4000 give it to 1.1 %


def nearly_parallel(slope, generator):
    """Values that rise and fall together, up to rare differences: of the slope, t is not to be trusted."""
    common = 1 + 0.2 * generator.standard_normal((COUNT, 1))
    return 3 * GRID**slope * common * (1 + 1e-5 * generator.standard_t(1.5, (COUNT, 4)))


@SIDES
def test_a_slope_whose_own_tails_are_heavy_is_judged_by_the_means_that_it_is_made_of(side):
    """Catches a verdict left open because values cancel too well, and one that takes t for what is left."""
    values = nearly_parallel(1.5, np.random.default_rng(3))
    assert intervals.student_intervals(slope_samples(values), intervals.Scheme(6.0, is_bootstrap=False)).doubts[0]
    far, near = 1.5 + outward(side) * 0.5, 1.5 + outward(side) * 0.01
    assert rate_of(values, far, side).status is Status.SUPPORTED
    assert rate_of(values, 1.5 - outward(side) * 0.5, side).status is Status.REFUTED
    assert rate_of(values, near, side).status is Status.INCONCLUSIVE  # though scatter is of 1e-5


@SIDES
def test_the_end_of_a_grid_decides_what_the_rest_does_not_show(side):
    """Catches exponents taken from where they are not yet those of the limit."""
    bent = np.where(GRID < 0.05, GRID**1.0, 0.02**-1.5 * GRID**2.5) * (1 + 0.02 * NOISE)

    def status(claimed):
        return judged("rate", side=side, observe=lambda runs: bent, predict=lambda runs: claimed).status

    high, low = (Status.SUPPORTED, Status.REFUTED) if side == "at_most" else (Status.REFUTED, Status.SUPPORTED)
    assert status(3.0) is high  # above both slopes: 1 at the small end, over 2 in all
    assert status(0.5) is low  # below both
    assert status(1.5) is (Status.INCONCLUSIVE if side == "at_most" else Status.REFUTED)


def test_a_rate_carries_the_numbers_of_its_slope():
    """Catches a verdict whose standard error, interval or curve is that of a grid point, not of the slope."""
    verdict = rate(1.5, 1.4, side="at_least", margin=0.01)
    slope = np.polyfit(np.log(GRID[:2]), np.log(power_law(1.5).mean(axis=0)[:2]), 1)[0]
    assert verdict.at == "slope at the small end"  # which is the less certain
    assert verdict.side == "at_least"
    assert verdict.predicted == 1.4
    assert verdict.observed == pytest.approx(slope)
    assert verdict.standard_error == pytest.approx(0.2 * np.sqrt(2 / COUNT) / np.log(2), rel=0.2)
    low, high = verdict.interval
    half = (high - low) / 2
    assert (low + high) / 2 == pytest.approx(slope - 1.4)
    alone, both = (stats.t.isf(ERROR / share / 2, COUNT - 1) for share in (1, 2))
    assert alone * verdict.standard_error <= half <= 1.1 * both * verdict.standard_error  # a tenth for skewness
    assert verdict.margin == pytest.approx(0.01)
    assert verdict.smallest_discrepancy > half + 0.01
    assert verdict.curve is not None
    assert verdict.curve.abscissa == GRID.tolist()
    assert verdict.curve.labels == ["x = 0.01", "x = 0.02", "x = 0.1", "x = 0.5"]  # and no rounds, of which it has four
    np.testing.assert_allclose(verdict.curve.observed, power_law(1.5).mean(axis=0))
    logs = np.log(verdict.curve.predicted)
    np.testing.assert_allclose(np.diff(logs) / np.diff(np.log(GRID)), 1.4)
    assert logs.mean() == pytest.approx(np.log(verdict.curve.observed).mean())


def test_a_probability_carries_the_numbers_of_its_worst_event():
    """Catches an interval not of the difference, and a curve that loses events."""
    verdict = probability(40, 300, claimed=np.array([0.2, 0.5]))
    assert verdict.status is Status.REFUTED
    assert (verdict.at, verdict.observed, verdict.predicted, verdict.side) == ("component 2", 0.75, 0.5, "at_most")
    exact = stats.binomtest(300, COUNT).proportion_ci(1 - ERROR / 2, method="exact")
    np.testing.assert_allclose(verdict.interval, [exact.low - 0.5, exact.high - 0.5], rtol=1e-6)
    assert verdict.curve is not None
    assert verdict.curve.observed == [0.1, 0.75]
    assert verdict.curve.predicted == pytest.approx([0.2, 0.5])
    assert "exact" in verdict.interval_kind


def test_rates_that_t_cannot_be_trusted_with_are_left_open():
    """Catches a skewness judged from the values, and support from slopes that are all the same by accident."""
    heavy = judged("rate", observe=lambda runs: GRID * np.exp(2 * NOISE), predict=lambda runs: 1.0)
    assert heavy.status is Status.INCONCLUSIVE
    assert "leave a mean uncertain by more than 5%" in heavy.doubt
    assert "delta method" in heavy.interval_kind
    tails = judged("rate", observe=lambda runs: GRID * (1 + np.exp(2 * NOISE) / 100), predict=lambda runs: 1.0)
    assert "too few for tails like these" in tails.doubt
    scaled = judged("rate", observe=lambda runs: GRID * np.exp(0.5 * NOISE[:, :1]), predict=lambda runs: 1.1)
    assert scaled.status is Status.INCONCLUSIVE
    assert "all 400 replicates are equal" in scaled.doubt


@pytest.mark.parametrize(("side", "claimed"), [("at_most", 1.0), ("at_most", 1.7), ("at_least", 0.0), ("at_least", -3)])
def test_a_probability_bounded_by_what_always_holds_is_vacuous(side, claimed):
    """Catches support for a union bound above 1, or for 1 - delta below 0."""
    verdict = probability(200, claimed=float(claimed), side=side, margin=0.1)
    assert verdict.status is Status.VACUOUS
    assert verdict.trivial == int(side == "at_most")


@SIDES
def test_a_probability_bounded_below_what_always_holds_is_not_vacuous(side):
    """Catches the trivial bound of one side taken for the other's, and one event's for all."""
    successes = (100, 100) if side == "at_most" else (300, 300)
    claims = np.array([0.5, 1.2]) if side == "at_most" else np.array([0.5, -0.2])
    assert probability(*successes, claimed=claims, side=side).status is Status.SUPPORTED


def test_a_declaration_with_a_part_missing_or_too_many_is_refused():
    """Catches claims whose side would be guessed, or whose slope does not exist, before anything runs."""
    event = {"kind": "limit_probability", "abscissa": LIMIT}
    for changes in (
        {"kind": "probability", "margin": 0.0},
        {"kind": "probability", "side": "atmost"},
        {"kind": "probability", "side": "at_least", "abscissa": (1.0, 2.0)},
        {"kind": "probability", "side": "at_most", "predict": None},
        {"kind": "rate", "abscissa": (1.0, 2.0)},
        {"kind": "rate", "side": "at_least"},
        *(
            {"kind": "rate", "side": "at_least", "abscissa": abscissa}
            for abscissa in ((1.0,), (2.0, 2.0), (0.0, 1.0), (1.0, np.nan))
        ),
        {"side": "at_most"},
        {"abscissa": (1.0, 2.0)},
        {"kind": "upper_bound", "side": "at_most"},
        {"kind": "limit_rate", "side": "equal"},
        *(
            {"kind": "limit_rate", "side": "equal", "abscissa": abscissa}
            for abscissa in ((1.0, 0.1, 0.01), (1.0, 0.5, 0.1, 0.02), (1.0, 0.1, 0.1, 0.01, 0.001))
        ),
        {"kind": "limit_rate", "abscissa": LIMIT},
        {"kind": "limit_rate", "side": "at_most", "abscissa": LIMIT, "margin": 0.0},
        {**event, "side": "equal", "predict": None},
        {**event, "side": "at_most"},
        {**event, "side": "at_most", "predict": None, "margin": 0.0},
        {"kind": "ordering", "trivial": len},
    ):
        refusal(DeclarationError, make, **changes)


@pytest.mark.parametrize(
    ("kind", "observed", "predicted", "message"),
    [
        ("probability", events(3) * 0.5, 0.1, "must return True or False"),
        ("probability", -events(3), 0.1, "must return True or False"),
        ("probability", np.full(COUNT, np.nan), 0.1, "not finite"),
        ("probability", events(3), np.nan, "not finite"),
        ("rate", power_law(1.0)[:, :3], 1.0, "4 grid points for 3 components"),
        ("rate", power_law(1.0) * [1, -1, 1, 1], 1.0, "needs positive means, not -"),
        ("rate", power_law(1.0) * [1, 1, 0, 1], 1.0, "needs positive means, not 0"),
        ("rate", power_law(1.0), np.nan, "not finite in"),
        ("rate", power_law(1.0), np.ones(4), "predict returned shape (4,)"),
    ],
)
def test_values_that_have_no_verdict_are_an_error(kind, observed, predicted, message):
    """Catches a verdict from frequencies that are none, slopes of logarithms that do not exist, or exponents of NaN."""
    verdict = judged(kind, observe=lambda runs: observed, predict=lambda runs: predicted)
    assert verdict.status is Status.ERROR
    assert message in verdict.reason
    assert np.isnan(verdict.observed)


def test_a_probability_of_what_cannot_happen_is_vacuous():
    """Catches support for a bound that no outcome could contradict; one component that could fail is enough for it."""
    for trivial, status in (([0.0, 0.0], Status.VACUOUS), ([0.0, 1.0], Status.SUPPORTED)):
        verdict = probability(0, 0, claimed=0.3, trivial=lambda runs, trivial=trivial: trivial)
        assert verdict.status is status, sentence(verdict)
    assert "no outcome could contradict" in sentence(probability(0, claimed=0.3, trivial=lambda runs: 0.0))


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    ("law", "side", "claimed", "status"),
    [
        (lambda x: 7 * x, "at_least", 1.0, Status.SUPPORTED),
        (lambda x: 7 * x, "at_most", 0.9, Status.REFUTED),
        (lambda x: -x * np.log(x / 1e9), "at_least", 0.9, Status.SUPPORTED),
        (lambda x: x**2 + 1e-3 * x, "at_least", 1.5, Status.INCONCLUSIVE),  # 1.7 at the end, 1 in the limit
        (lambda x: x + 100 * x**2, "equal", 1.0, Status.INCONCLUSIVE),
        (lambda x: x + 100 * (x / 1e3) ** 2, "equal", 1.0, Status.SUPPORTED),  # the same, nearer to the limit
    ],
)
def test_a_slope_that_still_bends_decides_nothing(law, side, claimed, status, is_large):
    """Catches limits read off a grid on which they do not show yet, and the wrong end of it."""
    flipped = {"at_most": "at_least", "at_least": "at_most"}.get(side, side) if is_large else side
    sign = -1 if is_large else 1
    verdict = judged(
        "limit_rate",
        side=flipped,
        margin=0.05,
        abscissa=LIMIT**sign,
        observe=lambda runs: np.tile(law(LIMIT), (COUNT, 1)),
        predict=lambda runs: sign * claimed,
        is_computed=True,
    )
    assert verdict.status is status, sentence(verdict)
    assert verdict.at == f"slope at the {'large' if is_large else 'small'} end"
    slope = np.log10(law(0.01) / law(0.001))
    assert verdict.observed == pytest.approx(sign * slope)
    assert verdict.predicted == pytest.approx(sign * claimed)
    assert ("a grid nearer to the limit" in sentence(verdict)) == (status is Status.INCONCLUSIVE)


def test_the_last_decades_of_a_grid_do_not_depend_on_how_dense_it_is():
    """Catches a bending that is called small since the points are close together."""
    for count in (4, 7, 40):
        grid = np.geomspace(1, 1000, count)
        assert grid[intervals.last_decades(grid, 1)].tolist() == pytest.approx(grid[grid > 99].tolist())
        assert grid[intervals.last_decades(grid, 2)].tolist() == pytest.approx(grid[grid > 9.9].tolist())
    sparse = np.array([1.0, 1e-3, 1e-6, 1e-9])
    assert intervals.last_decades(sparse, 1).tolist() == [2, 3]
    assert intervals.last_decades(sparse, 2).tolist() == [1, 2, 3]


@SIDES
@pytest.mark.parametrize(
    ("failures", "status"),
    [
        ((0, 400, 10, 100), Status.SUPPORTED),
        ((0, 0, 0, 0), Status.SUPPORTED),  # small all along
        ((0, 0, 100, 0), Status.INCONCLUSIVE),  # neither
        ((60, 0, 30, 0), Status.INCONCLUSIVE),  # rises, below the margin at every point
        ((390, 400, 390, 390), Status.REFUTED),
        ((300, 400, 360, 395), Status.INCONCLUSIVE),  # is large and falls
        ((300, 0, 0, 100), Status.REFUTED),  # rises
    ],
)
def test_a_probability_in_a_limit_falls_or_stays_away_from_it(side, failures, status):
    """Catches a limit called reached that is only near, and one called missed that is only far."""
    failed = events(*failures)
    verdict = judged(
        "limit_probability",
        side=side,
        margin=0.3,
        observe=lambda runs: failed if side == "at_most" else 1 - failed,
        predict=None,
    )
    assert verdict.status is status, sentence(verdict)
    assert (verdict.at, verdict.predicted) == ("x = 0.001", float(side == "at_least"))
    verb = "happens" if side == "at_most" else "fails to happen"
    assert f"at x = 0.001 it {verb} in {failures[0]} of 400 replicates" in sentence(verdict).replace("At", "at")
    assert "%, up to 30 % counts as small). At x = 0.1 it does so in" in sentence(verdict)
    assert "exact" in verdict.interval_kind


@SIDES
def test_a_probability_in_a_limit_is_wrongly_judged_no_more_often_than_stated(side):
    """Exact, for independent counts at the ends of the last two decades: catches a rule that spends more than half of
    the error on a way of being wrong, and a smallest discrepancy that is missed or not the smallest.
    """
    count, error, margin = 40, 0.3, 0.4
    decided, seen = np.empty((count + 1, count + 1), object), []
    for first in range(count + 1):
        for last in range(count + 1):
            happened = events(last, first, last, first, count=count)
            result = judgement.judge_limit_probability(
                happened if side == "at_most" else 1 - happened, LIMIT, margin, error, at_most=side == "at_most"
            )
            decided[first, last] = result.status
            seen.append(result.smallest_discrepancy)

    def share(status, first, last):
        weights = [stats.binom.pmf(np.arange(count + 1), count, true) for true in (first, last)]
        return weights[0] @ (decided == status) @ weights[1]

    assert set(decided.ravel()) == {Status.SUPPORTED, Status.INCONCLUSIVE, Status.REFUTED}
    for start in (margin, 0.7, 1.0):
        assert share(Status.SUPPORTED, start, margin + 1e-9) <= error / 2
        assert share(Status.REFUTED, start, margin) <= error / 2
        assert share(Status.REFUTED, start, start * 100**-judgement.SLOWEST_FALL) <= error / 2
    assert share(Status.SUPPORTED, 1.0, 0.1) > 0.9
    assert len(set(seen)) == 1
    assert share(Status.REFUTED, seen[0] + 1e-5, seen[0] + 1e-5) >= judgement.POWER
    assert share(Status.REFUTED, seen[0] - 1e-5, seen[0] - 1e-5) < judgement.POWER


def test_limits_say_what_was_seen_and_claimed():
    """Catches numbers without their interval, with more digits than these have, or of another place."""
    values = 3 * LIMIT**1.5 * (1 + 0.2 * NOISE)
    slope = judged("limit_rate", observe=lambda runs: values, predict=lambda runs: 1.0, margin=0.2, side="at_least")
    low, high = (end + 1 for end in slope.interval)
    assert (
        f"at the small end the exponent is {slope.observed:.3f} (interval {low:.3f} to {high:.3f})"
        in sentence(slope).lower()
    )
    assert "The claim is at least 1 (margin 0.2). It changes by " in sentence(slope)
    wide = judged("limit_rate", observe=lambda runs: values, predict=lambda runs: 1.5, margin=0.01, side="equal")
    assert sentence(wide).startswith("400 runs do not decide it: at the small end the exponent is 1.")
    assert claimed_words(slope) == "limit slope ≥ 1 (−0.2)"
    for verdict in (slope, wide):
        assert verdict.reason == ""
        assert sentence(verdict)[0] in "A4"
        assert panel_of(verdict).get_xscale() == "log"


@pytest.mark.parametrize(
    ("kind", "side", "words"),
    [
        ("equality", None, "= 2 ± 0.1"),
        ("identity", None, "= 0 ± 0.1"),
        ("upper_bound", None, "≤ 2 (+0.1)"),
        ("lower_bound", None, "≥ 2 (−0.1)"),
        ("ordering", None, "< 2 (+0.1)"),
        ("rate", "at_most", "slope ≤ 2 (+0.1)"),
        ("rate", "equal", "slope = 2 ± 0.1"),
        ("limit_rate", "at_least", "limit slope ≥ 2 (−0.1)"),
    ],
)
def test_a_relation_is_shown_with_its_margin(kind, side, words):
    """Guards rows that say what decides: SUPPORTED beside "slope ≤ 1" and 1.05 is a riddle without the margin."""
    about = {"predicted": 2.0, "margin": 0.1, "side": side}
    verdict = Verdict("a.b", "a", "", "", kind, "loud", Status.SUPPORTED, "", 64, "", **about)
    assert claimed_words(verdict) == words
    assert claimed_words(dataclasses.replace(verdict, margin=0.0)) == re.sub(r" ± 0\.1| \(.0\.1\)", "", words)


@SIDES
def test_the_worst_of_several_events_decides(side):
    """Catches a verdict with the numbers of another event than the one that refutes, or another's power."""
    successes, claimed, margin = (20, 35, 10), np.array([0.5, 0.5, 0.2]), 0.02
    happened = events(*successes, count=50) if side == "at_most" else 1 - events(*successes, count=50)
    claims = claimed if side == "at_most" else 1 - claimed
    result = judgement.judge_probability(happened, claims, margin, 0.05, at_most=side == "at_most")
    assert result.worst == 1
    interval = stats.binomtest(int(happened[:, 1].sum()), 50).proportion_ci(1 - 0.05 / 3, method="exact")
    ends = [result.low[1], result.high[1]]
    np.testing.assert_allclose(ends, np.array([interval.low, interval.high]) - claims[1], rtol=1e-6)
    _, alone = statuses(50, claims[1], margin, 0.05 / 3, side)
    assert result.smallest_discrepancy == pytest.approx(alone.smallest_discrepancy)


def test_a_rate_is_drawn_over_its_abscissa():
    panel = panel_of(rate(1.5, 1.25))
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    np.testing.assert_allclose(panel.lines[0].get_xdata(), GRID)
