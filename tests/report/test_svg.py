"""Saved pictures: small, and the same to the eye as what matplotlib writes; colours that stand out, in grey too."""

import io
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from moe_theory.plot import ramp, roles, style, svg
from moe_theory.report import overview

FIGURES = Path(__file__).resolve().parents[2] / "figures"
PAGE, DARK_PAGE = "#fbfaf8", "#16171a"  # colours of the report's page
MOST_BYTES = 100_000
MARKS, WORDS = 3.0, 4.5  # contrasts that WCAG asks for
APART = 8  # of a lightness between 0 and 100
CYCLE = (roles.BLUE, roles.ORANGE, roles.LIGHT_BLUE, roles.OLIVE)


def luminance(colour):
    parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def lightness(colour):
    return 116 * luminance(colour) ** (1 / 3) - 16


def many(figure):
    """Bands, marks, ticks and words, more than any figure of ours has."""
    x = np.geomspace(1, 1000, 120)
    for place, panel in enumerate(figure.subplots(3, 4).ravel()):
        wave = np.sin(np.arange(120) * (place + 1) / 9)
        panel.fill_between(x, wave - 1, wave + 1, alpha=0.2, linewidth=0)
        panel.plot(x, wave, marker="o", markevery=9, label=r"$\sigma_0^2$ of it")
        panel.set(xscale="log", xlabel="round $t$", ylabel="error < 1 & more")
        panel.legend()


def written(draw, size=(7.2, 7.0)):
    with style.our_style():
        figure, document = Figure(figsize=size, layout="constrained"), io.StringIO()
        draw(figure)
        figure.savefig(document, format="svg", transparent=True)
    return document.getvalue()


@pytest.mark.parametrize("path", sorted(FIGURES.rglob("*.svg")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_figure_is_small_and_its_words_are_text(path):
    assert path.stat().st_size < MOST_BYTES
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert sum(at.tag.endswith("}text") for at in root.iter()) > 5
    ground = next(at for at in root if at.tag.endswith("}path") or (at.tag.endswith("}g") and len(at)))
    sheet = next(at.text for at in root.iter() if at.tag.endswith("}style"))
    found = re.search(rf"\.{ground.get('class')}{{(.*?)}}", sheet or "")
    look = ground.get("style") or (found[1] if found else "")
    assert "fill:none" in look or "opacity:0" in look  # the page shows through


@pytest.mark.thorough
def test_what_is_saved_is_small():
    whole = written(many)
    assert len(style.render("title", (7.2, 7.0), many, "caption")) < 0.4 * len(whole)


@pytest.mark.parametrize("form", style.FORMS)
def test_a_name_that_is_no_text_is_escaped(form):
    """Would catch a command with bytes that no text has, as names of files may: they are in a picture's caption."""
    drawn = style.render_as(form, "\udcff", (2, 2), lambda figure: None, "--out \udcff")
    assert form != "svg" or rb"--out \udcff" in drawn


def places(path):
    """Points of a path of straight lines, relative or not."""
    tokens = (
        path.replace("M", " M ").replace("l", " l ").replace("L", " L ").replace("z", " z ").replace("-", " -").split()
    )
    found, at, command, numbers = [], np.zeros(2), "", []
    for token in tokens:
        if token in "MLlz":
            command = token
            continue
        numbers.append(float(token))
        if len(numbers) == 2:
            at = at + numbers if command == "l" else np.array(numbers)
            found.append(at)
            numbers = []
    return np.array(found)


def test_steps_add_up_to_the_places():
    """Catches rounding errors that grow along a line."""
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(size=(500, 2)), axis=0)
    path = " ".join(f"{'L' if place else 'M'} {x:.6f} {y:.6f}" for place, (x, y) in enumerate(points))
    shorter = svg._shorter(path)
    np.testing.assert_allclose(places(shorter), points, atol=0.5 / svg.PER_POINT + 1e-9)
    assert len(shorter) < 0.55 * len(path)
    curve = "M 0 0 \nC 1.25 2 3 4 5.123456 6 \nz"
    assert svg._shorter(curve) == "M0 0c1.25 2 3 4 5.12 6z"
    assert svg._shorter("M 1 1 \nQ -1.5 2 3 -4 \nQ 3 3 4 4") == "M1 1q-2.5 1 2-5 0 7 1 8"


def test_a_formula_is_outlines_whose_title_says_it():
    """Catches words that became outlines, and a formula that cannot be found by what it says."""

    def draw(canvas):
        canvas.text(0.1, 0.5, r"gate drive $\kappa/\lambda$")
        canvas.text(0.1, 0.1, "only words")

    root = ElementTree.fromstring(style.render("title", (3, 2), draw, "caption"))
    found = {at.tag.rpartition("}")[2]: at.text for at in root.iter() if at.tag.endswith(("}title", "}text"))}
    (group,) = (at for at in root.iter() if at.get("role") == "img")
    assert group[0].text == "gate drive κ/λ"
    assert found["text"] == "only words"


def test_every_look_is_kept():
    """The style of each thing that is drawn, in the order in which it is drawn."""

    def looks(document):
        root = ElementTree.fromstring(document)
        rules = dict(
            line[1:].rstrip("}").split("{") for at in root.iter() if at.tag.endswith("style")
            for line in (at.text or "").strip().splitlines() if line.startswith(".")
        )  # fmt: skip
        lines = [at for at in root.iter() if at.tag.endswith("}path") and at.get("clip-path")]
        return [rules.get(at.get("class", ""), at.get("style", "")).replace(" ", "") for at in lines]

    whole = written(many)
    assert looks(svg.compact(whole)) == looks(whole) != []


def test_the_cycle_is_the_roles():
    with style.our_style():
        from matplotlib import rcParams

        assert tuple(f"#{colour.lstrip('#')}" for colour in rcParams["axes.prop_cycle"].by_key()["color"]) == CYCLE


@pytest.mark.parametrize("page", ["white", PAGE])
def test_colours_stand_out_on_a_light_page(page):
    assert all(contrast(colour, page) >= MARKS for colour in (*CYCLE, *ramp(3), *ramp(8)))
    assert all(contrast(colour, page) >= WORDS for colour in (roles.ORANGE, roles.BLUE, roles.INK))


@pytest.mark.parametrize(
    ("theme", "pages"), [(overview.LIGHT, ("white", PAGE)), (overview.DARK, ("#0d1117", DARK_PAGE))]
)
def test_the_overview_is_legible_on_its_page(theme, pages):
    """Its pages are the site's and GitHub's."""
    words = (theme.ink, theme.soft, theme.measured, theme.printed)
    assert all(contrast(colour, page) >= WORDS for page in pages for colour in words)
    assert all(contrast(badge, word) >= WORDS for badge, word in theme.statuses.values())


def test_roles_stay_apart_in_grey():
    levels = sorted(map(lightness, (*CYCLE, roles.INK)))
    assert min(after - before for before, after in itertools.pairwise(levels)) > APART
    for count in (2, 3, 4, 5):
        levels = list(map(lightness, ramp(count)))
        assert min(after - before for before, after in itertools.pairwise(levels)) > APART
