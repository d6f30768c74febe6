"""The page in a real browser, opened from disk: filters, cards, keyboard, phone, print, and no word to the network."""

import dataclasses
import re

import pytest
import samples
from test_pages import FORMULAS, HOSTILE

from moe_theory.report import pages, rendering, wording
from moe_theory.verification.verdict import Status

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install 'moe-theory[dev]'")

PHONE = {"width": 390, "height": 844}
CONTRAST = 4.5  # WCAG AA for text of this size
# Of every visible text with its own background: the contrast, as WCAG defines it.
CONTRASTS = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = color.map((part) => part / 255)
      .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (at) => {
    for (; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const at of document.querySelectorAll("body *:not(script):not(symbol *)")) {
    const hasText = [...at.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !at.checkVisibility() || at.closest("svg, math")) continue;
    const [one, other] = [light(rgb(getComputedStyle(at).color)), light(behind(at))];
    found.push([(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), `${at.tagName} ${at.className}`]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def report():
    return samples.sparing(samples.report(60))


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return pages.write_report(report, folder)[0].as_uri()


def shown(page):
    """The cards that are visible once no statement is folded over them."""
    page.evaluate("for (const fold of document.querySelectorAll('.folded')) fold.open = true")
    return page.locator("details.card:visible").evaluate_all("cards => cards.map((card) => card.id)")


def anchors(report, **wanted):
    """The cards with such verdicts, in the page's order: with their statements, then those of none."""
    chosen = (each for each in report.verdicts if all(getattr(each, name) == value for name, value in wanted.items()))
    found = {verdict.claim for verdict in chosen}
    chapters = wording.arrange_chapters(report)
    of_chapters = ([*(each for _, own in chapter.statements for each in own), *chapter.others] for chapter in chapters)
    return [wording.anchor("claim", entry[0].claim) for own in of_chapters for entry in own if entry[0].claim in found]


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_filters_searches_and_expands(opened, report, tmp_path):
    page = opened(viewport={"width": 1200, "height": 900})
    assert shown(page) == anchors(report)
    page.get_by_role("checkbox", name="REFUTED").check()
    assert shown(page) == anchors(report, status=Status.REFUTED)
    page.get_by_role("searchbox", name="Search").fill("LEMMA 3 moves? nothing such")
    assert shown(page) == []
    assert page.get_by_text("No claims match.").is_visible()
    page.get_by_role("searchbox", name="Search").fill("lemma 3 last task")
    assert shown(page) == ["claim:continual.lemma-3"]
    card = page.locator("details.card:visible")
    assert not card.locator(".verdict").first.is_visible()
    card.locator("summary").first.focus()
    page.keyboard.press("Enter")
    refuted = [each for each in report.verdicts if each.claim == "continual.lemma-3" and each.status is Status.REFUTED]
    assert card.locator(".verdict:visible").count() == len(refuted) > 0
    assert refuted[0].command in card.inner_text()
    assert card.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    path = tmp_path / "page.png"
    page.screenshot(path=path)
    assert path.stat().st_size > 10_000
    page.get_by_role("button", name="Clear", exact=True).click()
    assert shown(page) == anchors(report)


def test_facets_narrow_together_and_a_link_opens_its_card(opened, report):
    """Values of one facet add up, facets narrow, and a link to a verdict opens its card whatever is filtered."""
    page = opened()
    page.locator(".more summary").click()
    for name in ("SUPPORTED", "sibling", "identity"):
        page.get_by_role("checkbox", name=name).check()
    assert shown(page) == anchors(report, status=Status.SUPPORTED, reading="sibling", kind="identity") != []
    page.evaluate("for (const card of document.querySelectorAll('.card')) card.open = true")
    for verdict in page.locator(".verdict:visible").all():
        assert (verdict.get_attribute("data-status"), verdict.get_attribute("data-reading")) == ("SUPPORTED", "sibling")
    other = next(verdict for verdict in report.verdicts if verdict.status is Status.REFUTED)
    page.evaluate("anchor => { location.hash = anchor }", wording.verdict_anchor(other))
    section = page.locator(f"[id='{wording.verdict_anchor(other)}']")
    section.wait_for(state="visible")
    sync_api.expect(section).to_be_in_viewport()


def test_fits_a_phone(opened, tmp_path):
    """Nothing but the tables' own boxes scrolls sideways, cards open or shut."""
    page = opened(viewport=PHONE, is_mobile=True, has_touch=True)
    assert overflow(page) <= 0
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert overflow(page) <= 0
    page.screenshot(path=tmp_path / "phone.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_is_legible(opened, scheme):
    """Every word stands out from what is behind it: also in a filtered view, where other readings are muted."""
    page = opened(color_scheme=scheme)
    page.get_by_role("checkbox", name="REFUTED").check()
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = page.evaluate(CONTRASTS)
    assert len(found) > 500
    assert min(found) >= [CONTRAST]


def test_is_whole_without_javascript(opened, report):
    page = opened(java_script_enabled=False)
    assert len(shown(page)) == len(anchors(report))
    assert page.locator(".filters:visible").count() == 0
    page.locator("details.card summary").first.click()
    assert page.locator("details.card .verdict").first.is_visible()


def test_hostile_content_does_nothing(browser, report, tmp_path):
    """As it is made nothing runs, is asked for or is refused; with a tag that came through, the policy refuses it."""
    words = f"{HOSTILE} <img src=http://asked.test/words onerror=asked(1)>"
    verdicts = [
        samples.verdict(
            claim=f"mine.{place}", formula=formula, **dict.fromkeys(("where", "statement", "reason"), words)
        )
        for place, formula in enumerate(FORMULAS)
    ]
    made = dataclasses.replace(report, verdicts=verdicts, command=words, readings={words: words})
    path = pages.write_report(made, tmp_path)[0]
    said, asked, refused, ran = [], [], [], []
    context = browser.new_context()
    page = context.new_page()
    page.expose_function("asked", lambda number: ran.append(number))
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: refused.append((request.url, request.failure)))
    page.goto(path.as_uri())
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.locator("math").count() == sum(bool(rendering.mathml(formula)) for formula in FORMULAS) > 3
    assert page.locator("math script, math img, math iframe, math [href], math [style]").count() == 0
    assert {url.split(":")[0] for url in asked} <= {"file", "data"}
    assert said == ran == []
    tags = "<script>asked(2)</script><img src=http://asked.test/img onerror=asked(3)><i style='color:red'>x</i>"
    path.write_text(re.sub("<main>", lambda found: f"{found[0]}{tags}", path.read_text()))
    page.goto(path.as_uri())
    page.get_by_role("searchbox", name="Search").fill("nothing such")  # its own script runs
    assert page.get_by_text("No claims match.").is_visible()
    assert len(said) == 4
    assert all("Content Security Policy" in words for words in said)
    assert refused == [("http://asked.test/img", "csp")]
    assert [url for url in asked if url.startswith("http")] == ["http://asked.test/img"]
    assert ran == []
    context.close()
