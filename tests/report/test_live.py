"""The live page's experiments in a real browser: their formulas, simulations and leaves against the package's."""

import dataclasses
import itertools
import math
import runpy
from functools import cache
from pathlib import Path

import content
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import readme
from test_browser import CONTRAST, CONTRASTS, PHONE, overflow, sync_api

from examples import solvable
from moe_theory import continual, reinforced
from moe_theory.continual import corrected as continual_corrected
from moe_theory.continual import theory as continual_theory
from moe_theory.generalization import complexity
from moe_theory.generalization import corrected as generalization_corrected
from moe_theory.generalization import theory as generalization_theory
from moe_theory.merging import corrected as merging_corrected
from moe_theory.merging import tree
from moe_theory.merging.figures.simplex import area, polygon
from moe_theory.merging.params import Params
from moe_theory.reinforced import experiments
from moe_theory.report import overview
from moe_theory.runs import run_cells

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pages" / "live.md"
STYLE = PAGE.parent / "style"
REGIMES = ROOT / "figures" / "continual" / "regimes.csv"
WITNESS = ROOT / "moe_theory" / "continual" / "statements" / "counterexamples" / "lemma_11.py"
DELTA, FEATURES, EXPERTS, SEED = 0.05, 10, 3, 7
REPLICATES = {
    "regimes": 1,
    "theorem-1": 20,
    "equation-17": 200,
    "lemma-11": 400,
    "gates": 400,
    "settling": 60,
    "tree": 1000,
}
ON_PAGE = 10  # replicates of each experiment where the page itself runs: what it shows is asked, not how precisely
DEPTH = 4  # of a tree whose leaves' widths are enumerated
SETTINGS = {
    "regimes": [
        {"experts": experts, "drive": drive, "ratio": ratio, "gates": gates}
        for experts, drive, ratio, gates in (
            (2, 0.03, 1, "without"),
            (12, 3, 10, "with"),
            (20, 1.392, 0.3, "without"),
        )
    ],
    "theorem-1": [
        {"samples": samples, "ratio": ratio, "granted": granted}
        for samples, ratio, granted in ((10, 0.001, 1), (500, 10, 1), (500, 10, 0), (2000, 0.01, 1), (100_000, 1, 0))
    ],
    "equation-17": [
        {"tasks": tasks, "cosine": cosine, "columns": columns, "round": round}
        for tasks, cosine, columns, round in ((2, 0, 6, 60), (1, 0.3, 2, 10), (8, 0, 9, 2), (5, 0.7, 1, 33))
    ],
    "lemma-11": [{"sets": sets, "experts": experts} for sets, experts in ((2, 2), (3, 6), (6, 29), (8, 40))],
    "gates": [
        {"tasks": tasks, "experts": experts, "round": round}
        for tasks, experts, round in ((2, 3, 200), (3, 10, 100), (5, 2, 50))
    ],
    "settling": [{"experts": experts} for experts in (3, 6)],
    "tree": [
        {"depth": depth, "split": split, "ratio": ratio, "smoothness": smoothness}
        for depth, split, ratio, smoothness in ((0, "random", 0.9, 1), (DEPTH, "random", 0.7, 1), (8, "cyclic", 0.5, 2))
    ],
}
# What the page computes for all settings, without what is only drawn.
COMPUTED = """([settings, seed, counts]) => {
  const strip = ({ gaps, curve, points, widths, ...rest }) => rest;
  const computed = (name) => (each) => {
    const { printed, holds, simulate } = live.experiments[name];
    return { printed: printed(each), holds: holds(each), found: simulate(seed, each, counts[name]).map(strip) };
  };
  return Object.fromEntries(Object.entries(settings).map(([name, all]) => [name, all.map(computed(name))]));
}"""


def cells(samples, ratio, **_):
    return max(1, round(ratio * samples))


@cache
def pool(tasks, cosine):
    """Unit truths of the same cosine with each other."""
    truths = np.zeros((tasks, FEATURES))
    truths[:, 0] = math.sqrt(cosine)
    truths[np.arange(tasks), 1 + np.arange(tasks)] = math.sqrt(1 - cosine)
    return continual.Pool(truths=truths, signals=truths, clusters=np.arange(tasks))


def of_theorem_1(samples, ratio, granted):
    experts, rademacher = cells(samples, ratio), complexity.constants(samples)
    richness = generalization_corrected.cells_complexity(experts, samples)
    bound = generalization_theory.theorem_1(experts, 1, samples, rademacher, granted, lipschitz=0.5, delta=DELTA)
    right = generalization_corrected.uniform(richness, 0.0, samples, lipschitz=0.5, delta=DELTA)
    return {"bound": bound}, {"bound": right, "gap": richness / 2}


def of_equation_17(tasks, cosine, columns, round):
    truths, ratio = pool(tasks, cosine), continual_theory.overparameterization_ratio(FEATURES, columns)
    printed = continual_theory.proposition_4(continual_theory.gaps(truths), ratio, np.float64(round))
    exact = continual_corrected.single_expert_gaussian(truths, columns, round)
    return {"forgetting": printed.forgetting}, {"forgetting": exact.forgetting[-1]}


def of_lemma_11(sets, experts):
    enough = math.ceil(sets * math.log(sets / DELTA))
    printed = {"product": continual_theory.lemma_11(sets, experts), "enough": enough}
    right = continual_corrected.coverage_probability(sets, experts)
    return printed, {"union": continual_corrected.lemma_11(sets, experts), "exact": right}


def of_gates(tasks, experts, round):
    """In units of eta sigma_0 / M, of sigma_0 = 1e-4 and eta its root, as the page has them."""
    scale, rate = 1e-4, 1e-2
    bound = solvable.gate_remainder(solvable.simplex(tasks, scale, FEATURES), experts, rate, round)
    return {"own": 1}, {"remainder": bound * experts / (rate * scale), "move": 1}


def of_settling(experts):
    return {"enough": 3 * math.log(3)}, {"needed": 3}


@cache
def rounds_until_settled(experts):
    """The mean over many runs of the package, each until after it has settled."""
    name = {3: experiments.AS_MANY, 6: experiments.TWICE}[experts]
    cells = experiments.ONCE_SETTLED.cells_under(reinforced.reading("as-stated"))
    (cell,) = [each for each in cells if each.name == name]
    run = run_cells([dataclasses.replace(cell, num_rounds=2000)], 128)[name]
    assert (run.state.settled > 0).all()
    return float(run.state.settled.mean())


def of_tree(depth, ratio, smoothness, split):
    params = Params(num_experts=EXPERTS, max_active=EXPERTS, smoothness=smoothness, smoothness_ratio=ratio)
    diameter = float(tree.leaf_terms(jnp.array([depth]), params)[0])
    right = {
        "diameter": merging_corrected.cyclic_diameter(EXPERTS, depth).side,
        "leaves": merging_corrected.cyclic_leaves(EXPERTS, depth),
        "smoothness": merging_corrected.least_smoothness(EXPERTS, ratio).side,
        "ratio": merging_corrected.least_ratio(EXPERTS),
        "ratioOnSimplex": merging_corrected.least_ratio(EXPERTS, on_simplex=True),
    }
    return {"diameter": diameter, "leaves": 2**depth}, right


def regime(**settings):
    table = pd.read_csv(REGIMES)
    (row,) = table[np.logical_and.reduce([table[name] == value for name, value in settings.items()])].itertuples()
    return row


def of_regimes(**settings):
    """As the figure's CSV has it, to four decimals; none where no drive leaves a leader ahead by lambda."""
    critical = regime(**settings).critical
    return {"own": 1}, {"critical": None if np.isnan(critical) else round(critical, 4)}


PACKAGE = {
    "regimes": of_regimes,
    "theorem-1": of_theorem_1,
    "equation-17": of_equation_17,
    "lemma-11": of_lemma_11,
    "gates": of_gates,
    "settling": of_settling,
    "tree": of_tree,
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page's experiments and what they are to be told of, in a page of their own."""
    path = tmp_path_factory.mktemp("live") / "live.html"
    mounts = "\n".join(line for line in PAGE.read_text(encoding="utf-8").splitlines() if "data-live" in line)
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Live</title><style>{(STYLE / 'live.css').read_text(encoding='utf-8')}</style>"
        "<style>body { margin: 8px; color-scheme: light dark; background: light-dark(#fff, #16171a) }</style>"
        + content.render("regimes").replace("```{raw} html\n", "").replace("```", "")
        + f'<script src="{(STYLE / "live.js").as_uri()}"></script>'
        + "<script>for (const each of Object.values(live.experiments))"
        + f" each.replicates = Math.min(each.replicates, {ON_PAGE})</script>"
        + mounts.replace("\n", "</div>\n")
        + "</div></html>",
        encoding="utf-8",
    )
    return path.as_uri()


@pytest.fixture
def allowed():
    return ((STYLE / "live.js").as_uri(),)


@pytest.fixture(scope="module")
def computed(browser, address):
    page = browser.new_page()
    page.goto(address)
    found = page.evaluate(COMPUTED, [SETTINGS, SEED, REPLICATES])
    page.close()
    return found


CASES = [(name, place) for name, settings in SETTINGS.items() for place in range(len(settings))]


@pytest.mark.parametrize(("name", "place"), CASES)
def test_formulas_are_the_packages(computed, name, place):
    printed, holds = PACKAGE[name](**SETTINGS[name][place])
    assert computed[name][place]["printed"] == pytest.approx(printed, rel=1e-6, abs=1e-12)
    assert computed[name][place]["holds"] == pytest.approx(holds, rel=1e-6, abs=1e-12)


def mean_width(depth):
    """Of the leaf around weights that are uniform on the simplex, exactly, where sides are drawn at random."""
    boxes = [(np.zeros(EXPERTS), np.ones(EXPERTS))]
    for _ in range(depth):
        boxes = [half for box in boxes for dimension in range(EXPERTS) for half in halved(*box, dimension)]
    parts = [(*tree.tightened(*box), area(polygon(*box))) for box in boxes]
    return sum(share * np.max(high - low) for low, high, share in parts) / EXPERTS**depth


def halved(lower, upper, dimension):
    middle, cut = (lower + upper) / 2, np.arange(EXPERTS) == dimension
    halves = (lower, np.where(cut, middle, upper)), (np.where(cut, middle, lower), upper)
    return [half for half in halves if tree.is_feasible(*half)]


EXPECTED = {
    "theorem-1": ("gap", lambda settings: of_theorem_1(**settings)[1]["gap"]),
    "equation-17": ("forgetting", lambda settings: of_equation_17(**settings)[1]["forgetting"]),
    "lemma-11": ("covered", lambda settings: of_lemma_11(**settings)[1]["exact"]),
    "gates": ("move", lambda settings: 1.0),
    "settling": ("settled", lambda settings: rounds_until_settled(**settings)),
    "tree": ("width", lambda settings: mean_width(settings["depth"])),
}


@pytest.mark.parametrize("place", range(len(SETTINGS["regimes"])))
def test_what_is_looked_up_is_the_figures(computed, place):
    row = regime(**SETTINGS["regimes"][place])
    (found,) = computed["regimes"][place]["found"]
    keys = {"own": "own", "error": "error", "ownError": "own_error", "errorError": "error_error"}
    assert found == {key: getattr(row, column) for key, column in keys.items()}


SIMULATED = [(name, place) for name, place in CASES if name != "regimes" and (name, place) != ("tree", 2)]


@pytest.mark.parametrize(("name", "place"), SIMULATED)
def test_simulations_are_near_the_packages_exact_values(computed, name, place):
    key, expected = EXPECTED[name]
    found = np.array([each[key] for each in computed[name][place]["found"]])
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected(SETTINGS[name][place])) <= 5 * error + 1e-3 * (error == 0)


@pytest.mark.parametrize("place", range(len(SETTINGS["gates"])))
def test_gates_are_minus_the_models(computed, place):
    """As the page says: up to the remainder, and after some rounds nobody prefers what they learned last of two."""
    here = computed["gates"][place]
    assert 0 < max(run["left"] for run in here["found"]) <= here["holds"]["remainder"]
    if SETTINGS["gates"][place]["tasks"] == 2:
        assert np.mean([run["own"] for run in here["found"]]) < 0.5


@pytest.mark.parametrize("place", range(len(SETTINGS["settling"])))
def test_every_task_gets_an_expert_of_its_own_against_a_baseline_alone(computed, place):
    found = computed["settling"][place]["found"]
    assert all(run["own"] == 1 and run["settled"] and not run["printed"] for run in found)
    assert np.mean([run["ownPrinted"] for run in found]) < 0.4


def test_algorithm_1_is_the_witnesses(computed):
    """Tasks without an expert, in the page's runs and in those of the script that goes to the authors."""
    witness = runpy.run_path(str(WITNESS))
    settings = {"sets": witness["TASKS"], "experts": witness["ENOUGH"]}
    runs = computed["lemma-11"][SETTINGS["lemma-11"].index(settings)]["found"]
    here = np.sum([np.array(run["explored"]) == 0 for run in runs if run["explored"]], axis=1)
    generator = np.random.default_rng(SEED)
    there = np.array([np.sum(witness["explored_sets"](generator, settings["experts"]) == 0) for _ in range(12)])
    error = math.sqrt(np.var(here) / len(here) + np.var(there) / len(there))
    assert abs(np.mean(here) - np.mean(there)) <= 5 * error
    assert np.mean(here) > 1  # as the page says, tasks are left without one
    assert all(sum(run["sizes"]) == settings["experts"] for run in runs)


@pytest.mark.parametrize("place", range(len(SETTINGS["tree"])))
def test_leaves_are_boxes_of_the_packages_tree(computed, opened, place):
    """Those that meet the simplex and no others are leaves, and together they are the simplex."""
    first, depth = computed["tree"][place]["found"][0], SETTINGS["tree"][place]["depth"]
    active, missed = (
        [(np.array(leaf["lower"]), np.array(leaf["upper"])) for leaf in first[key]] for key in ("active", "missed")
    )
    assert all(tree.is_feasible(*box) for box in active)
    assert not any(tree.is_feasible(*box) for box in missed)
    volumes = [np.prod(upper - lower) for lower, upper in itertools.chain(active, missed)]
    assert np.isclose(sum(volumes), 1)
    assert {np.prod(upper - lower) for lower, upper in active} == {0.5**depth}
    shares = [area(polygon(*box)) for box in active]
    assert np.isclose(sum(shares), 1)
    if SETTINGS["tree"][place]["split"] == "cyclic":
        assert len(active) == merging_corrected.cyclic_leaves(EXPERTS, depth)
    found = opened().evaluate(
        "leaves => leaves.map((leaf) => [live.longestPart(leaf), live.polygon(leaf).length])", first["active"]
    )
    parts = [tree.tightened(*box) for box in active]
    assert [width for width, _ in found] == pytest.approx([np.max(high - low) for low, high in parts])
    assert all(corners > 2 for (_, corners), share in zip(found, shares, strict=True) if share > 1e-9)


def numbers(page, name):
    """What the tiles of an experiment say, once it has run."""
    place = page.locator(f"[data-live={name}]")
    place.scroll_into_view_if_needed()
    sync_api.expect(place.locator(".live-says")).not_to_be_empty()
    sync_api.expect(place).not_to_have_attribute("data-running", "")
    return place.locator(".live-tile b").all_inner_texts(), place.locator(".live-says").inner_text()


def test_keys_move_sliders_and_the_address_keeps_what_was_set(opened):
    page = opened()
    before, said = numbers(page, "theorem-1")
    slider = page.get_by_role("slider", name="samples m")
    slider.focus()
    page.keyboard.press("ArrowRight")
    sync_api.expect(page.locator("[data-live=theorem-1] .live-says")).not_to_have_text(said)
    after, changed = numbers(page, "theorem-1")
    assert after[1] != before[1]
    assert slider.get_attribute("aria-valuetext") == "1,000"
    assert page.url.endswith("#theorem-1?samples=1000&ratio=10&granted=1&seed=1")
    page.get_by_role("button", name="Run again").first.click()
    assert page.url.endswith("&seed=2")
    other = opened("#theorem-1?samples=1000&ratio=10&granted=1&seed=1")
    assert numbers(other, "theorem-1") == (after, changed)
    hostile = opened("#theorem-1?samples=<b>&ratio=1e99&granted=__proto__&seed=-1")
    assert numbers(hostile, "theorem-1") == (before, said)


@pytest.mark.parametrize(("scheme", "theme"), [("light", overview.LIGHT), ("dark", readme.DARK)])
def test_has_the_overviews_colours_and_is_legible(opened, scheme, theme):
    page = opened(color_scheme=scheme, reduced_motion="reduce")
    for name in SETTINGS:
        numbers(page, name)
    colours = page.locator("[data-live=tree] .live-tile b").evaluate_all(
        "all => all.map((each) => '#' + getComputedStyle(each).color.match(/\\d+/g).slice(0, 3)"
        ".map((part) => Number(part).toString(16).padStart(2, '0')).join(''))"
    )
    assert colours == [theme.measured, theme.printed, theme.ink]
    found = page.evaluate(CONTRASTS)
    assert len(found) > 50
    assert min(found) >= [CONTRAST]


def test_fits_a_phone_and_prints_what_was_not_looked_at(opened):
    page = opened(viewport=PHONE, is_mobile=True, has_touch=True, color_scheme="dark")
    assert page.locator("[data-live=tree] svg[role=img]").count() == 0
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert overflow(page) <= 0
    assert page.locator("svg[role=img]").count() == 13
    assert page.get_by_role("button").count() == page.get_by_role("slider").count() == 0
    assert page.locator(".live").first.evaluate("each => getComputedStyle(each).colorScheme") == "light"
