"""The page and its JSON: both say the same, whatever the verdicts say, and can be read again."""

import dataclasses
import html
import json
import math
import re

import pytest
import samples
from markdown_it import MarkdownIt
from refusals import refusal
from samples import Page

from moe_theory import cli
from moe_theory.core.errors import DamagedError, OutputError
from moe_theory.core.papers import paper_names
from moe_theory.plot import markdown
from moe_theory.plot.symbols import marked
from moe_theory.report import cards, pages, rendering, wording
from moe_theory.report.bibliography import entry_of
from moe_theory.verification.verdict import Status

HOSTILE = "<script>alert(1)</script> | \"quoted\" & 'so' `code` {{ 7 * 7 }} ](javascript:x)"
BLOCKS = [
    "[x]: javascript:x",
    "# title",
    "> said",
    "- one",
    "1. one",
    "~~~ html",
    "***",
    "---",
    "===",
    "<b>",
    "&lt;",
    "$x$",
]
FORMULAS = [
    r"\text{</mtext></math><script>asked('script')</script>}",
    r"\text{<img src=http://asked.test/text onerror=asked(1)>}",
    r"\text{&lt;img src=http://asked.test/entity onerror=asked(1)&gt;}",
    r"\href{javascript:asked(1)}{here}",
    r"\href{http://asked.test/link}{here}",
    r"\style{background:url(http://asked.test/style)}{x} \class{skip}{y} \color{red;x}{z}",
    r"\operatorname{<iframe src=javascript:asked(1)>} \unicode{x3c}script>",
    r"\newcommand{\a}{xxxxxxxx}\newcommand{\b}{\a\a\a\a\a\a\a\a}\b",
]


@pytest.fixture(scope="module")
def report():
    return samples.sparing(samples.report(60))


@pytest.fixture(scope="module")
def text(report):
    return rendering.to_html(report)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def with_verdicts(report, *verdicts):
    return dataclasses.replace(report, verdicts=list(verdicts))


def shown(words):
    """A sentence without the elements that typeset its mathematics."""
    return html.unescape(re.sub("<[^>]*>", "", marked(words)))


def test_every_verdict_has_its_card(report, page):
    assert page.wrong == []
    assert page.open == []
    names = page.attributes("id")
    assert len(set(names)) == len(names)
    for verdict in report.verdicts:
        assert verdict.reading in page.words[wording.verdict_anchor(verdict)]
        card = page.words[wording.anchor("claim", verdict.claim)]
        for words in (verdict.claim, shown(verdict.where), shown(verdict.statement), verdict.command):
            assert words in card


def test_every_statement_has_one_card_in_the_order_that_people_ask(report, page, text):
    for known in wording.judged_statements(report):
        of = known.statement
        words = " ".join(page.words[wording.anchor("statement", of.name)].split())
        decided = wording.deciding_verdict(known, report.verdicts)
        asked = [of.where, cards.label(known), of.says, *cards.reasons(known), of.corrected]
        asked += [wording.sentence(decided)] if decided else []
        asked = [*map(shown, filter(None, asked)), *([decided.command] if decided else [])]
        places = [words.index(" ".join(each.split())) for each in asked]
        assert places == sorted(places), of.name
    counts = wording.statement_counts(wording.judged_statements(report))
    assert f"{sum(counts.values())} statements, decided by {len(report.verdicts)} verdicts" in text
    assert all(f"<b>{count}</b>" in text for count in counts.values())
    assert set(counts) >= {"false", "not judged"}


def test_links_lead_somewhere_and_nothing_is_loaded(page, text):
    names = set(page.attributes("id"))
    published = {entry.fields["url"] for name in paper_names() if (entry := entry_of(name)) and "url" in entry.fields}
    for address in page.attributes("href"):
        if address in published:
            continue
        assert address.startswith("#")
        assert address[1:] in names or "=" in address
    for tag, attributes, _ in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        source = attributes.get("src", "data:")
        assert source.startswith("data:")
        if tag == "img":
            assert len(attributes["alt"]) > 40
    for references in page.attributes("aria-labelledby"):
        assert set(references.split()) <= names
    assert not re.search(r"url\(|@import", text)


def test_numbers_are_those_of_the_json(report, page):
    """The card's numbers at full precision, in order, are the document's own: no rounding, no other object."""
    document = json.loads(pages.to_json(report))
    for verdict in document["verdicts"]:
        shown = page.numbers(f"verdict:{verdict['claim']}:{verdict['reading']}")
        known = {repr(verdict[name]) for name in ("predicted", "observed", "margin", "error", "smallest_discrepancy")}
        known |= {repr(end) for end in verdict["interval"]} | {str(verdict["replicates"])}
        known |= {repr(verdict[name]) for name in ("trivial", "standard_error", "unseen")}
        if verdict["observed"] is not None:
            known.add(repr(verdict["observed"] - verdict["predicted"]))
        assert set(shown) <= known
        for name in ("observed", "error", "replicates", "smallest_discrepancy"):
            assert verdict[name] is None or str(verdict[name]) in shown


def test_each_status_says_what_it_has_to(report, page):
    """Catches a refutation without its command, and a trivial value, hypothesis or message left out."""
    for verdict in report.verdicts:
        words = " ".join(page.words[wording.verdict_anchor(verdict)].split())
        if verdict.status is Status.REFUTED:
            assert f"See it fail, with {verdict.replicates} replicates: {verdict.command}" in words
        if verdict.status is Status.VACUOUS:
            assert "so would any bound" in words
        if verdict.status is Status.INAPPLICABLE:
            assert "A hypothesis M > N" in words
        if verdict.status is Status.ERROR:
            assert "code of the claim failed: ValueError: observe gave" in words
        if verdict.curve is not None:
            assert ("exact interval" if verdict.is_exact else "asymptotic interval") in words
    assert {verdict.status for verdict in report.verdicts} == set(Status)


def test_hostile_words_stay_words(report):
    """In every field that is free text: nothing becomes an element, a template or a cell."""
    free = dict.fromkeys(("claim", "where", "statement", "reason", "reading", "at", "command", "formula"), HOSTILE)
    verdict = samples.verdict(**free, replaced_by=HOSTILE, paper=HOSTILE, interval_kind=HOSTILE)
    evil = dataclasses.replace(with_verdicts(report, verdict), command=HOSTILE, readings={HOSTILE: HOSTILE})
    text = rendering.to_html(evil)
    page = Page(text)
    assert page.wrong == []
    assert [tag for tag, _, _ in page.elements].count("script") == 1
    assert "49" not in re.sub(r"base64,[^\"]*", "", text)[text.index("</script>", text.index("<main>")) - 40 :]
    assert "javascript:x" in page.words[wording.verdict_anchor(verdict)]
    assert json.loads(pages.to_json(evil))["verdicts"][0]["reason"] == HOSTILE
    for words in BLOCKS:
        parsed = MarkdownIt("commonmark").enable("table").parse(str(markdown.words(words)))
        assert [token.type for token in parsed] == ["paragraph_open", "inline", "paragraph_close"]
        assert "".join(part.content for part in parsed[1].children) == words
        assert {part.type for part in parsed[1].children} <= {"text", "text_special"}


@pytest.mark.parametrize("latex", FORMULAS)
def test_formulas_have_no_links_styles_or_tags_of_html(latex):
    """Catches what LaTeX may ask for: words stay words, or the source is shown."""
    page = Page(rendering.mathml(latex))
    assert page.wrong == page.open == []
    assert not {"a", "script", "img", "iframe"} & {tag for tag, _, _ in page.elements}
    names = {name for _, attributes, _ in page.elements for name in attributes}
    assert not [name for name in names if name in {"href", "style", "class", "src"} or name.startswith("on")]


@pytest.mark.parametrize(
    "latex", [r"\frac{a}{b} \le \mathcal{O}(\sigma_0^{1/2})", r"\left(", r"}{", r"\nosuch{x}", "<u>"]
)
def test_formulas_are_mathematics_or_their_source(report, latex):
    page = Page(rendering.to_html(with_verdicts(report, samples.verdict(formula=latex))))
    assert page.wrong == []
    assert latex in page.attributes("aria-label")
    assert "u" not in [tag for tag, _, _ in page.elements]


def test_formulas_in_a_sentence_are_typeset(report):
    """On the page and on a card that Markdown makes: catches a star of a formula that becomes an emphasis."""
    says = r"With $1 - \delta$ it is $a*b*c$ times_two."
    of = dataclasses.replace(report.statements[0], says=says)
    page = rendering.to_html(dataclasses.replace(report, statements=[of]))
    (card,) = re.findall(r"<article.*?</article>", page, re.DOTALL)
    assert card.count('<math display="inline">') == 2
    assert "<em>" not in card
    assert "times_two." in card


def test_files_say_the_same_again(report, tmp_path):
    """What is read is what was written, NaN and infinity apart, and writing it again changes no byte."""
    report = with_verdicts(report, *report.verdicts[:24])  # of every status
    paths = pages.write_report(report, tmp_path)
    assert [path.name for path in paths] == list(pages.OWN_NAMES)
    again = pages.read_reports([tmp_path])
    assert pages.to_json(again) == paths[-1].read_text(encoding="utf-8")
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in pages.write_report(again, tmp_path)] == first
    document = json.loads(paths[-1].read_text())
    assert document["schema"] == "moe-theory/verdicts/6"
    assert sum(document["summary"].values()) == len(report.verdicts)
    odd = samples.verdict(reason="\ud800 said", reading="\udcff")
    odd.curve.labels[0] = "\udcff"
    pages.write_report(dataclasses.replace(with_verdicts(report, odd), command="verify \udcff"), tmp_path)
    assert pages.read_reports([tmp_path]).verdicts[0].reason == r"\ud800 said"
    infinite = with_verdicts(report, samples.verdict(interval=(-math.inf, 0.5)))
    assert json.loads(pages.to_json(infinite))["verdicts"][0]["interval"] == [None, 0.5]


def folder_of(parent, report, *verdicts, **fields):
    parent.mkdir(parents=True, exist_ok=True)
    made = dataclasses.replace(report, verdicts=list(verdicts), **fields)
    (parent / pages.NUMBERS).write_text(pages.to_json(made))
    return parent


def test_reports_are_merged(report, tmp_path):
    """The later verdict stands, in the place of the earlier; errors and budgets add up."""
    old, other, new = (
        samples.verdict(claim=name, reason=why) for name, why in (("a", "old"), ("b", "b"), ("a", "new"))
    )
    one = folder_of(tmp_path / "runs" / "1", report, old, other, command="first", budget=None)
    two = folder_of(tmp_path / "runs" / "2", report, new, command="second", error=0.02, versions={"jax": "0.11"})
    for paths in ([one, two], [one, two / "verdicts.json", two]):
        made = pages.read_reports(paths)
        assert [(verdict.claim, verdict.reason) for verdict in made.verdicts] == [("a", "new"), ("b", "b")]
        assert made.error == pytest.approx(0.03)
        assert made.command == "first; second"
        assert made.budget == 900
        assert made.versions["jax"] == "0.10.2 and 0.11"
    assert pages.read_reports([two, one]).verdicts[0].reason == "old"


def test_a_verdict_for_several_readings_belongs_to_each_and_counts_once(report, tmp_path):
    """Catches readings that a page, a count or a filter leaves out, and one that two verdicts are on."""
    both = samples.verdict(reading="unit-signal", also=["sibling"], command="verify --reading unit-signal --seed 0")
    alone = samples.verdict(reading="independent-signal")
    (chapter,) = wording.arrange_chapters(with_verdicts(report, both, alone))
    entries = [*chapter.others, *(entry for _, entries in chapter.statements for entry in entries)]
    assert entries == [[both, alone]]
    page = Page(rendering.to_html(with_verdicts(report, both, alone)))
    assert (page.wrong, page.open) == ([], [])
    assert "unit-signal\nsibling" in page.attributes("data-reading")
    assert "under unit-signal and sibling" in " ".join(page.words[wording.verdict_anchor(both)].split())
    one = folder_of(tmp_path / "1", report, both)
    two = folder_of(tmp_path / "2", report, samples.verdict(reading="unit-signal", reason="later"))
    rest, later = sorted(pages.read_reports([one, two]).verdicts, key=lambda verdict: verdict.reading)
    assert (rest.reading, rest.also, rest.command) == ("sibling", [], "verify --reading sibling --seed 0")
    assert (later.reading, later.reason) == ("unit-signal", "later")


def test_what_is_no_report_is_refused_in_one_line(tmp_path):
    current = '{"schema": "moe-theory/verdicts/6", "verdicts": '
    refusal(DamagedError, pages.read_reports, [tmp_path])
    for content in (
        "{",
        "[]",
        '{"schema": "moe-theory/verdicts/1", "verdicts": []}',
        f"{current}[{{}}]}}",
        f"{current}3}}",
    ):
        (tmp_path / pages.NUMBERS).write_text(content)
        refusal(DamagedError, pages.read_reports, [tmp_path])


def test_what_cannot_be_merged_is_refused(report, tmp_path):
    one = folder_of(tmp_path / "1", report, samples.verdict())
    for change in ({"seed": 1}, {"is_x64": True}):
        two = folder_of(tmp_path / "2", report, samples.verdict(), **change)
        refusal(DamagedError, pages.read_reports, [one, two])
    refusal(DamagedError, pages.read_reports, [tmp_path / "none"])


def test_command_line(report, tmp_path, capsys):
    source = folder_of(tmp_path / "run", report, *report.verdicts[:4])
    cli.main(["report", str(source)])
    printed = capsys.readouterr().out
    for name in pages.OWN_NAMES:
        assert str(source / name) in printed
        assert (source / name).stat().st_size > 1000
    cli.main(["report", str(source), "--out", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out" / "report.json").read_text())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError):
        pages.write_report(with_verdicts(report), tmp_path / "file")


def test_a_made_report_is_not_merged_again(report, tmp_path):
    """A second `report` of a folder is that of its runs: catches errors that grow with each."""
    folder_of(tmp_path / "a", report, samples.verdict(claim="a"))
    folder_of(tmp_path / "b", report, samples.verdict(claim="b"))
    for _ in range(2):
        made = pages.read_reports([tmp_path / "a", tmp_path / "b"])
        assert (len(made.verdicts), made.error) == (2, 0.02)
        pages.write_report(made, tmp_path / "a")
