"""Keys of all claims' samples: catches samples thrown away for a word, and samples kept of code that has changed."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import moe_theory
from moe_theory.core.errors import InvalidValueError
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys

ROOT = Path(__file__).parents[2]
CHILD = """
import json, sys, tests.verification.test_keys as these
json.dump(these.keys(), sys.stdout)
"""
WORDS = {  # docstrings and comments
    "core/engine.py": [
        ("How XLA compiles for a CPU", "How XLA must compile for a CPU"),
        ('"""Return the final state', '"""Yield the final state'),
    ],
    "edge/statements/lemma_5.py": [("1e-6  # of", "1e-6  # below those of")],
}
CODE = {
    "continual/algorithm.py": [
        ("jnp.sqrt(jnp.sum(learned.squared_moves))", "jnp.sqrt(jnp.sum(learned.squared_moves) + 0)")
    ],
    "edge/statements/lemma_5.py": [("other * gap - difference", "other * gap / 2 - difference")],
}


def keys():
    """Of each claim under its paper's quick reading."""
    made, found = Keys(), {}
    for claim in registry.all_claims().values():
        reading = next(iter(registry.readings_of(claim.paper).values()))
        found[claim.id] = made.of(claim, reading, 0)
    return found


def edited(folder, edits):
    """The keys as another process has them, of a copy of the package with these edits."""
    package = folder / "moe_theory"
    shutil.copytree(Path(moe_theory.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, changes in edits.items():
        text = (package / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (package / name).write_text(text)
    return in_a_new_process([folder, ROOT], folder)


def in_a_new_process(roots, folder):
    """The keys of the package that is found first: what ran in this process before has no part in them."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def unedited(tmp_path_factory):
    return in_a_new_process([ROOT], tmp_path_factory.mktemp("unedited"))


@pytest.mark.thorough
def test_code_loses_the_samples_that_it_decides_and_words_lose_none(tmp_path, unedited):
    """Would catch samples kept of other code, and samples lost of papers that do not import it, or for a word."""
    edits = {name: [*WORDS.get(name, []), *CODE.get(name, [])] for name in WORDS | CODE}
    before, after = unedited, edited(tmp_path, edits)
    importing = {"continual", "reinforced", "deep"}
    expected = {id for id, claim in registry.all_claims().items() if claim.paper in importing or "edge.lemma-5." in id}
    assert {id for id in before if after[id] != before[id]} == expected


def test_a_value_without_a_key_is_an_error_of_its_claim():
    """Would catch samples that are saved under a key by which they are never found."""
    (claim,) = registry.select_claims(["continual.lemma-4"])
    (reading, *_) = registry.select_readings("continual", None)
    with open(__file__) as file:
        reading_a_file = dataclasses.replace(claim, observe=lambda runs: file)
        with pytest.raises(InvalidValueError) as refused:
            Keys().of(reading_a_file, reading, 0)
    assert claim.id in str(refused.value)
