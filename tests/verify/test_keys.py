"""Keys of all claims' samples: catches samples thrown away for a word, and samples kept of code that has changed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import moe_theory
from moe_theory.verify import registry
from moe_theory.verify.archive import Keys

CHILD = """
import json, sys, tests.verify.test_keys as these
json.dump(these.keys(), sys.stdout)
"""
WORDS = {  # what people read, and how samples are judged
    "core/engine.py": [
        ("How XLA compiles for a CPU", "How XLA must compile for a CPU"),
        ('"""Final state', '"""A final state'),
    ],
    "report/wording.py": [("Not decided by what was run.", "What was run does not decide it.")],
    "edge/statements/lemma_5.py": [
        ("10, 50), 1e-6  # of", "10, 50), 2e-6  # of"),
        ("is at most half of", "is no more than half of"),
        ("no constant", "not constant"),
    ],
}
CODE = {
    "continual/algorithm.py": [
        ("jnp.sqrt(jnp.sum(learned.squared_moves))", "jnp.sqrt(jnp.sum(learned.squared_moves) + 0)")
    ],
    "edge/statements/lemma_5.py": [("other * gap - difference", "other * gap / 2 - difference")],
}
EDITS = {name: WORDS.get(name, []) + CODE.get(name, []) for name in WORDS | CODE}


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
    roots = [str(folder), str(Path(__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_code_loses_the_samples_that_it_decides_and_words_and_margins_lose_none(tmp_path):
    """Words and margins are edited of claims whose code is not: of the engine, and of Lemma 5's other cases."""
    before, after = edited(tmp_path / "before", {}), edited(tmp_path / "after", EDITS)
    assert after.keys() == before.keys()
    changed = {id for id in before if after[id] != before[id]}
    simulating = {id for id, claim in registry.all_claims().items() if claim.paper in ("continual", "reinforced")}
    assert changed == simulating | {"edge.lemma-5.lower"}
