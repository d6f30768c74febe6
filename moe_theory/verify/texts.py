"""Texts of statements: what a reader reads, in TOML files beside the modules that declare the statements.

`lemma_08.toml` stands beside `lemma_08.py`, and `statements.toml` beside an `__init__.py`. Each statement has a table
under its id, which holds a table `decides` with the entries that decide its status, and a table for each claim under
the claim's full id. `paper.toml` beside them says what the statements of a paper share. Strings are Markdown with
LaTeX; a string that ends in `formula` is LaTeX alone.
"""

import functools
import sys
import tomllib
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any, TypeVar

import pydantic

from moe_theory.core.errors import InvalidStatementError, shortened, unknown_name

T = TypeVar("T", bound="Table")


class Table(pydantic.BaseModel):
    """A table of a text file: an entry that is not listed is refused."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, str_strip_whitespace=True)


class ClaimTexts(Table):
    """Texts of a claim, under its full id."""

    claim: str  # in one sentence
    note: str = ""
    formula: str = ""  # the statement's unless given, or the correction's for a claim of what is true instead
    where: str = ""  # the statement's unless given


class Deciding(Table):
    """What decides a statement's status: files beside the module, and two texts."""

    proof: str = ""  # file in `proofs`: it holds, or it is vacuous
    disproof: str = ""  # likewise: the sentence as printed is violated by an example
    derivation: str = ""  # likewise, of the correction
    counterexample: str = ""  # file in `counterexamples`
    condition: str = ""  # at most two inequalities under which it holds, where it does not as printed
    untestable: str = ""  # why no claim can decide it


class StatementTexts(Table):
    """Texts of a statement, under its id."""

    where: str  # "Lemma 8, Eq. (32)"
    claim: str
    formula: str = ""
    paper: str = ""  # whose statement it is, where another paper's folder tests it
    hypotheses: list[str] = []  # ids
    why: str = ""
    example: str = ""
    correction: str = ""
    correction_formula: str = ""
    note: str = ""
    paper_numbers: list[float] = []  # numbers of these texts that are the paper's, or follow from others beside them
    decides: Deciding = Deciding()
    claims: dict[str, ClaimTexts] = {}


class ConflictTexts(Table):
    """Statements that cannot all be true where the hypotheses of all are met: ids against other ids."""

    one: list[str]
    other: list[str]


class PaperTexts(Table):
    """What the statements of a paper share, in `paper.toml`."""

    order: list[str] = []  # modules, in the order of their claims in reports
    all: list[str] = []  # ids of the hypotheses of every statement
    hypotheses: dict[str, str] = {}  # sentences by id
    premises: dict[str, list[str]] = {}  # ids of the statements that a statement's proof uses, the main one first
    own_faults: list[str] = []  # ids of statements whose proofs fail even if all premises held
    conflicts: list[ConflictTexts] = []


def statement_texts(module: str, id: str) -> StatementTexts:
    """Return the texts of a statement that a module declares. Raises: InvalidStatementError, with file and key."""
    folder, file = _place(module)
    tables = _tables(folder, file)
    if id not in tables:
        raise InvalidStatementError(f"{folder}/{file}: {unknown_name('statement', id, tables)} Add a table [{id}].")
    return tables[id]


@functools.cache
def paper_texts(package: str) -> PaperTexts:
    """Return what `paper.toml` of a package says. Raises: InvalidStatementError, with the file and the key."""
    file = f"{package}/paper.toml"
    texts = _checked(PaperTexts, _parsed(package, "paper.toml", is_needed=False), file)
    for id in texts.premises:
        if id in _premises_below(texts, id):
            raise InvalidStatementError(f"{file}: premises.{id}: the proof rests on itself. Change its premises.")
    return texts


def import_statements(package: str) -> None:
    """Import the modules that declare a paper's statements, in the order of `paper.toml`."""
    for name in paper_texts(package).order:
        import_module(f"{package}.{name}")


def hypothesis_text(package: str, id: str) -> str:
    """Return the sentence of a hypothesis. Raises: InvalidStatementError for an id without one."""
    sentences = paper_texts(package).hypotheses
    if id not in sentences:
        raise InvalidStatementError(f"{package}/paper.toml: {unknown_name('hypothesis', id, sentences)}")
    return sentences[id]


def folder_of(module: str) -> str:
    """Return the package that a module is in, or is itself; empty for a module alone."""
    return module if hasattr(sys.modules.get(module), "__path__") else module.rpartition(".")[0]


def _premises_below(texts: PaperTexts, id: str) -> set[str]:
    """Return all that the proof of a statement rests on, directly or not."""
    below = set[str]()
    ahead = list(texts.premises.get(id, ()))
    while ahead:
        premise = ahead.pop()
        if premise not in below:
            below.add(premise)
            ahead += texts.premises.get(premise, ())
    return below


def _place(module: str) -> tuple[str, str]:
    folder = folder_of(module)
    stem = "statements" if folder == module else module.rpartition(".")[2]
    return folder, f"{stem}.toml"


@functools.cache
def _tables(folder: str, file: str) -> dict[str, StatementTexts]:
    tables = _parsed(folder, file)
    return {id: _checked(StatementTexts, table, f"{folder}/{file}", id) for id, table in tables.items()}


def _parsed(folder: str, file: str, is_needed: bool = True) -> dict[str, Any]:
    if not folder or find_spec(folder) is None:
        raise InvalidStatementError(
            f"{file}: the module that declares its statements is in no package. Move it into one, or give claim=... "
            "to `statement`."
        )
    path = resources.files(folder).joinpath(file)
    if not path.is_file():
        if not is_needed:
            return {}
        raise InvalidStatementError(
            f"{folder}/{file} is missing, and has the texts of the statements. Write it, or give claim=... to "
            "`statement`."
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no TOML, or not UTF-8
        raise InvalidStatementError(f"{folder}/{file}: {error}. Correct the file.") from None


def _checked(kind: type[T], table: Any, file: str, *key: str) -> T:
    try:
        return kind.model_validate(table)
    except pydantic.ValidationError as failure:
        fault = failure.errors()[0]
        place = ".".join(map(str, (*key, *fault["loc"])))
        raise InvalidStatementError(
            f"{file}: {place}={shortened(fault['input'])}: {fault['msg']}. Known: {', '.join(kind.model_fields)}."
        ) from None
