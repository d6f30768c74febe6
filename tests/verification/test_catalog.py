"""Statements and records read from files: catches an index that is not that of the Python files, and a command that
imports JAX, SciPy or a paper to print a recorded result.
"""

import json
import subprocess
import sys

import pytest

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import all_papers, ordered_names, paper_folder
from moe_theory.verification import catalog
from moe_theory.verification.verdict import Statement

SLOW = ("jax", "scipy", "matplotlib", "pandas")
SCRIPT = """
import contextlib, io, sys
from moe_theory.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    with contextlib.suppress(SystemExit):
        main(sys.argv[1:])
print(*sys.modules)
"""


@pytest.fixture(scope="module", autouse=True)
def papers():
    for paper in all_papers().values():
        paper.import_claims()


@pytest.mark.parametrize("paper", ordered_names())
def test_an_index_is_that_of_its_paper(paper):
    """Else: moe-theory record, and commit what it changes."""
    index = paper_folder(paper) / catalog.NAME
    assert index.read_text(encoding="utf-8") == catalog.index_text(paper)


@pytest.mark.parametrize("paper", ordered_names())
def test_files_say_what_modules_declare(paper):
    text = (paper_folder(paper) / catalog.NAME).read_text(encoding="utf-8")
    read, declared = catalog._read(paper, text), catalog.catalog_of(paper)
    assert read.statements == declared.statements
    assert all(type(statement) is Statement for statement in read.statements)
    assert list(read.claims) == list(declared.claims)
    for id, facts in read.claims.items():
        assert facts == catalog.ClaimFacts(*(getattr(declared.claims[id], name) for name in facts._fields))
    assert json.dumps(read.orders) == json.dumps(declared.orders)


def test_an_edited_paper_is_imported():
    """Would catch a card that is printed from an index of other Python files."""
    paper = ordered_names()[0]
    assert catalog._index_of(paper, catalog.digest_of(paper)) is not None
    assert catalog._index_of(paper, "another digest") is None


@pytest.mark.parametrize(
    "words",
    [["why", "continual.lemma-8"], ["statements"], ["why", "continual.lemma-88"], ["statements", "edge", "--json"]],
    ids=" ".join,
)
def test_what_prints_text_imports_nothing_slow(words, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    modules = set(ended.stdout.split())
    assert modules & {*SLOW, "moe_theory.continual"} == set()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda index: index["claims"].pop("edge.lemma-1.least-change"), "unknown claim 'edge.lemma-1.least-change'"),
        (lambda index: index["claims"].update({"edge.lemma-0": {}}), "claim edge.lemma-0 of edge has no texts"),
    ],
    ids=["texts alone", "index alone"],
)
def test_texts_and_an_index_that_differ_are_an_error(change, names):
    """Would catch a traceback where somebody misspells the id of a claim in a text."""
    index = json.loads((paper_folder("edge") / catalog.NAME).read_text(encoding="utf-8"))
    change(index)
    with pytest.raises(DeclarationError, match=names):
        catalog._read("edge", json.dumps(index))


def test_an_index_that_lacks_a_part_is_none(tmp_path, monkeypatch):
    (tmp_path / catalog.NAME).write_text(json.dumps({"schema": catalog.SCHEMA, "digest": "a"}))
    monkeypatch.setattr(catalog, "paper_folder", lambda paper: tmp_path)
    assert catalog._index_of("edge", "a") is None
