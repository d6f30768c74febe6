"""Statements and claims of the installed papers, read from files without an import of papers or JAX.

A statement has texts in TOML. The paper's `index.json` adds roles, kinds and free parameters, and has a digest of the
paper's Python files. If the index is outdated or the paper is imported, statements come from the modules.
"""

import dataclasses
import fnmatch
import functools
import hashlib
import itertools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moe_theory.core.errors import DeclarationError, unknown_name
from moe_theory.core.notebook import Listing
from moe_theory.core.papers import declaration_of, find_paper, ordered_names, paper_folder, paper_names, paper_package
from moe_theory.runs.files import plain
from moe_theory.verification.records import read_record
from moe_theory.verification.texts import claim_words, paper_texts, plain_statement, sentence_of, statement_texts
from moe_theory.verification.verdict import FreeQuantity, Role, Statement

INDEX = "index.json"  # in the paper's folder
OVERVIEW = "overview"  # stands for a paper's name where the figure shows all papers
OVERVIEW_TITLE = "Theorem over empirics, with statuses"
SCHEMA = "moe-theory/index/1"


class ClaimFacts(NamedTuple):
    """Facts of a claim that a record does not repeat. Names are as in `Claim`."""

    id: str
    paper: str  # the paper whose readings it uses
    where: str
    statement: str  # the claim in one sentence, and further text
    formula: str  # LaTeX
    kind: str
    replaced_by: str | None
    side: str | None
    is_computed: bool


class Catalog(NamedTuple):
    statements: list[Statement]
    claims: Mapping[str, Any]  # `ClaimFacts`, or claims with the same attributes


def statements(pattern: str = "*") -> Listing[Statement]:
    """Return the statements whose names match a pattern, by paper.

    Args:
        pattern: a name such as "continual.lemma-8", a glob over names, a paper's name, or a claim's id. A name may omit
            the paper or words after a hyphen, and may be the paper's own, as in "Lemma 11" or "continual.Lemma 11".
    Raises: UnknownNameError if nothing matches. DeclarationError or DamagedError for an unreadable text or index.

    Examples:
        >>> import moe_theory as mt
        >>> [statement.where for statement in mt.statements("edge.proposition-3")]
        ['Proposition 3, Eq. (18)']
    """
    if pattern in paper_names():
        return Listing(statements_of(pattern))
    head = pattern.partition(".")[0]
    papers = [head] if head in paper_names() else ordered_names()
    candidates = list(itertools.chain.from_iterable(map(statements_of, papers)))
    matches = matching(pattern, candidates)
    if not matches:
        names = [statement.name for statement in candidates]
        raise unknown_name("statement", pattern, [*names, *paper_names()])
    return Listing(matches)


def matching(pattern: str, candidates: Sequence[Statement]) -> list[Statement]:
    """Return the statements that match a pattern, as in `statements`."""
    papers = dict.fromkeys(statement.paper for statement in candidates)
    if pattern in papers:
        return [statement for statement in candidates if statement.paper == pattern]
    matches = _matching_with_paper(pattern, candidates)
    if matches:
        return matches
    for paper in papers:
        matches += _matching_with_paper(f"{paper}.{pattern}", candidates)
    return matches


def own_or_tested_statements(paper: str) -> list[Statement]:
    """Return a paper's statements in order. If it has none, return the statements that its claims test."""
    tested_papers = answers_for(paper)
    if not tested_papers:
        return statements(paper)
    candidates = itertools.chain.from_iterable(map(statements, tested_papers))
    return [statement for statement in candidates if any(id.startswith(f"{paper}.") for id in statement.roles)]


def answers_for(paper: str) -> Sequence[str]:
    """Return the other papers whose statements this paper's claims test."""
    return declaration_of(paper).get("answers_for") or ()


def statements_of(paper: str) -> list[Statement]:
    """Return a paper's statements. Those that other packages declare come last."""
    declaring_papers = [paper, *(name for name in ordered_names() if paper in answers_for(name))]
    declared_statements = itertools.chain.from_iterable(catalog_of(name).statements for name in declaring_papers)
    own_statements = [statement for statement in declared_statements if statement.paper == paper]
    statement_module = sys.modules.get("moe_theory.verification.statement")
    if statement_module is not None:  # otherwise no user's file has declared a statement
        for declaration in statement_module.declared():
            if declaration.paper == paper and not declaration.is_of_a_paper:
                own_statements.append(declaration.plain)
    return own_statements


def catalog_of(paper: str) -> Catalog:
    """Return a paper's declarations, from files if its index is current, and otherwise from modules."""
    module = declaration_of(paper).get("statements") or paper_package(paper)
    if module in sys.modules:
        return _catalog_from_modules(paper)
    return _catalog_from_files(paper) or _catalog_from_modules(paper)


def all_figure_titles() -> dict[str, dict[str, str]]:
    return {name: figure_titles(name) for name in (*paper_names(), OVERVIEW)}


def figure_titles(paper: str) -> dict[str, str]:
    if paper == OVERVIEW:
        return {OVERVIEW: OVERVIEW_TITLE}
    if paper not in paper_names():
        raise unknown_name("paper", paper, [*paper_names(), OVERVIEW])
    index = _index_of(paper)
    if index is not None and "figures" in index:
        return index["figures"]
    return {name: spec.title for name, spec in find_paper(paper).import_figures().items()}


def digest_of(paper: str) -> str:
    folder = paper_folder(paper)
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def index_text(paper: str) -> str | None:
    """Return the text of a paper's index, made from its modules, or None if a statement has texts in Python."""
    declarations = _declared_by(paper)
    if not all(declaration.texts for declaration in declarations):
        return None
    catalog = _catalog_from_modules(paper)
    records = [
        {
            "id": declaration.id,
            "paper": declaration.paper,
            "module": declaration.module,
            "roles": {id: str(role) for id, role in declaration.roles.items()},
            "free": [plain(dataclasses.asdict(quantity)) for quantity in statement.free],
        }
        for declaration, statement in zip(declarations, catalog.statements, strict=True)
    ]
    names = ("kind", "side", "replaced_by", "is_computed")
    claims = {id: {name: getattr(claim, name) for name in names} for id, claim in catalog.claims.items()}
    figures = {name: spec.title for name, spec in find_paper(paper).import_figures().items()}
    head = {"schema": SCHEMA, "digest": digest_of(paper)}
    document = head | {"statements": records, "claims": claims, "figures": figures}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


@functools.cache  # each process reads a paper once, as it would import it once
def _catalog_from_files(paper: str) -> Catalog | None:
    index = _index_of(paper)
    return None if index is None else _parsed_catalog(paper, index)


def _parsed_catalog(paper: str, index: Mapping[str, Any]) -> Catalog:
    statements = []
    claims = {}
    for record in index["statements"]:
        module = record["module"]
        id = record["id"]
        texts = statement_texts(module, id)
        shared = paper_texts(module)
        sentences = [sentence_of(shared, module, name) for name in (*shared.all, *texts.hypotheses)]
        statement = plain_statement(id, record["paper"], module, texts, sentences)
        roles = {claim: Role(role) for claim, role in record["roles"].items()}
        free = [read_record(FreeQuantity, quantity) for quantity in record["free"]]
        statements.append(dataclasses.replace(statement, roles=roles, free=free))
        for claim, words in texts.claims.items():
            if claim not in index["claims"]:
                raise DeclarationError(f"texts of {module}: {unknown_name('claim', claim, index['claims'])}")
            facts = index["claims"][claim]
            claims[claim] = ClaimFacts(claim, paper, **claim_words(words, statement, paper, roles[claim]), **facts)
    for claim in index["claims"]:
        if claim not in claims:
            raise DeclarationError(f"claim {claim} of {paper} has no texts in a TOML file. Add its table.")
    return Catalog(statements, {id: claims[id] for id in index["claims"]})


def _index_of(paper: str) -> dict[str, Any] | None:
    """Return a paper's index, or None if it is missing, damaged or outdated."""
    path = paper_folder(paper) / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_index = isinstance(index, dict) and index.keys() >= {"statements", "claims"}
    if is_index and index.get("schema") == SCHEMA and index.get("digest") == digest_of(paper):
        return index
    return None


def _catalog_from_modules(paper: str) -> Catalog:
    from moe_theory.verification.claim import registered

    declarations = _declared_by(paper)  # imports the claims
    claims = {id: claim for id, claim in registered().items() if id.startswith(f"{paper}.")}
    return Catalog([declaration.plain for declaration in declarations], claims)


def _declared_by(paper: str) -> list[Any]:
    from moe_theory.verification.statement import declared  # imports JAX, like the paper

    find_paper(paper).import_claims()
    in_papers = [declaration for declaration in declared() if declaration.is_of_a_paper]
    return [declaration for declaration in in_papers if declaration.judged_under == paper]


def _matching_with_paper(pattern: str, candidates: Sequence[Statement]) -> list[Statement]:
    matches = []
    for statement in candidates:
        if fnmatch.fnmatchcase(statement.name, pattern) or pattern in statement.roles:
            matches.append(statement)
    if not matches:  # all cases of one number
        matches = [statement for statement in candidates if statement.name.startswith(f"{pattern}-")]
    if matches:
        return matches
    for statement in candidates:
        # The pattern begins a part of `where`. For example, "lemma 8" and "Eq. (32)" match "Lemma 8, Eq. (32)".
        printed = re.escape(pattern.removeprefix(f"{statement.paper}."))
        if re.search(rf"(?:^|, )(?=\w){printed}(?!\w)", statement.where, re.IGNORECASE):
            matches.append(statement)
    return matches
