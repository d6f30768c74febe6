"""Papers are asked for, never listed: catches a paper that is named outside its folder, and one of another
distribution that does not get everything that the package's own have."""

import ast
import dataclasses
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import moe_theory
from moe_theory.core.errors import InvalidParamsError, InvalidRunError
from moe_theory.core.papers import all_papers, find_paper, paper_names

ROOT = Path(moe_theory.__file__).parent
# Files outside the papers' folders that know one by name: commands, tables and pictures of one paper, defaults and
# examples, and a word that is also a paper's name.
KNOWN = {
    "cli/__init__.py",
    "cli/bound.py",
    "cli/deep.py",
    "cli/figures.py",
    "cli/merge.py",
    "report/bounds.py",
    "report/citations.py",
    "report/deep.py",
    "report/merging.py",
    "report/plots.py",
    "tour/script.py",
    "verify/selftest.py",
}


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
    assert set(named) == KNOWN, named


def test_the_package_s_own_papers_are_complete():
    papers = all_papers()
    assert list(papers)[-1] == "deep"  # whose claims are about the others' statements
    for paper in papers.values():
        assert set(paper.default_readings) <= set(paper.readings)
        assert paper.import_figures()
        assert bool(paper.statements) != bool(paper.answers_for)
        assert set(paper.answers_for) <= set(papers)


@pytest.mark.parametrize("paper", paper_names())
def test_readings_are_valid_choices_with_overrides_on_top(paper):
    """Would catch a reading that chooses nothing or the default, two that are one, and a misspelt parameter ignored."""
    readings = find_paper(paper).readings
    assert len({repr(reading.params()) for reading in readings.values()}) == len(readings)
    for name, reading in readings.items():
        assert reading.name == name
        assert reading.summary
        chosen, defaults = reading.params()._asdict(), reading.defaults._asdict()
        assert {field for field in defaults if chosen[field] != defaults[field]} == set(reading.choices)
        overridden = reading.params(**dict.fromkeys(reading.choices, 0.25), num_experts=2)
        assert overridden.num_experts == 2
        assert all(getattr(overridden, field) == 0.25 for field in reading.choices)
        for field in defaults:
            misspelt = field.replace("_", "", 1) if "_" in field else f"{field}x"
            with pytest.raises(InvalidParamsError, match=rf"unknown parameter '{misspelt}'\. Did you mean '{field}'\?"):
                reading.params(**{misspelt: 1})


@pytest.mark.parametrize("paper", paper_names())
def test_figures_are_described_and_refuse_what_cannot_be_run(paper):
    own = find_paper(paper)
    reading = own.readings[own.reading_names("quick")[0]]
    for name, figure in own.import_figures().items():
        assert figure.name == name
        assert all(dataclasses.asdict(figure).values())
        for replicates, num_rounds in ((0, 10), (2, 0)):
            with pytest.raises(InvalidRunError):
                figure.compute(reading, replicates, 0, num_rounds=num_rounds)


def test_choosing_a_claim_imports_no_other_paper():
    code = (
        "import sys; from moe_theory import verify;"
        "verify.select_claims(['continual.lemma-4', 'continual.theorem-*']);"
        "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('moe_theory.')}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(out.split()) & set(paper_names()) == {"continual"}


WALKS = {
    "walks/__init__.py": """
        from moe_theory.core.papers import Paper
        from moe_theory.core.readings import Reading
        from walks.system import Params

        PAPER = Paper(
            name="walks", package=__name__, title="random walks",
            citation='@misc{walks,\\n  title = {Random Walks},\\n  author = {Pearson, Karl},\\n  year = {1905},\\n}',
            readings={"fair": Reading("fair", "fair coins", Params()),
                      "loaded": Reading("loaded", "loaded coins", Params(), {"drift": 0.5})},
            default_readings=("fair",), claims="walks.claims", statements="statements.toml",
            figures="walks.figures:FIGURES", systems={"walk": "walks.system:SWEEPABLE"},
        )
        """,
    "walks/system.py": """
        import dataclasses, functools
        from pathlib import Path
        from typing import Any, NamedTuple
        import jax, jax.numpy as jnp
        from moe_theory.core.readings import Reading
        from moe_theory.core.system import System
        from moe_theory.sweep.systems import Observable, Sweepable, observables

        class Params(NamedTuple):
            drift: Any = 0.0
            num_experts: Any = 1

        @dataclasses.dataclass(frozen=True)
        class Dims:
            max_experts: int = 1

        class State(NamedTuple):
            place: Any
            round: Any

        def init(key, params): return State(jnp.zeros(()), jnp.int32(0))
        def step(key, state, params):
            state = State(state.place + params.drift + jax.random.normal(key), state.round + 1)
            return state, state

        @functools.cache
        def build(dims): return System(init, step)

        SWEEPABLE = Sweepable(
            name="walk", about="a random walk", dims=Dims, default_dims={},
            readings={"fair": Reading("fair", "fair coins", Params())}, choices={}, build=build,
            check=lambda dims, params: None,
            observables=observables(Observable("place", "x_t", lambda state, info: state.place)),
            default_observables=("place",), sources=("core", str(Path(__file__).parent)),
        )
        """,
    "walks/claims.py": """
        from moe_theory import Experiment, claim
        from walks.system import Dims, build

        WALK = Experiment(name="walk", dims=Dims(), system=build(Dims()), cells={"walk": {}}, num_rounds=4,
                          record_every=4, observe=lambda state, info: state.place, replicates=256)

        @claim("walks.lemma-1", paper="walks", where="Lemma 1", kind="upper_bound")
        class Bounded:
            "A walk of 4 fair steps ends below 1 in the mean."
            experiment, formula = WALK, "E[x_4] < 1"
            observe = lambda runs: runs["walk"].records[-1]
            predict = lambda runs: 1.0
        """,
    "walks/statements.toml": """
        [[statement]]
        id = "lemma-1"
        source = "Lemma 1"
        kind = "upper_bound"
        paraphrase = "A walk stays near."
        claims = ["walks.lemma-1"]
        """,
    "walks/figures.py": """
        import xarray as xr
        from moe_theory.verify.figures import FigureSpec

        def compute(reading, replicates, seed, progress=None, *, num_rounds=None):
            return xr.Dataset({"place": ("round", [1.0, 2.0])}, attrs={"seed": seed, "replicates": replicates,
                                                                       "reading": reading.name})
        def draw(data, figure): figure.subplots().plot(data.place)

        FIGURES = {"path": FigureSpec("path", "A path", "A walk.", 1, (3.0, 2.0), compute, draw,
                                      lambda data: "A path.", claims=("walks.*",))}
        """,
    "walks-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: walks\nVersion: 1.0\n",
    "walks-1.0.dist-info/entry_points.txt": "[moe_theory.papers]\nwalks = walks:PAPER\n",
}
SWEEP = """
    system = "walk"
    rounds = 4
    replicates = 64
    axes = { drift = [0.0, 0.5] }
    """


COMMANDS = [
    "claims walks --json",
    "verify walks --json --out run",
    "report run --out report",
    "cite run --json",
    "sweep sweep.toml --out swept",
    "cite swept",
    "figures walks path --out figures",
    "cite figures/walks/path.svg",
]
SCRIPT = """
import contextlib, io, json, sys
import moe_theory as mt
from moe_theory.cli import main
from moe_theory.core.papers import all_papers
from moe_theory.verify.statement import statements

assert mt.walks.PAPER is list(all_papers().values())[-1]
assert statements("walks")[0].id == "lemma-1"
said = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main(command.split())
    said[command] = text.getvalue()
print(json.dumps(said))
"""


def test_a_paper_of_another_distribution_has_everything(tmp_path):
    """A folder on the path with a module and a distribution's entry points is all that there is of it."""
    for name, text in WALKS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    (tmp_path / "sweep.toml").write_text(textwrap.dedent(SWEEP))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *COMMANDS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    claims, verified, _, cited, _, swept, _, drawn = json.loads(done.stdout).values()
    assert [claim["id"] for claim in json.loads(claims)] == ["walks.lemma-1"]
    (verdict,) = json.loads(verified)["verdicts"]
    assert (verdict["claim"], verdict["reading"], verdict["status"]) == ("walks.lemma-1", "fair", "SUPPORTED")
    for folder in ("run", "report"):
        assert "walks.lemma-1" in (tmp_path / folder / "report.html").read_text()
    (paper,) = json.loads(cited)["papers"]
    assert (paper["key"], paper["title"]) == ("walks", "Pearson (1905): Random Walks")
    assert "walks.lemma-1" in swept
    assert "walks.lemma-1" in drawn
    assert (tmp_path / "figures" / "walks" / "path.csv").is_file()
