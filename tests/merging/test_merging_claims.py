"""Claims whose runs take minutes, on numbers made up here, and pictures of the tree."""

import functools

import numpy as np
import pytest
import xarray as xr
from judging import judge
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from samples import check_written_down

from moe_theory.core.system import recorded_rounds
from moe_theory.merging import corrected, policies, reading
from moe_theory.merging.costs import ChoiceCosts, MethodCosts, StepCosts
from moe_theory.merging.evaluation import POLICIES, SlotAccuracy
from moe_theory.merging.experiments import (
    CLOCKS_TIER,
    LAST_SLOTS,
    ROUTED,
    STEP_TIMES,
    STEPPED,
    SURFACES_TIER,
    TESTBED_TIER,
    TESTBEDS,
    TIMED,
    Record,
    final_accuracy,
)
from moe_theory.merging.figures import FIGURES, leaves, scaling, simplex, tradeoff
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.serving.methods import MERGED
from moe_theory.report.plots import to_csv
from moe_theory.runs import Run
from moe_theory.verification import Status, registry

REPLICATES = 64
OUT_OF_REACH = {"merging.lemma-3.distance"}  # what they suppose of the width


def surface_records(name, cell, rng, rounds):
    """Regret that grows like the square root, by another constant for each policy."""
    level = {policies.TANBR: 1.0, policies.NUCB: 2.0}.get(cell, 3.0)
    steps = 0.1 * level * np.sqrt(rounds)[:, None] * rng.normal(1, 0.05, (1, REPLICATES))
    blank = np.zeros_like(steps)
    values = blank + rounds[:, None] * (1 - level / 10) + rng.normal(0, 0.01, (1, REPLICATES))
    lost = np.diff(steps, axis=0, prepend=0) if len(rounds) == rounds[-1] else blank + 0.01  # of every slot, or of one
    made = dict.fromkeys(Record._fields, blank) | {"cumulative_regret": steps, "total_value": values}
    return Record(**made | {"num_leaves": blank + level, "log_determinant": blank + 30.0, "regret": lost})


def slot_records(name, cell, rng, rounds):
    level = 0.6 if cell == policies.TANBR else 0.4
    return SlotAccuracy(
        rng.normal(level, 0.02, (len(rounds), REPLICATES)), np.full((len(rounds), 8, REPLICATES), 1 / 8)
    )


def clock_records(name, cell, rng, rounds):
    if cell in ROUTED:
        number, _ = ROUTED[cell]
        return ChoiceCosts(number * 1e-6 * rng.uniform(0.9, 1.1, (1, REPLICATES)))
    made, methods = (StepCosts, STEPPED) if name == STEP_TIMES.name else (MethodCosts, TIMED)
    levels = {MERGED: 1.0} | dict.fromkeys(methods, 2.5)
    drawn = lambda field: rng.uniform(0.9, 1.1, (1, 1 if field.endswith("bytes") else REPLICATES))  # noqa: E731
    return {
        method: made(*(np.broadcast_to(level * drawn(field), (1, REPLICATES)) for field in made._fields))
        for method, level in levels.items()
    }


MADE_UP = {SURFACES_TIER: surface_records, TESTBED_TIER: slot_records, CLOCKS_TIER: clock_records}


@functools.cache
def judged(tier, *ids):
    """Verdicts of a tier's claims, or of these."""
    under, verdicts = reading("random-split"), {}
    for claim in registry.select_claims(ids or [f"merging:{tier}"]):
        experiment = claim.experiment
        rounds = recorded_rounds(experiment.num_rounds, experiment.record_every)
        runs = {}
        for number, (cell, overrides) in enumerate(experiment.cells.items()):
            records = MADE_UP[tier](experiment.name, cell, np.random.default_rng(number), rounds)
            runs[cell] = Run(under.params(**overrides), rounds, np.arange(REPLICATES), None, records)
        verdicts[claim.id] = judge(claim, under.name, runs, 0, 1e-3)
    return verdicts


@pytest.mark.usefixtures("much_room")
@pytest.mark.parametrize(
    "tier", [CLOCKS_TIER, *(pytest.param(tier, marks=pytest.mark.thorough) for tier in (SURFACES_TIER, TESTBED_TIER))]
)
def test_every_claim_is_judged_and_written_down(tier):
    applicable = [id for id in judged(tier) if id not in OUT_OF_REACH]
    claims = [claim for claim in registry.select_claims([f"merging:{tier}"]) if claim.id in applicable]
    check_written_down([judged(tier)[id] for id in applicable], claims)


def test_what_supposes_a_width_out_of_reach_does_not_apply():
    assert {verdict.status for verdict in judged(SURFACES_TIER, *OUT_OF_REACH).values()} == {Status.INAPPLICABLE}


def test_orders_are_the_right_way_round():
    """Tanbr has the least regret and the best accuracy here, and one merged expert takes 1/2.5 of the time."""
    expected = {}
    expected[SURFACES_TIER] = {
        "merging.figure-4.peaked": Status.SUPPORTED,
        "merging.figure-4.beside-flat": Status.SUPPORTED,
        "merging.abstract.sublinear": Status.SUPPORTED,
        "merging.abstract.sublinear-root": Status.SUPPORTED,
        "merging.remark.own-picks": Status.REFUTED,  # made up to stay at the root
        "merging.lemma-3.distance-at-64": Status.SUPPORTED,
        "merging.theorem-1.regret": Status.VACUOUS,
        "merging.figure-7.conservative": Status.REFUTED,  # made up to be alike
    }
    expected[TESTBED_TIER] = {
        "merging.table-2.fixed": Status.SUPPORTED,
        "merging.figure-4.testbed": Status.SUPPORTED,
        "merging.figure-5.gain": Status.SUPPORTED,
    }
    expected[CLOCKS_TIER] = {
        "merging.figure-3.faster": Status.SUPPORTED,
        "merging.abstract.latency-token-top-1-capacity": Status.SUPPORTED,
        "merging.figure-3.latency-token-top-1-capacity": Status.REFUTED,
        "merging.figure-6.routing-time": Status.SUPPORTED,
        "merging.figure-6.routing-grows": Status.SUPPORTED,
        "merging.abstract.memory-loaded": Status.SUPPORTED,
        "merging.abstract.memory-loaded-at-most": Status.REFUTED,
    }
    for tier, statuses in expected.items():
        assert {id: verdict.status for id, verdict in judged(tier, *statuses).items()} == statuses


def test_accuracy_is_that_of_the_last_slots():
    """Would catch a claim that averages over the slots in which a learner has not learned."""
    rounds = recorded_rounds(TESTBEDS["fixed"].num_rounds, 1)
    accuracy = np.where(rounds[:, None] > rounds[-1] - LAST_SLOTS, 1.0, 0.0) * np.ones(3)
    run = Run(None, rounds, np.arange(3), None, SlotAccuracy(accuracy, np.zeros((len(rounds), 8, 3))))
    np.testing.assert_array_equal(final_accuracy(run), [1, 1, 1])


NUM_ROUNDS = 300


class Reading:
    name = "paper"
    summary = "as the paper has it"

    def params(self, **overrides):
        return Params(**overrides)


class Computed(dict):
    """Data of figures by name, each computed when a test first asks for it."""

    def __missing__(self, name):
        self[name] = FIGURES[name].compute(FIGURES[name].setup(Reading(), 1, 2, rounds=NUM_ROUNDS))
        return self[name]


@pytest.fixture(scope="module")
def data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves, "DIMS", Dims(max_experts=3, max_leaves=128))
        patch.setattr(simplex, "DIMS", Dims(max_experts=3, max_leaves=128))
        yield Computed()


def test_leaves_fill_the_simplex_at_every_time(data):
    here = data["simplex"]
    assert list(here.time) == [30, NUM_ROUNDS, NUM_ROUNDS]
    assert not here.left_out.any()
    for place in range(3):
        panel = here.isel(panel=place)
        held = panel.depth.notnull().values
        shapes = [simplex.polygon(*box) for box in zip(panel.lower.values[held], panel.upper.values[held], strict=True)]
        assert sum(simplex.area(shape) for shape in shapes if len(shape) > 2) == pytest.approx(1, abs=1e-6)


@pytest.mark.thorough
def test_the_deepest_leaf_reaches_the_bound_and_nothing_exceeds_it(data):
    here = data["leaves"]
    assert not here.left_out.any()
    np.testing.assert_array_equal(here.depth.sel(rule="deepest"), here.repaired_depth)
    assert bool((here.leaves <= here.repaired_leaves).all())
    assert bool((here.leaves.sel(case="large", rule="deepest") > here.printed_leaves.sel(case="large")).any())
    params = leaves.params_of(Reading(), leaves.CASES["usual"])
    assert float(here.repaired_leaves.sel(case="usual", time=NUM_ROUNDS)) == corrected.leaf_bound(NUM_ROUNDS, params)


def test_all_leaves_are_drawn(data):
    figure = Figure(layout="constrained")
    FIGURES["simplex"].draw(data["simplex"], figure)
    drawn = [panel.collections[0] for panel in figure.axes[:3]]
    assert all(isinstance(part, PolyCollection) for part in drawn)
    assert len(drawn[0].get_paths()) > 10
    assert "Reading paper" in FIGURES["simplex"].caption(data["simplex"])


def test_labels_keep_their_distance_and_their_order():
    """Would catch labels on top of each other, off the axis, or moved though there is room."""
    np.testing.assert_allclose(tradeoff.spread([0.2, 0.5, 0.8], 0.1, 0, 1), [0.2, 0.5, 0.8])
    crowded = tradeoff.spread([0.5, 0.5, 0.51, 0.9], 0.1, 0, 1)
    assert np.all(np.diff(crowded) >= 0.1 - 1e-9)
    np.testing.assert_allclose(np.mean(crowded[:3]), np.mean([0.5, 0.5, 0.51]))  # moved as little as can be
    top = tradeoff.spread([0.95, 0.97, 0.99], 0.1, 0, 1)
    np.testing.assert_allclose(top, [0.8, 0.9, 1.0])


def table():
    names = ["average", "token-top-1-capacity", "token-top-1-dense", "task-top-1-dense", "smear-token-linear"]
    names += [next(iter(POLICIES)), "best-merge"]
    sizes = ("model", "mix", "approach")
    accuracy = np.linspace(0.3, 0.9, len(names))[None, None].repeat(2, axis=1)
    ratio = np.array([[0.9, 1.3, 12.0, 11.0, 5.0, 1.0, 1.0]])
    return xr.Dataset(
        {
            "accuracy": (sizes, accuracy),
            "accuracy_error": (sizes, np.full(accuracy.shape, 0.01)),
            "ratio": (("model", "approach"), ratio),
            "serving": (("model", "approach"), ratio / 1000),
            "merging": (("model", "approach"), ratio / 10_000),
            "loaded_bytes": (("model", "approach"), np.where(ratio > 1, 880_000, 180_000)),
        },
        {"model": ["digits"], "mix": ["fixed", "drifting"], "approach": names},
        {
            "slot_size": 128,
            "num_slots": 100,
            "device": "cpu",
            "reading": "any",
            "reading_summary": "",
            "replicates": 2,
            "seed": 0,
            "num_rounds": 100,
            "command": "",
        },
    )


def test_the_tradeoff_shows_every_approach():
    """Would catch points that are left out or drawn elsewhere, and builds that are not joined."""
    data = table()
    figure = Figure()
    tradeoff.picture.draw(data, figure)
    assert len(figure.axes) == 2
    words = {text.get_text().strip() for text in figure.axes[0].texts}
    assert {"average", next(iter(POLICIES)), "token-top-1", "task-top-1", "smear-token"} <= words
    lines = [line.get_xydata() for line in figure.axes[0].lines]
    for name in data.approach.values[:-1]:
        here = data.isel(model=0).sel(mix="fixed", approach=name)
        assert any(np.allclose(line, [[here.ratio, here.accuracy]]) for line in lines if len(line) == 1), name
    joined = data.isel(model=0).sel(mix="fixed", approach=["token-top-1-capacity", "token-top-1-dense"])
    pairs = np.stack([joined.ratio, joined.accuracy], axis=1)
    assert any(np.allclose(line, pairs) for line in lines if line.shape == pairs.shape)
    assert "0.90 ms" not in tradeoff.picture.caption(data)
    assert "1.00 ms" in tradeoff.picture.caption(data)
    assert len(to_csv(data).splitlines()) == 1 + 2 * 7


def test_the_scaling_shows_medians_and_the_claim():
    """Would catch quantiles in another order, and a bound in seconds on an axis of milliseconds."""
    slots = np.array([[10.0, 20, 30], [15, 25, 40]])
    data = xr.Dataset(
        {"slots": (("experts", "quantile"), slots), "milliseconds": (("experts", "quantile"), slots / 100)},
        {"experts": [4, 8], "quantile": list(scaling.BAND)},
        table().attrs,
    )
    figure = Figure()
    scaling.picture.draw(data, figure)
    left, right = figure.axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), [20, 25])
    np.testing.assert_allclose(right.lines[0].get_ydata(), [0.2, 0.25])
    assert right.lines[1].get_ydata()[0] == pytest.approx(0.4)
    assert "count as" not in scaling.picture.caption(data)
