"""Statements and records read from files: catches an index that is not that of the Python files, a text that is lost,
misspelt, or read from another file; and a command that imports JAX, SciPy or a paper to print a recorded result.
"""

import json
import sys
import types

import pytest
from refusals import refusal

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import all_papers, ordered_names, paper_folder
from moe_theory.verification import catalog, texts
from moe_theory.verification import statement as declarations
from moe_theory.verification.texts import statement_texts
from moe_theory.verification.verdict import Statement


@pytest.fixture(scope="module", autouse=True)
def papers():
    for paper in all_papers().values():
        paper.import_claims()


@pytest.mark.parametrize("paper", ordered_names())
def test_an_index_is_that_of_its_paper(paper):
    """Else: moe-theory record, and commit what it changes."""
    index = paper_folder(paper) / catalog.INDEX
    assert index.read_text(encoding="utf-8") == catalog.index_text(paper)


@pytest.mark.parametrize("paper", ordered_names())
def test_files_say_what_modules_declare(paper):
    index = json.loads((paper_folder(paper) / catalog.INDEX).read_text(encoding="utf-8"))
    read, declared = catalog._parsed_catalog(paper, index), catalog.catalog_of(paper)
    assert read.statements == declared.statements
    assert all(type(statement) is Statement for statement in read.statements)
    assert list(read.claims) == list(declared.claims)
    for id, facts in read.claims.items():
        assert facts == catalog.ClaimFacts(*(getattr(declared.claims[id], name) for name in facts._fields))


def test_an_edited_paper_is_imported(monkeypatch):
    """Would catch a card that is printed from an index of other Python files."""
    paper = ordered_names()[0]
    assert catalog._index_of(paper) is not None
    monkeypatch.setattr(catalog, "digest_of", lambda paper: "another digest")
    assert catalog._index_of(paper) is None


def test_texts_and_an_index_that_differ_are_an_error():
    """Would catch a traceback where somebody misspells the id of a claim in a text."""
    text = (paper_folder("edge") / catalog.INDEX).read_text(encoding="utf-8")
    lacking, further = json.loads(text), json.loads(text)
    del lacking["claims"]["edge.lemma-1.least-change"]
    further["claims"]["edge.lemma-0"] = {}
    for index, name in ((lacking, "edge.lemma-1.least-change"), (further, "edge.lemma-0")):
        assert name in str(refusal(DeclarationError, catalog._parsed_catalog, "edge", index))


STATEMENT = """
[lemma-1]
paper = "continual"
where = "Lemma 1"
claim = '''It falls
slowly.'''
formula = '''y <= 1'''
hypotheses = ["small"]
paper_numbers = [74.95]

[lemma-1.decides]
condition = '''where x is small'''

[lemma-1.claims."mine.lemma-1.slope"]
claim = '''It falls.'''
note = '''The slope is ours.'''
"""
PAPER = """
all = ["finite"]

[hypotheses]
finite = '''x is finite'''
small = '''x is small'''
"""


@pytest.fixture
def module(tmp_path, monkeypatch, forgotten):
    """A module in a folder, by its name, with texts beside it."""
    made = types.ModuleType("texts_of_a_test")
    made.__file__ = str(tmp_path / "lemma_1.py")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    declarations._DECLARED.clear()
    (tmp_path / "lemma_1.toml").write_text(STATEMENT)
    (tmp_path / "paper.toml").write_text(PAPER)
    return made.__name__


HOLDS = {"finite": lambda dims, run: True, "small": lambda dims, run: False}


def test_a_statement_has_the_texts_beside_its_module(module):
    declared = declarations.statement("lemma-1", module=module, holds=HOLDS)
    assert (declared.where, declared.says, declared.formula) == ("Lemma 1", "It falls\nslowly.", "y <= 1")
    assert (declared.hypotheses, declared.amendment) == (["x is finite", "x is small"], "where x is small")
    assert declared.paper_numbers == (74.95,)
    assert [hypothesis.holds for hypothesis in declared.checks] == [HOLDS["finite"], HOLDS["small"]]


def test_a_statement_takes_the_words_that_it_lacks_from_its_twin(module, tmp_path):
    twin = "[lemma-2]\nwhere = 'Lemma 2'\nclaim = 'It rises.'\nlike = 'lemma-1'\nnote = 'Slowly.'\n"
    (tmp_path / "lemma_1.toml").write_text(STATEMENT + twin)
    texts = statement_texts(module, "lemma-2")
    assert (texts.formula, texts.note, texts.hypotheses, texts.claims) == ("y <= 1", "Slowly.", [], {})


@pytest.mark.parametrize(
    ("line", "replacement", "names"),
    [
        ("where =", "were =", "lemma_1.toml: lemma-1.where: Field required"),
        ("paper_numbers = [74.95]", "paper_numbers = 74.95", "lemma-1.paper_numbers: Input should be a valid list"),
        ("note =", "notes =", "lemma-1.claims.mine.lemma-1.slope.notes: Extra inputs are not permitted"),
        ("[lemma-1.decides]", "[lemma-1.decides", "lemma_1.toml: .*line 11"),
        ("paper =", "like = 'lemma-2'\npaper =", "lemma-1.like: unknown statement 'lemma-2'"),
        ("lemma-1", "lemma-2", "unknown statement 'lemma-1'. Did you mean 'lemma-2'"),
    ],
    ids=["missing", "type", "misspelt", "no TOML", "twin", "id"],
)
def test_an_error_in_a_text_names_file_and_key(module, tmp_path, line, replacement, names):
    (tmp_path / "lemma_1.toml").write_text(STATEMENT.replace(line, replacement))
    with pytest.raises(DeclarationError, match=names):
        statement_texts(module, "lemma-1")


def test_a_claim_without_texts_is_refused(module):
    from .declarations import experiment

    declared = declarations.statement("lemma-1", module=module, holds=HOLDS)
    with pytest.raises(DeclarationError, match=r'lacks \[lemma-1.claims."mine.other"\]'):
        declared.ours("mine.other", experiment().at("M=1"), declarations.bound(at_most=1))


def test_a_hypothesis_without_a_sentence_or_a_test_is_refused(module, tmp_path):
    one = {"finite": HOLDS["finite"]}
    refusal(DeclarationError, declarations.statement, "lemma-1", module=module, holds=one)
    paper = tmp_path / "paper.toml"
    paper.write_text(PAPER.replace("small =", "tiny ="))
    texts._shared.cache_clear()
    refusal(DeclarationError, declarations.statement, "lemma-1", module=module, holds=HOLDS)
