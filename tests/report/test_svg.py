"""Saved pictures: words that are text, and colours that stand out, in grey too."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from moe_theory.plot import ramp, roles, style
from moe_theory.report import overview

FIGURES = Path(__file__).resolve().parents[2] / "figures"
PAGE, DARK_PAGE = "#fbfaf8", "#16171a"  # colours of the report's page
MOST_BYTES = 300_000
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


@pytest.mark.parametrize("form", style.FORMS)
def test_a_name_that_is_no_text_is_escaped(form):
    """Would catch a command with bytes that no text has, as names of files may: they are in a picture's caption."""
    drawn = style.render_as(form, "\udcff", (2, 2), lambda figure: None, "--out \udcff")
    assert form != "svg" or rb"--out \udcff" in drawn


def test_places_are_rounded_where_they_are_drawn():
    """Catches a line that is off, and words whose numbers are rounded as if they were places."""

    def draw(canvas):
        canvas.add_artist(Line2D([0.0411523, 0.5], [0.3271604, 0.5]))  # shares of 216 and of 144 points
        canvas.text(0.1, 0.1, "1.23456")

    root = ElementTree.fromstring(style.render("title", (3, 2), draw, "caption"))
    paths = [at.get("d", "") for at in root.iter() if at.tag.endswith("}path")]
    assert "M 8.89 96.89  L 108 72" in [path.strip() for path in paths]
    assert "1.23456" in [at.text for at in root.iter() if at.tag.endswith("}text")]


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
