"""The live page's experiments in a real browser: their formulas, simulations and leaves against the package's."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_browser import sync_api

from moe_theory import continual
from moe_theory.continual import corrected as continual_corrected
from moe_theory.continual import theory as continual_theory
from moe_theory.generalization import complexity
from moe_theory.generalization import corrected as generalization_corrected
from moe_theory.generalization import theory as generalization_theory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pages" / "live.md"
STYLE = PAGE.parent / "style"
DELTA, FEATURES, EXPERTS, SEED = 0.05, 10, 3, 7
REPLICATES = {"theorem-1": 20, "equation-17": 200, "lemma-11": 400}
ON_PAGE = 10  # replicates of each experiment where the page itself runs: what it shows is asked, not how precisely
SETTINGS = {
    "theorem-1": [
        {"samples": samples, "ratio": ratio} for samples, ratio in ((10, 0.001), (500, 10), (2000, 0.01), (100_000, 1))
    ],
    "equation-17": [
        {"tasks": tasks, "cosine": cosine, "columns": columns, "round": round}
        for tasks, cosine, columns, round in ((2, 0, 6, 60), (1, 0.3, 2, 10), (8, 0, 9, 2), (5, 0.7, 1, 33))
    ],
    "lemma-11": [{"sets": sets, "experts": experts} for sets, experts in ((2, 2), (3, 6), (6, 29), (8, 40))],
}
# What the page computes for all settings, without what is only drawn.
COMPUTED = """([settings, seed, counts]) => {
  const strip = ({ gaps, curve, ...rest }) => rest;
  const computed = (name) => (each) => {
    const { printed, holds, replicate } = live.experiments[name];
    const found = Array.from({ length: counts[name] }, (_, index) => strip(replicate(seed, index, each)));
    return { printed: printed(each), holds: holds(each), found };
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


def of_theorem_1(samples, ratio):
    experts, rademacher = cells(samples, ratio), complexity.constants(samples)
    richness = generalization_corrected.cells_complexity(experts, samples)
    bound = generalization_theory.theorem_1(experts, 1, samples, rademacher, 1, lipschitz=0.5, delta=DELTA)
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


PACKAGE = {"theorem-1": of_theorem_1, "equation-17": of_equation_17, "lemma-11": of_lemma_11}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page's experiments and what they are to be told of, in a page of their own."""
    path = tmp_path_factory.mktemp("live") / "live.html"
    mounts = "\n".join(line for line in PAGE.read_text(encoding="utf-8").splitlines() if "data-live" in line)
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Live</title><style>{(STYLE / 'live.css').read_text(encoding='utf-8')}</style>"
        "<style>body { margin: 8px; color-scheme: light dark; background: light-dark(#fff, #16171a) }</style>"
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


EXPECTED = {
    "theorem-1": ("gap", lambda settings: of_theorem_1(**settings)[1]["gap"]),
    "equation-17": ("forgetting", lambda settings: of_equation_17(**settings)[1]["forgetting"]),
    "lemma-11": ("covered", lambda settings: of_lemma_11(**settings)[1]["exact"]),
}


@pytest.mark.parametrize(("name", "place"), CASES)
def test_simulations_are_near_the_packages_exact_values(computed, name, place):
    key, expected = EXPECTED[name]
    found = np.array([each[key] for each in computed[name][place]["found"]])
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected(SETTINGS[name][place])) <= 5 * error + 1e-3 * (error == 0)


def numbers(page, name):
    """What the tiles of an experiment say, once it has run."""
    place = page.locator(f"[data-live={name}]")
    sync_api.expect(place).not_to_have_attribute("data-running", "")
    return place.locator(".live-tile b").all_inner_texts()


def test_keys_move_sliders(opened):
    page = opened()
    before = numbers(page, "theorem-1")
    slider = page.get_by_role("slider", name="samples m")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "1,000"
    after = numbers(page, "theorem-1")
    assert after[1] != before[1]
    page.get_by_role("button", name="Run again").first.click()
    assert numbers(page, "theorem-1")[1:] == after[1:]
