"""The examples of the commands' help and of README's table, run as a newcomer would, one after another in one folder.

Catches a command without an example, and an example that no longer runs, prints nothing or shows something else. That
each parses is tested in `test_printed.py`, and each command on less in its own file. Replaced is what takes minutes
whatever is asked: training of the small transformer, data sets' sizes, and the processes that measure.
"""

import contextlib
import dataclasses
import inspect
import io
import json
import re
import shlex
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from moe_theory import cli
from moe_theory.continual.experiments import FIGURE_2_DIMS
from moe_theory.core.random import root_key
from moe_theory.deep import presets
from moe_theory.deep.params import Dims
from moe_theory.merging import policies, reading
from moe_theory.merging.experiments import TESTBEDS
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import Recipe
from moe_theory.report import cards
from moe_theory.verification.catalog import statements
from moe_theory.verification.explore import plan_search
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.request import check_request
from moe_theory.verification.settings import parsed

ELSEWHERE = ("record",)  # commands whose examples have tests of their own
LATER = ("sweep show", "report", "statements")  # commands that read what others wrote
PRESET, TINY = "continual-mnist-small", Dims(7, 3, 4, num_samples=10, num_tests=8, num_epochs=1, batch_size=10)


# What the help of --json names of the document, by the command's name or, where there are several, its example.
DOCUMENTS = {
    "verify": {"schema", "summary", "command", "seed", "error", "versions", "verdicts"},
    "challenge": {
        "schema",
        "statement",
        "sought",
        "free",
        "flips",
        "recorded",
        "nearest",
        "settings",
        "shapes",
        "command",
    },
    "explore": {"schema", "claim", "axes", "summary", "points"},
    "moe-theory sweep grid.toml --dry-run": {"cells", "shape", "replicates", "chunks"},
    "moe-theory sweep grid.toml": {"schema", "specification", "digest", "coverage", "round", "cells"},
    "sweep show": {"schema", "specification", "digest", "coverage", "round", "cells"},
    "statements": {"id", "paper", "where", "says", "formula", "why", "corrected", "roles", "status"},
    "why": {"id", "status", "status_by_reading", "found"},
    "figures": set(),
    "new": set(),
    "moe-theory report runs/verify": {"schema", "summary", "command", "seed", "error", "versions", "verdicts"},
    "moe-theory report runs/verify --cite": {"schema", "papers", "version", "bibtex"},
    "bound": {"schema", "setting", "known", "notes", "bounds"},
    "moe-theory merge --slots 20": {"policy", "mean_reward", "equal_weights", "slots", "files"},
    "moe-theory deep --data photographs --list": {"schema", "title", "source", "notes", "shape", "classes", "digest"},
    "moe-theory deep continual-mnist-small --replicates 4": {"schema", "preset", "where", "cells", "verdicts", "files"},
}


DEAR = {"figures", "challenge", "explore", "merge", "bound"}


def examples_of(name: str) -> list[str]:
    """The commands that a command's help gives as examples."""
    lines = (cli.command(name).epilog or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  moe-theory")]


def document_of(name: str) -> str | None:
    """The help on a command's --json, if it takes it."""
    return next((option.help for option in cli.command(name).params if "--json" in option.opts), None)


def command_of(name: str) -> str:
    """The command of a key of `DOCUMENTS`."""
    return name.split()[1] if name.startswith("moe-theory") else name


@pytest.fixture(scope="module")
def session_folder(tmp_path_factory):
    """A folder where all examples have run, what each printed, and what it printed with --json."""
    folder, printed, documents = tmp_path_factory.mktemp("examples"), {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("train/cat/0.png", "train/dog/0.png", "test/cat/0.png", "test/dog/0.png"):
            Path("photographs", name).parent.mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(Path("photographs", name))
        save_file({"experts": np.eye(4, dtype=np.float32)}, "model.safetensors")
        patch.setattr(training, "trained", _untrained)
        patch.setitem(presets.PRESETS, PRESET, dataclasses.replace(presets.preset(PRESET), dims=TINY))
        for name in sorted({*cli.commands()} - {*ELSEWHERE}, key=lambda name: (name in LATER, name)):
            for example in examples_of(name):
                if {name, example} & DOCUMENTS.keys():
                    documents[example] = _run(f"{example} --json")
                # Tables of the dear ones are looked at in their own tests.
                printed[example] = documents[example] if name in DEAR else _run(example)
    return folder, printed, documents


def _run(example: str) -> str:
    """Output of a command, which goes into a file if it says so."""
    words, _, place = example.partition(" > ")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        cli.main(shlex.split(words)[1:])
    if place:
        Path(place).write_text(said.getvalue())
    return said.getvalue()


def _untrained(setting: Recipe, *_):
    small = dataclasses.replace(setting, num_experts=2, width=16, hidden=8, num_layers=1, num_heads=2)
    model = training.initial(root_key(0), small)
    copies = [jax.tree.map(lambda part: jnp.concatenate([part, -part]), layer.experts) for layer in model.layers]
    return transformer.replace_experts(model, copies)


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_has_an_example(name):
    examples = examples_of(name)
    assert examples
    assert all(example.startswith(f"moe-theory {name.split()[0]}") for example in examples)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in cli.commands() if name not in ELSEWHERE])
def test_the_example_runs(name, session_folder):
    _, printed, _ = session_folder
    assert all(printed[example].strip() for example in examples_of(name))


@pytest.mark.thorough
def test_they_leave_what_their_help_says(session_folder):
    folder, _, _ = session_folder
    for made in (
        "runs/verify/verdicts.json",
        "runs/verify/report.json",
        "runs/explore/continual.lemma-4.svg",
        "runs/grid/results.nc",
        "runs/grid/look.svg",
        "figures/continual/figure-8.svg",
        "runs/merge/slots.csv",
        "runs/deep/continual-mnist-small/summary.json",
    ):
        assert (folder / made).is_file(), made


@pytest.mark.thorough
@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_is_one_document_of_the_shape_that_the_help_says(name, session_folder):
    _, _, documents = session_folder
    command = command_of(name)
    for example in examples_of(command):
        if name in (command, example):
            document = json.loads(documents[example])
            rows = document if isinstance(document, list) else [document]
            assert rows
            assert all(DOCUMENTS[name] <= set(row) for row in rows)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_help_names_what_the_document_has(name):
    command = command_of(name)
    words = document_of(command)
    assert words is not None
    assert words.startswith("Print JSON: ")
    said_elsewhere = {"sweep": "sweep show", "report": "verify"}.get(command)
    if said_elsewhere is None:
        assert all(key in words for key in DOCUMENTS[name])


def test_every_command_that_prints_a_table_has_a_document():
    without = {name for name in cli.commands() if document_of(name) is None}
    assert not without
    assert {*map(command_of, DOCUMENTS)} == {*cli.commands()} - {*ELSEWHERE}


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("## What you can do")[2].partition("\n## ")[0]
ROWS = {
    command: sentence.strip()
    for sentence, row in re.findall(r"^\| (.+) \| (`moe-theory .+) \|$", TABLE, flags=re.MULTILINE)
    for command in re.findall(r"`moe-theory ([^`]+)`", row)
}


def named(*words: str) -> list[str]:
    """The words of the row whose command begins with these."""
    (command,) = [each for each in ROWS if tuple(each.split()[: len(words)]) == words]
    return shlex.split(command)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_every_row_is_looked_at():
    looked_at = {"why", "report", "verify", "challenge", "explore", "sweep", "new", "figures", "bound", "merge"}
    assert {command.split()[0] for command in ROWS} == looked_at | {"deep"}  # of images, with their own tests


def test_why_says_the_status(ran):
    words = named("why")
    (known,) = judged_statements(words[1])
    assert f"{cards.label(known)}." in ran(*words).out


def test_a_report_is_of_a_whole_paper_and_one_file(ran, tmp_path):
    words = named("report", "--paper")
    ran(*words, "--out", tmp_path)
    page, document = ((tmp_path / f"report.{suffix}").read_text() for suffix in ("html", "json"))
    claims = {each["claim"] for each in json.loads(document)["verdicts"]}
    assert all(f"{option(words, '--paper')}." in claim and claim in page for claim in claims)
    assert not re.search(r'(?:src|href)="(?!data:|#|https?://)[^"]+\.(?:css|js|svg|png)"', page)


def test_settings_of_one_s_own_are_those_of_the_verdict():
    words = named("verify")
    (study,) = check_request(words[1], "unit-signal", settings=parsed([option(words, "--set")])).studies
    (verdict,) = study.blanks
    assert verdict.claim == words[1]
    assert option(words, "--set") in verdict.reading


def test_a_map_is_over_the_axis(ran):
    words = named("explore")
    name, _, ends = option(words, "--over").partition("=")
    (axis,) = plan_search(words[1], over=[option(words, "--over")]).axes
    assert axis.name == name
    assert [f"{end:g}" for end in (axis.values[0], axis.values[-1])] == ends.split("..")


def test_what_is_searched_leaves_something_free():
    (known,) = statements(named("challenge")[1])
    assert known.free


def test_a_paper_of_one_s_own_is_a_package(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = named("new")
    ran(*words)
    assert {words[2], "pyproject.toml"} <= {path.name for path in (tmp_path / words[2]).iterdir()}
    assert (tmp_path / words[2] / words[2] / "__init__.py").is_file()


def test_sizes_are_one_s_own_and_the_paper_prints_something_for_each():
    """Catches M = N, for which the paper prints nothing."""
    words = named("figures")
    assert {"--experts", "--width", "--format"} <= set(words)
    assert str(FIGURE_2_DIMS.num_tasks) not in option(words, "--experts").split(",")


def test_the_bound_says_something(ran):
    assert "informs" in ran(*named("bound")).out


def test_merging_has_the_settings_of_what_readme_says_of_it():
    """README says that Tanbr is ahead of NUCB, by claims on the testbed: the command must not show other learners."""
    assert "Tanbr is ahead of NUCB" in README
    from moe_theory.merging.command import merge

    default = inspect.signature(merge).parameters["reading"].default
    cells = {cell.name: cell.params for cell in TESTBEDS["dynamic"].cells_under(reading("random-split"))}
    for policy in (policies.TANBR, policies.NUCB):
        own = reading(default).params(**policies.TUNED[policy])
        fixed = {"slot_size", "mix_drift", "num_experts", "max_active"}  # of the stream
        assert {name for name in own._fields if getattr(own, name) != getattr(cells[policy], name)} <= fixed


@pytest.mark.thorough
def test_merging_shows_what_readme_says_of_it(ran, tmp_path):
    document = json.loads(ran(*named("merge"), "--policy", "all", "--out", tmp_path, "--json").out)
    for window in ("mean_reward", "late_reward"):
        earned = {row["policy"]: row[window] for row in document["policies"]}
        assert earned["tanbr"] > earned["nucb"] > max(earned["average"], earned["uniform"], earned["best-expert"])
