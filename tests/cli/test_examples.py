"""The examples of the commands' help, run as a newcomer would, one after another in one folder.

Catches a command without an example, and an example that no longer runs, prints nothing or shows something else. That
each parses is tested in `test_printed.py`, and each command on less in its own file. Replaced is what takes minutes
whatever is asked: training of the small transformer, data sets' sizes, and the processes that measure.
"""

import contextlib
import dataclasses
import io
import json
import shlex
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from moe_theory import cli
from moe_theory.core.random import root_key
from moe_theory.deep import presets
from moe_theory.deep.params import Dims
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import Recipe

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


DEAR = {"figures", "challenge", "explore", "merge", "bound", "new"}


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
                is_read = name in DEAR and example in documents
                printed[example] = documents[example] if is_read else _run(example)
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


def test_every_command_has_an_example():
    for name in cli.commands():
        examples = examples_of(name)
        assert examples, name
        assert all(example.startswith(f"moe-theory {name.split()[0]}") for example in examples), name


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


def test_the_help_names_what_the_document_has():
    for name, keys in DOCUMENTS.items():
        command = command_of(name)
        words = document_of(command)
        assert words is not None
        assert words.startswith("Print JSON: ")
        is_said_elsewhere = command in ("sweep", "report")
        assert is_said_elsewhere or all(key in words for key in keys), name


def test_every_command_that_prints_a_table_has_a_document():
    without = {name for name in cli.commands() if document_of(name) is None}
    assert not without
    assert {*map(command_of, DOCUMENTS)} == {*cli.commands()} - {*ELSEWHERE}
