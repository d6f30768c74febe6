"""Markdown of documents: catches words that a terminal shows otherwise than they are, and paths that are broken."""

import pytest
from rich.console import Console
from rich.table import Table

from moe_theory.plot.document import Document
from moe_theory.plot.markdown import code, filled, paragraphs, shell_path, table, terminal

STRANGE = [
    "runs/a_b/*c*",
    "a/__init__.py",
    "<b> & &amp; | $x$",
    "- no list",
    "1. no list",
    "# no heading",
    "a  b",
    "`x``y",
    "[a](b)",
]


def shown(text: str, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(*terminal(text), sep="\n")
    return captured.get()


@pytest.mark.parametrize("words", STRANGE)
def test_words_are_shown_as_they_are(words):
    (line,) = terminal(paragraphs([words]))
    assert str(line) == words
    (line,) = terminal(code(words))
    assert str(line) == words
    (made,) = terminal(table(("name",), [(words,)]))
    assert isinstance(made, Table)
    (cell,) = made.columns[0].cells
    assert str(cell) == words


def test_numbers_are_justified_on_the_right_and_names_stay_whole():
    rows = [("a name of many words", "1", "said " * 20), ("b", "22", "x")]
    lines = shown(table(("name", "count", "words"), rows, ("count",)), 60).splitlines()
    assert any("a name of many words      1" in line for line in lines)
    assert any(line.startswith(" b                        22  x") for line in lines)
    assert max(map(len, lines)) <= 60


def test_bold_words_stand_beside_their_paragraphs_and_lists_are_indented():
    text = "# Title\n\n**Status.** true\n\nmore\n\n> **Proof.** first\n>\n> second\n\n# Next\n\n- one\n  - two\n"
    lines = [line.rstrip() for line in shown(text).splitlines()]
    card = ["Title", "Status  true", "        more", "Proof   first", "        second"]
    assert lines == [*card, "", "Next", "  one", "    two"]


def test_a_line_with_a_path_is_not_broken():
    path, sentence = terminal(paragraphs([code("a path"), "a sentence"]))
    assert (path.no_wrap, sentence.no_wrap) == (True, False)


def test_a_template_and_a_notebook_have_the_same_text(tmp_path):
    template = tmp_path / "made.md"
    template.write_text("{{ words }}\n\n{{ table(('a',), [(words,)]) }}\n")
    text = filled(template, words="*")
    assert text == "\\*\n\n| a |\n| --- |\n| \\* |\n"
    assert Document(dict, lambda width: text)._repr_markdown_() == text


@pytest.mark.parametrize(("path", "shown"), [("runs/a", "runs/a"), ("a [b]", "'a [b]'"), ("-dash", "./-dash")])
def test_shell_path(path, shown):
    assert shell_path(path) == shown
