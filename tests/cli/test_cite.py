"""Citations of a run: catches a run that is not known for one, a statement lost or said of the wrong paper,
BibTeX that disagrees with CITATION.cff, and a damaged folder answered by a traceback."""

import json
import re
from pathlib import Path

import pytest
import samples
import yaml
from rich.console import Console

from moe_theory import __version__
from moe_theory.core.papers import all_papers, paper_names
from moe_theory.report import bibliography, citations, pages, plots
from moe_theory.runs.files import sealed
from moe_theory.sweep.manifest import SCHEMA
from moe_theory.sweep.systems import system_names
from moe_theory.verify.registry import select_claims
from moe_theory.verify.verdict import Status

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cited(ran):
    """Citations of a run, as JSON."""
    return lambda run: json.loads(ran("cite", run, "--json").out)


def claims_of(document) -> dict[str, list[str]]:
    return {paper["paper"]: [each["claim"] for each in paper["statements"]] for paper in document["papers"]}


def ids(*patterns: str) -> list[str]:
    return [claim.id for claim in select_claims(patterns)]


@pytest.mark.parametrize("numbers", [pages.NUMBERS, pages.REPORT_JSON])
def test_every_verdict_of_a_report_is_there_by_paper(numbers, tmp_path, cited):
    report = samples.report(24)  # of every status
    (tmp_path / numbers).write_text(pages.to_json(report))
    document = cited(tmp_path)
    told = [
        (paper["paper"], each["claim"], verdict["status"], verdict["setting"])
        for paper in document["papers"]
        for each in paper["statements"]
        for verdict in each["verdicts"]
    ]
    expected = [(verdict.paper, verdict.claim, verdict.status, verdict.setting) for verdict in report.verdicts]
    assert sorted(told) == sorted(expected)
    assert document["note"].startswith(f"{len(report.verdicts)} verdicts")
    assert report.command in document["note"]
    for paper in document["papers"]:
        assert rf"\cite{{{paper['key']}}}" in document["latex"]
        assert f"{{{paper['key']}," in document["bibtex"]
    refuted = sum(verdict.status is Status.REFUTED for verdict in report.verdicts if verdict.paper == "continual")
    assert f"{refuted} refuted" in document["latex"]


def test_people_get_a_table_a_paragraph_and_bibtex(tmp_path, ran):
    (tmp_path / pages.NUMBERS).write_text(pages.to_json(samples.report(24)))
    page = ran("cite", tmp_path).out
    for part in ("Theory on Mixture-of-Experts in Continual Learning", "REFUTED", "% LaTeX", r"moe\_theory", "@misc{"):
        assert part in page
    only = ran("cite", tmp_path, "--bibtex").out
    assert only.rstrip() == citations.bibtex(citations.bearing_of(str(tmp_path)))
    assert only.startswith("@misc{moe-theory,\n")
    assert re.fullmatch(r"(@\w+\{[\w-]+,\n(  \w+ = \{.*\},\n)+\}\n\n?)+", only)


def test_a_map_says_where_its_claim_holds(tmp_path, cited, refused):
    verdict = samples.verdict(claim="continual.lemma-4", where="Lemma 4").to_json()
    document = {
        "schema": "moe-theory/exploration/1",
        "summary": ["SUPPORTED at 2 of 3 points, for x from 1 to 2", "REFUTED at 1 of 3 points, for x = 3"],
        "versions": {"moe-theory": "0.0.9"},
        "points": [{"at": {"x": 1}, "verdict": verdict}],
    }
    (tmp_path / "continual.lemma-4.json").write_text(json.dumps(document))
    for run in (tmp_path, tmp_path / "continual.lemma-4.json"):
        told = cited(run)
        assert claims_of(told) == {"continual": ["continual.lemma-4"]}
        (statement,) = told["papers"][0]["statements"]
        assert [verdict["status"] for verdict in statement["verdicts"]] == ["SUPPORTED", "REFUTED"]
        assert "Version 0.0.9" in told["bibtex"]
    del document["points"]
    (tmp_path / "continual.lemma-4.json").write_text(json.dumps(document))
    assert "is damaged (KeyError: 'points')" in refused("cite", tmp_path)


@pytest.mark.parametrize("system", system_names())
def test_a_sweep_bears_on_what_is_judged_on_its_system(system, tmp_path, cited, refused):
    manifest = {"schema": SCHEMA, "specification": {"system": system}, "fingerprint": {"moe-theory": "", "backend": ""}}
    (tmp_path / "manifest.json").write_text(sealed(manifest))
    document = cited(tmp_path)
    assert list(claims_of(document)) == [system]
    told = claims_of(document)[system]
    assert told
    assert set(told) <= set(ids(system))
    assert not any(each["verdicts"] for each in document["papers"][0]["statements"])
    assert document["note"].startswith("Nothing is judged here")
    manifest["specification"] = {}
    (tmp_path / "manifest.json").write_text(sealed(manifest))
    assert "is damaged" in refused("cite", tmp_path)


def test_what_is_computed_without_a_sweep_s_system_is_not_listed(tmp_path):
    manifest = {
        "schema": SCHEMA,
        "specification": {"system": "generalization"},
        "fingerprint": {"moe-theory": "", "backend": ""},
    }
    (tmp_path / "manifest.json").write_text(sealed(manifest))
    told = citations.bearing_of(str(tmp_path)).papers["generalization"]
    assert [each.claim for each in told] == ids("generalization:learned")


def test_merging_bears_on_what_is_judged_on_the_testbed(tmp_path, cited):
    for name in ("slots.csv", "merge.svg"):
        (tmp_path / name).write_text("")
    assert claims_of(cited(tmp_path)) == {"merging": ids("merging:testbed")}


def test_a_figure_bears_on_its_claims(cited):
    for suffix in ("csv", "svg"):
        document = cited(ROOT / "figures" / "continual" / f"figure-8.{suffix}")
        assert claims_of(document) == {"continual": ids("continual.figure-8.*", "continual.proposition-3.*")}


def test_every_figure_has_claims_and_every_glob_matches():
    for paper in (*paper_names(), plots.OVERVIEW):
        for figure in plots.figures_of(paper).values():
            assert figure.claims
            for glob in figure.claims:
                assert ids(glob)


def test_claims_and_papers_are_cited_by_name(cited):
    assert claims_of(cited("continual.lemma-4")) == {"continual": ["continual.lemma-4"]}
    assert claims_of(cited("merging")) == {"merging": ids("merging")}


def test_what_is_no_run_is_refused_in_a_line(tmp_path, refused):
    assert "is no run" in refused("cite", tmp_path)
    assert "does not exist" in refused("cite", tmp_path / "none")
    assert "does not exist" in refused("cite", "none.svg")
    assert "Did you mean 'continual'" in refused("cite", "contnual")
    (tmp_path / "picture.svg").write_text("")
    assert "is no run" in refused("cite", tmp_path / "picture.svg")
    (tmp_path / "verdicts.json").write_text("{")
    assert "cannot be read as JSON" in refused("cite", tmp_path)
    assert "cannot be read as JSON" in refused("cite", tmp_path / "verdicts.json")


def test_a_paper_of_one_s_own_has_no_entry():
    statement = citations.CitedStatement("mine.a", "page 3 of my_notes", "It holds.")
    bearing = citations.Bearing("a run", "a note", {"my_notes": [statement]})
    document = citations.document(bearing).to_json()
    assert document["papers"][0]["key"] is None
    assert r"\emph{my\_notes}" in document["latex"]
    assert document["bibtex"].count("@") == 1


def test_words_are_no_markup(capsys):
    statement = citations.CitedStatement("mine.a", "my notes", "It holds for [every] x.")
    bearing = citations.Bearing("a run", "a note", {"mine": [statement]}, version=r"1\input{x}^~ $%")
    Console(width=100).print(*citations.document(bearing).parts(100))
    assert "[every]" in capsys.readouterr().out
    for made in (citations.latex(bearing), citations.bibtex(bearing)):
        assert r"1\textbackslash{}input\{x\}\textasciicircum{}\textasciitilde{} \$\%" in made


def test_the_bibliography_is_citation_cff():
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    software = bibliography.software()
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
