"""`moe-theory report --cite`: catches a paper that is left out, and BibTeX that disagrees with CITATION.cff."""

import json
import re
from pathlib import Path

import pytest
import samples
import yaml

from moe_theory import __version__
from moe_theory.core.papers import all_papers
from moe_theory.report import bibliography, pages

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """A folder of a report on several papers."""
    (tmp_path / pages.NUMBERS).write_text(pages.to_json(samples.report(24)))
    return tmp_path


def test_every_paper_of_a_report_is_cited(run, ran):
    document = json.loads(ran("report", run, "--cite", "--json").out)
    assert set(document["papers"]) == {verdict.paper for verdict in samples.report(24).verdicts}
    for paper in document["papers"]:
        assert bibliography.entry_of(paper).text in document["bibtex"]


def test_people_get_bibtex_and_nothing_else(run, ran):
    entries = ran("report", run, "--cite").out
    assert entries.startswith("@misc{moe-theory,\n")
    assert re.fullmatch(r"(@\w+\{[\w-]+,\n(  \w+ = \{.*\},\n)+\}\n\n?)+", entries)


def test_claims_about_other_papers_cite_these():
    """Claims of `deep` are about figures of other papers."""
    assert bibliography.cited_papers(["deep"]) == ["continual", "edge", "reinforced"]


def test_the_bibliography_is_citation_cff():
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    software = bibliography.software(__version__)
    papers = [entry for paper in all_papers() if (entry := bibliography.entry_of(paper))]
    assert software.fields["note"] == f"Version {about['version']}" == f"Version {__version__}"
    assert software.title == about["title"]
    assert software.authors == [author["name"] for author in about["authors"]]
    for entry, reference in zip(papers, about["references"], strict=True):
        assert entry.title == reference["title"]
        assert entry.authors == [f"{each['family-names']}, {each['given-names']}" for each in reference["authors"]]
        assert entry.fields.get("year") == (str(reference["year"]) if "year" in reference else None)
        assert entry.fields.get("url") == reference.get("url")
        assert entry.fields.get("url", "").removeprefix("https://arxiv.org/abs/") == entry.fields.get("eprint", "")
