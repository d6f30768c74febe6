"""The generalization figures' numbers against formulas and runs put together in another way, on shrunk classes."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from moe_theory import generalization
from moe_theory.generalization.figures import FIGURES, crossing, sparsity
from moe_theory.report.plots import to_csv

from .formulas import theorem_1

READING = generalization.reading("mask-dimension")
REPLICATES, SEED, NUM_STEPS = 3, 5, 30
SAMPLES, FEATURES, EXPERTS = 16, 3, 4
CASES = {
    "growing": crossing.Case("(a)", False, (4, 8, 16), 2, True),
    "fixed": crossing.Case("(b)", False, (4, 16), 8),
    "learned": crossing.Case("(c)", True, (8, 16), 4),
}


@pytest.fixture(scope="module", autouse=True)
def small_classes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing, "CASES", CASES)
        patch.setattr(crossing, "LEAST_PADDED", 16)
        yield


class Computed(dict):
    """Data of figures by name, each computed when a test first asks for it."""

    def __missing__(self, name):
        replicates, rounds = (64, 1) if name == "crossing" else (REPLICATES, NUM_STEPS)
        self[name] = FIGURES[name].compute(FIGURES[name].setup(READING, replicates, SEED, rounds=rounds))
        return self[name]


@pytest.fixture(scope="module")
def data():
    return Computed()


def mean_distance(num_signs):
    """E|S_n| of a sum of n fair signs, from the binomial law."""
    heads = np.arange(num_signs + 1)
    return float(stats.binom.pmf(heads, num_signs, 0.5) @ np.abs(2 * heads - num_signs))


def claimed(num_experts, num_active, num_samples, rademacher, dimension, log_masks=None):
    """Theorem 1 at C = 1/2 and delta = 0.05."""
    return theorem_1(num_experts, num_active, num_samples, rademacher, dimension, 0.5, 0.05, log_masks)


def test_crossing_measures_the_gap(data):
    """The exact mean T E|S_N| / (2m), N ~ Bin(m, 1/T), within 7 standard errors: catches cases or samples mixed up."""
    for name in ("growing", "fixed"):
        for place, samples in enumerate(CASES[name].samples):
            experts = 2 * samples if name == "growing" else 8
            here = data["crossing"].sel(case=name, place=place)
            assert (float(here.samples), float(here.experts)) == (samples, experts)
            counts = np.arange(samples + 1)
            weights = stats.binom.pmf(counts, samples, 1 / experts)
            expected = experts / (2 * samples) * float(weights @ [mean_distance(int(count)) for count in counts])
            assert abs(float(here["mean"]) - expected) < 7 * float(here.error)
    np.testing.assert_allclose(data["crossing"]["mean"].sel(case="learned")[:2], 0.5, rtol=1e-6)
    assert np.isnan(data["crossing"]["mean"].sel(case="learned")[2])


def test_crossing_draws_the_bounds_of_each_case(data):
    """Catches R_m(H) or d_N of another case, a lost factor of the corrected bound."""
    here = data["crossing"].sel(case="fixed", place=1)
    rademacher, tail = mean_distance(16) / 16, math.sqrt(math.log(2 / 0.05) / 32)
    np.testing.assert_allclose(here.printed, claimed(8, 1, 16, rademacher, 0))
    np.testing.assert_allclose(here.granted, claimed(8, 1, 16, rademacher, 1))
    np.testing.assert_allclose(here.repaired, math.sqrt(8 / 16) + tail)
    learned = data["crossing"].sel(case="learned", place=1)
    np.testing.assert_allclose(learned.printed, claimed(4, 1, 16, 1 / 2, 3 * 2))  # (T - 1) d, R_m(H) = 1/sqrt(T)
    patterns = 16 * math.log(4)  # all masks of all inputs: fewer than (T - 1) d log(e m T/(2d)) says
    np.testing.assert_allclose(learned.repaired, 1 + 2 * math.sqrt(patterns / 32) + tail)
    assert np.isnan(learned.granted)


def test_crossing_is_the_first_number_of_samples_below_the_gap():
    """Of a level gap: the bound at the crossing is below it, and at one sample less not. None where it never is."""
    case = crossing.Case("", False, (10, 1000), 5000)
    place = int(crossing.first_crossing(READING, case, "printed", np.array([0.4, 0.4])))
    before, there = (claimed(5000, 1, m, mean_distance(m) / m, 0) for m in (place - 1, place))
    assert there < 0.4 <= before
    assert np.isnan(crossing.first_crossing(READING, case, "printed", np.array([0.01, 0.01])))
    assert np.isnan(crossing.first_crossing(READING, case, "printed", np.array([3.0, 3.0])))


@pytest.mark.parametrize(("reading", "last"), [("mask-dimension", 0), ("router-dimension", 10)])
def test_sparsity_by_binomial_coefficients(reading, last):
    """d_N of 8 linear routers in 10 dimensions is 70 at k < T; (22) counts masks, as many for k as for T - k."""
    data = sparsity.picture.compute(sparsity.picture.setup(generalization.reading(reading), 1, SEED))
    here, samples = data.sel(experts=8), sparsity.NUM_SAMPLES
    for active in range(1, 9):
        at, masks = here.sel(active=active), math.log(math.comb(8, active))
        own = last if active == 8 else 70
        np.testing.assert_allclose(at.printed, claimed(8, active, samples, samples**-0.5, 70))
        np.testing.assert_allclose(at.binomial, claimed(8, active, samples, samples**-0.5, 70, masks))
        np.testing.assert_allclose(at.printed_own, claimed(8, active, samples, samples**-0.5, own))
        np.testing.assert_allclose(at.binomial_own, claimed(8, active, samples, samples**-0.5, own, masks))
    assert bool(here.printed.dropna("active").diff("active").min() > 0)
    assert int(here.binomial.argmax("active")) + 1 == 4
    assert int(here.printed.notnull().sum()) == 8
    expected = generalization.corrected.bounds(8, 3, samples, 10, router_norm=4.0, lipschitz=0.5).best
    np.testing.assert_allclose(here.repaired.sel(active=3), expected)


QUICK = ("crossing", "sparsity")
DRAWN = [
    pytest.param(name, reading, marks=[pytest.mark.thorough] * (reading != READING.name or name not in QUICK))
    for reading in (READING.name, "router-dimension")
    for name in FIGURES
]


@pytest.mark.parametrize(("name", "reading"), DRAWN)
def test_drawing_and_caption(data, name, reading, keeps_its_words):
    """Under every reading, by programs there are already; axes are named, and the caption says what was run."""
    figure, choice = FIGURES[name], generalization.reading(reading)
    rounds = data[name].attrs["num_rounds"] or 1
    shown = data[name] if choice is READING else figure.compute(figure.setup(choice, REPLICATES, SEED, rounds=rounds))
    canvas = Figure(figsize=figure.size)
    figure.draw(shown, canvas)
    canvas.draw_without_rendering()
    words = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in canvas.axes)
    assert ("samples $m$" if name == "crossing" else "active experts $k$") in words
    caption = figure.caption(shown)
    assert f"Reading {reading} (" in caption
    runs = {"sparsity": "closed forms", "crossing": f"seed {SEED}"}.get(name, f"seed {SEED}, {NUM_STEPS} steps")
    assert f"{runs}.\n" in caption
    assert f"figures generalization {name} --reading {reading} " in caption
    if choice is READING:
        keeps_its_words(figure, shown)
    assert shown.attrs["figure"] == name
    assert len(to_csv(shown).splitlines()) == 1 + math.prod(shown.sizes.values())
