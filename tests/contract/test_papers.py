"""Papers are asked for, never listed: catches a paper that is named outside its folder, and one of another
distribution that does not get everything that the package's own have."""

import ast
import contextlib
import dataclasses
import importlib
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import click
import pytest

import moe_theory
from moe_theory import cli
from moe_theory.cli import main
from moe_theory.core import papers
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.core.papers import all_papers, declared_commands, find_paper, paper_names

from .strangers import install, printed

ROOT = Path(moe_theory.__file__).parent


def names_in(path: Path) -> set[str]:
    """Papers that a module imports, or has as a word of its own in a text that is no docstring."""
    tree, papers = ast.parse(path.read_text(encoding="utf-8")), set(paper_names())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("moe_theory.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "moe_theory":
            found |= {*f"{node.module}.".split(".")[1:2], *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(".")[0])
    return found & papers


def test_no_module_outside_a_paper_s_folder_names_it():
    own = {Path(find_paper(name).package.replace(".", "/")).name for name in paper_names()}
    named = {
        path.relative_to(ROOT).as_posix(): found
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in own and (found := names_in(path))
    }
    assert not named


def test_the_package_s_own_papers_are_complete():
    papers = all_papers()
    assert list(papers)[-1] == "deep"  # whose claims are about the others' statements
    for paper in papers.values():
        assert set(paper.default_readings) <= set(paper.readings)
        assert paper.import_figures() or not paper.citation
        assert paper.statements
        assert set(paper.answers_for) <= set(papers)


def test_a_place_that_cannot_be_imported_is_told():
    """Would catch a traceback from the inside of the import system, for a user's own paper with a slip of the pen."""
    for place in ("nothing:x", "moe_theory:nothing", "moe_theory.continual:system", "a b", ":"):
        paper = dataclasses.replace(find_paper("continual"), figures=place, overview=place, systems={"mine": place})
        calls = {"figures=": paper.import_figures}
        if place != "moe_theory.continual:system":
            calls |= {
                "overview=": paper.import_overview,
                "systems['mine']=": lambda paper=paper: paper.import_system("mine"),
            }
        for field, call in calls.items():
            with pytest.raises(DeclarationError, match=f"'continual': {re.escape(field)}"):
                call()


@pytest.mark.parametrize(
    "changes",
    [
        {"most_verdicts": 0},  # a share that is infinite or negative
    ],
    ids=str,
)
def test_paper_refused(changes):
    with pytest.raises(DeclarationError):
        dataclasses.replace(find_paper("continual"), **changes)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        # An error without a place, and one whose place is in what imports papers.
        ("import json\n\nPAPER = json.nothing\n", r"\(slipped\.py, line 3: PAPER = json\.nothing\)\. Fix"),
    ],
    ids=["a slip"],
)
def test_loaded_refuses(source, message, on_path, tmp_path):
    (tmp_path / "slipped.py").write_text(source)
    sys.modules.pop("slipped", None)
    with pytest.raises(DeclarationError, match=message):
        papers.loaded("slipped", metadata.EntryPoint("slipped", "slipped:PAPER", papers.GROUP))


@pytest.mark.parametrize("paper", paper_names())
def test_readings_are_valid_choices_with_overrides_on_top(paper):
    """Would catch a reading that chooses nothing or the default, two that are one, and a misspelt parameter ignored."""
    readings, package = find_paper(paper).readings, importlib.import_module(find_paper(paper).package)
    assert len({repr(reading.params()) for reading in readings.values()}) == len(readings)
    for place, (name, reading) in enumerate(readings.items()):
        assert reading.name == name
        assert package.reading(name) is reading
        with pytest.raises(UnknownNameError) as caught:
            package.reading(f"{name}s")
        assert (caught.value.argument, f"Did you mean '{name}'?" in str(caught.value)) == ("reading", True)
        assert reading.summary
        chosen, defaults = reading.params()._asdict(), reading.defaults._asdict()
        assert {field for field in defaults if chosen[field] != defaults[field]} == set(reading.choices)
        overridden = reading.params(**dict.fromkeys(reading.choices, 0.25), num_experts=2)
        assert overridden.num_experts == 2
        assert all(getattr(overridden, field) == 0.25 for field in reading.choices)
        for field in defaults if place == 0 else ():
            misspelt = field.replace("_", "", 1) if "_" in field else f"{field}x"
            for create in (reading.params, type(reading.defaults)):
                with pytest.raises(InvalidValueError) as caught:
                    create(**{misspelt: 1})
                assert f"Did you mean '{field}'?" in str(caught.value)


@pytest.mark.parametrize("paper", paper_names())
def test_figures_are_described_and_refuse_what_cannot_be_run(paper):
    own = find_paper(paper)
    reading = own.readings[own.reading_names("quick")[0]]
    for name, figure in own.import_figures().items():
        assert figure.name == name
        assert figure.paper == paper
        assert all((figure.title, figure.summary, figure.text, figure.claims))
        for replicates, rounds in ((0, 10), (2, 0)):
            with pytest.raises(InvalidValueError):
                figure.compute(figure.setup(reading, replicates, 0, rounds=rounds))


PAGE = (ROOT.parent / "docs" / "pages" / "extend.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r'```\w+ title="(.+?)"\n(.*?)```', PAGE, re.DOTALL)  # with the names they have on the page
COMMANDS = [
    "statements queues --claims --json",
    "verify queues --json --out run",
    "report run --out report",
    "report run --cite --json",
    "sweep sweep.toml --out swept",
    "figures queues peaks --out figures",
    "record run",
    "why queues.lemma-2 --all",
    "statements queues",
]
SCRIPT = """
import contextlib, importlib, io, json, sys
import moe_theory as mt
from moe_theory.cli import main
from moe_theory.core.papers import all_papers

assert mt.queues.PAPER is all_papers()["queues"]
said = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main(command.split())
    said[command] = text.getvalue()
for name, test in vars(importlib.import_module("test_queues")).items():
    if name.startswith("test_"):
        test()
print(json.dumps(said))
"""


@pytest.mark.thorough
def test_a_new_paper_has_everything(tmp_path):
    """A package from `moe-theory new paper`, as pip would install it, with the page's false statement and its disproof:
    modules, entry points, proofs, a record, and a test that a statement which fails does not fail.
    """
    with contextlib.suppress(SystemExit):
        main(["new", "paper", "queues", "--out", str(tmp_path)])
    (tmp_path / "queues" / "proofs").mkdir()
    for name, text in BLOCKS:
        if name.startswith("queues/"):
            with (tmp_path / name).open("a") as file:
                file.write(text)
    install(tmp_path, tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"])
    path, cache = [tmp_path, ROOT.parent / "docs"], str(tmp_path / "cache")
    said = printed(["-c", SCRIPT, *COMMANDS], tmp_path, path, XDG_CACHE_HOME=cache)
    claims, verified, _, cited, _, _, recorded, why, stated = json.loads(said).values()
    listed, *others = json.loads(claims)
    ids = [each["id"] for each in (listed, *others)]
    assert ids == ["queues.theorem-1.peak", "queues.theorem-1.gain", "queues.lemma-2.apart"]
    judged = {(each["claim"], each["reading"]): each["status"] for each in json.loads(verified)["verdicts"]}
    assert judged == {
        ("queues.theorem-1.peak", "best-of-2"): "SUPPORTED",
        ("queues.theorem-1.peak", "best-of-1"): "REFUTED",
        ("queues.theorem-1.gain", "best-of-2"): "SUPPORTED",
        ("queues.theorem-1.gain", "best-of-1"): "INCONCLUSIVE",  # the two are one
        ("queues.lemma-2.apart", "best-of-2"): "REFUTED",
        ("queues.lemma-2.apart", "best-of-1"): "REFUTED",
    }
    for folder in ("run", "report"):
        assert "queues.theorem-1" in (tmp_path / folder / "report.html").read_text()
    assert json.loads(cited)["papers"] == ["queues"]
    assert "{azar," in json.loads(cited)["bibtex"]
    assert (tmp_path / "figures" / "queues" / "peaks.csv").is_file()
    assert recorded.startswith(f"{tmp_path / 'queues' / 'recorded.json'}: 6 verdicts\n")
    assert "\nFALSE." in why
    assert "draw an expert twice. Objection: the two draws are meant to differ." in " ".join(why.split())
    lines = [line.split(maxsplit=2) for line in stated.splitlines()[3:]]
    assert lines[0][1:] == [
        "queues.theorem-1",
        "TRUE / UNDECIDED: After M tasks at M experts, none has more than log2(log(M)) + O(1) tasks.",
    ]
    assert lines[1][:2] == ["FALSE", "queues.lemma-2"]


OUTSIDE = """
import contextlib, io, json, sys
from moe_theory.cli import main

said = []
for words in (["--help"], ["loads", "--servers", "2"], ["loads", "--json", "--out", "out"], ["laods"], ["broken"]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        with contextlib.suppress(SystemExit):
            main(words)
    said.append([out.getvalue(), err.getvalue(), not {"queues", "jax"}.isdisjoint(sys.modules)])
print(json.dumps(said))
"""
DECLARED = """
import moe_theory as mt
from moe_theory import continual

PAPER = mt.Paper("queues", __name__, "a paper", continual.READINGS, rank=7, commands={commands})
"""


@pytest.fixture
def outside(tmp_path):
    """Runs `OUTSIDE` where a paper is installed whose commands are declared so."""
    points = {"moe_theory.papers": {"queues": "queues:PAPER"}}
    install(tmp_path, {"name": "queues", "version": "1", "entry-points": points})
    (page,) = (text for name, text in BLOCKS if name == "queues_loads.py")
    (tmp_path / "queues_loads.py").write_text(page)

    def run(commands: str) -> list:
        (tmp_path / "queues.py").write_text(DECLARED.format(commands=commands))
        return json.loads(printed(["-c", OUTSIDE], tmp_path, [tmp_path], COLUMNS="80"))

    return run


def test_a_paper_brings_a_command(outside, tmp_path):
    """Would catch help that imports a stranger's paper, or does not show its commands, and a traceback of its own."""
    declared = '{"loads": "queues_loads:loads", "broken": "queues_loads:Document"}'
    page, shown, document, misspelt, broken = outside(declared)
    assert re.search("^  loads       Loads that are known in closed form$", page[0], re.MULTILINE)
    assert page[0].index("\n  deep ") < page[0].index("\n  loads ")
    assert not any(imported for *_, imported in (page, shown, document, misspelt, broken))
    assert [line.split() for line in shown[0].splitlines() if re.match(" *server [0-9]", line)] == [
        ["server", "0", "1.00"],
        ["server", "1", "0.50"],
    ]
    assert json.loads(document[0]) == {"schema": "queues/loads/1", "loads": [1.0, 0.5, 1 / 3]}
    assert document[1] == "wrote out/loads.csv\n"
    assert (tmp_path / "out" / "loads.csv").read_text().splitlines()[:2] == ["server,load", "server 0,1.0"]
    assert "'laods'" in misspelt[1]
    assert "'loads'" in misspelt[1]
    assert broken[1] == "moe-theory: paper 'queues': the command 'broken' is of type type. Make it a function.\n"
    *_, broken = outside('{"broken": "queues_loads:table"}')
    assert "columns: collections.abc.Sequence[str] has a type that options cannot have" in broken[1]
    *_, broken = outside('{"broken": "queues_loads:none"}')
    assert re.fullmatch(r"moe-theory: paper 'queues': commands\['broken'\]=.* cannot be imported .*\n", broken[1])


def test_a_command_s_name_is_taken_once(outside):
    for name, other in (("why", "moe-theory itself has a command"), ("bound", "papers 'generalization' and 'queues'")):
        (_, said, _), *_ = outside(f'{{"{name}": "queues_loads:loads"}}')
        assert re.fullmatch(f"moe-theory: .*{other}.* Rename (the paper's|one).\n", said)


@pytest.mark.parametrize("paper", paper_names())
def test_commands_are_declared_as_they_are(paper):
    """Would catch commands that are not written out, which help does not show."""
    declared = {name: place for name, (of, place) in declared_commands().items() if of == paper}
    assert declared == find_paper(paper).commands
    for name in declared:
        assert isinstance(cli.command(name), click.Command)
