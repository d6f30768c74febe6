"""Texts of statements for readers, from TOML files next to the declaring modules.

`lemma_08.toml` is next to `lemma_08.py`, and `statements.toml` is next to an `__init__.py`. Each statement has a table
under its id, which has a table `decides` and a table for each claim under its full id. `paper.toml` has shared texts.
Strings are Markdown with LaTeX.
"""

import functools
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

import pydantic

from moe_theory.core.errors import DeclarationError, shortened, unknown_name
from moe_theory.core.papers import find_spec
from moe_theory.verification.verdict import Proof, Role, Statement

T = TypeVar("T", bound="TextTable")


class TextTable(pydantic.BaseModel):
    """A table in a text file. Unknown entries are errors."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, str_strip_whitespace=True)


class ClaimTexts(TextTable):
    claim: str  # the claim in one sentence
    note: str = ""
    formula: str = ""  # by default that of the statement, or of the correction if the role is `corrected`
    where: str = ""  # by default the statement's


class Deciding(TextTable):
    """Entries that decide a statement's status, which are files in the folder and three texts."""

    proof: str = ""  # file in `proofs`: the statement holds or is vacuous
    disproof: str = ""  # file in `proofs`: an example violates the printed sentence
    derivation: str = ""  # file in `proofs`: the correction holds
    counterexample: str = ""  # file in `counterexamples`
    condition: str = ""  # one or two inequalities under which it holds, if it is false as printed
    untestable: str = ""  # why computation cannot decide it
    undecided: str = ""  # why our claims do not decide it, and what would decide it


class StatementTexts(TextTable):
    where: str  # such as "Lemma 8, Eq. (32)"
    claim: str
    like: str = ""  # id of a statement in the file whose texts are the default
    formula: str = ""
    paper: str = ""  # the statement's paper, if another paper's folder tests it
    hypotheses: list[str] = []  # ids
    why: str = ""
    example: str = ""
    correction: str = ""
    correction_formula: str = ""
    note: str = ""
    paper_numbers: list[float] = []  # numbers in these texts that are the paper's, or follow from other numbers in them
    decides: Deciding = Deciding()
    claims: dict[str, ClaimTexts] = {}


SHARED = ("formula", "why", "example", "correction", "correction_formula", "note")  # texts that `like` takes over


class PaperTexts(TextTable):
    order: list[str] = []  # modules with statements, in the order of reports
    all: list[str] = []  # ids of the hypotheses that every statement has
    hypotheses: dict[str, str] = {}  # sentences by id
    premises: dict[str, list[str]] = {}  # ids of statements that a statement's proof uses, first the main one
    assumes: dict[str, list[str] | str] = {}  # hypotheses of each file in `proofs`, or why it needs none
    conflicts: list[dict[Literal["one", "other"], list[str]]] = []  # by side, ids of statements that cannot all be true


def statement_texts(module: str, id: str) -> StatementTexts:
    """Return the texts of a module's statement. Raises: DeclarationError, naming file and key."""
    file = _file_of(module)
    if file is None:
        raise DeclarationError(
            f"statement {id}: module={module} is not a file, so it has no text file next to it. Give claim=... instead."
        )
    path = file.with_name("statements.toml") if file.stem == "__init__" else file.with_suffix(".toml")
    if not path.is_file():
        raise DeclarationError(f"the file of texts {path} is missing. Write it, or pass claim=... to `statement`.")
    tables = _parse_tables(path)
    if id not in tables:
        raise DeclarationError(f"{path}: {unknown_name('statement', id, tables)} Add a table [{id}].")
    return tables[id]


def given_texts(id: str, texts: Mapping[str, Any]) -> StatementTexts:
    decides = {name: text for name, text in texts.items() if name in Deciding.model_fields}
    words = {name: text for name, text in texts.items() if name not in decides}
    return _validate(StatementTexts, {"where": "", **words, "decides": decides}, f"statement {id}")


def paper_texts(module: str) -> PaperTexts:
    """Return the texts of `paper.toml` in a module's folder, if it exists. Raises: DeclarationError."""
    file = _file_of(module)
    if file is None:
        return PaperTexts()
    return _shared(file.with_name("paper.toml"))


def sentence_of(paper: PaperTexts, module: str, hypothesis: str) -> str:
    """Return the sentence of a hypothesis in `paper.toml`. Raises: DeclarationError if it is missing."""
    sentences = paper.hypotheses
    if hypothesis not in sentences:
        raise DeclarationError(f"paper.toml next to {module}: {unknown_name('hypothesis', hypothesis, sentences)}")
    return sentences[hypothesis]


def plain_statement(id: str, paper: str, module: str, texts: StatementTexts, hypotheses: Sequence[str]) -> Statement:
    """Return a module's statement with its texts, but without claims and free parameters."""
    folder = folder_of(module)
    decides = texts.decides
    return Statement(
        id=id,
        paper=paper,
        where=texts.where,
        says=texts.claim,
        formula=_in_one_line(texts.formula),
        hypotheses=list(hypotheses),
        why=texts.why,
        instance=texts.example,
        corrected=texts.correction,
        corrected_formula=_in_one_line(texts.correction_formula),
        untestable=decides.untestable,
        undecided=decides.undecided,
        note=texts.note,
        witness=f"{folder}:counterexamples/{decides.counterexample}" if decides.counterexample else "",
        disproof=_proof(folder, decides.disproof),
        proof=_proof(folder, decides.proof),
        derivation=_proof(folder, decides.derivation),
        amendment=decides.condition,
    )


def claim_words(texts: ClaimTexts, statement: Statement, judged_under: str, role: str) -> dict[str, str]:
    """Return `where`, `statement` and `formula` of a `Claim` with a role for a statement."""
    place = statement.where if statement.paper == judged_under else f"{statement.paper}, {statement.where}"
    formula = statement.formula
    if role == Role.CORRECTED:
        place = f"replaces {place}"
        formula = statement.corrected_formula
    return {
        "where": texts.where or place,
        "statement": "\n\n".join(filter(None, (texts.claim, texts.note))),
        "formula": _in_one_line(texts.formula) or formula,
    }


def import_statements(package: str) -> None:
    for name in paper_texts(package).order:
        import_module(f"{package}.{name}")


def folder_of(module: str) -> str:
    """Return the package that contains a module or is the module, or "". Nothing is imported."""
    file = _file_of(module)
    is_file_alone = module in sys.modules and not hasattr(sys.modules[module], "__path__")  # run as a single file
    if file is not None and file.stem == "__init__" and not is_file_alone:
        return module
    return module.rpartition(".")[0]


def _file_of(module: str) -> Path | None:
    loaded = sys.modules.get(module)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return None if file is None else Path(file)
    spec = find_spec(module) if module else None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin)


def _in_one_line(formula: str) -> str:
    return " ".join(formula.split())


def _proof(folder: str, file: str) -> Proof | None:
    if file:
        return Proof.of(f"{folder}:proofs/{file}")
    return None


@functools.cache
def _parse_tables(path: Path) -> dict[str, StatementTexts]:
    tables = _parse_toml(path)
    for id, table in tables.items():
        origin = table.get("like", id)
        if origin not in tables:
            raise DeclarationError(f"{path}: {id}.like: {unknown_name('statement', origin, tables)}")
        defaults = {name: text for name, text in tables[origin].items() if name in SHARED}
        tables[id] = defaults | table
    return {id: _validate(StatementTexts, table, path, id) for id, table in tables.items()}


@functools.cache
def _shared(path: Path) -> PaperTexts:
    if not path.is_file():
        return PaperTexts()
    return _validate(PaperTexts, _parse_toml(path), path)


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: not TOML, or not UTF-8
        raise DeclarationError(f"{path}: {error}. Correct the file.") from None


def _validate(kind: type[T], table: Any, path: Path | str, *key: str) -> T:
    try:
        return kind.model_validate(table)
    except pydantic.ValidationError as failure:
        fault = failure.errors()[0]
        place = ".".join(map(str, (*key, *fault["loc"])))
        raise DeclarationError(f"{path}: {place}: {fault['msg']}, not {shortened(fault['input'])}.") from None
