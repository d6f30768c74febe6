"""Merged checkpoints of published families, loaded by Transformers: catches a key that is missing or left over, and
outputs that are not those of the mixture whose experts are all NumPy's average. A message's way out is followed.

Takes a Python that has torch, transformers and accelerate, by `MOE_THEORY_TRANSFORMERS=python make thorough`.
"""

import functools
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from moe_theory.checkpoints import FORMS, merge_checkpoint
from moe_theory.checkpoints.forms import FAMILIES, NEVER_ALONE
from moe_theory.core.errors import InvalidParamsError
from moe_theory.runs.tensors import InvalidCheckpointError

PYTHON = os.environ.get("MOE_THEORY_TRANSFORMERS")
SCRIPT = Path(__file__).with_name("transformers_models.py")
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not PYTHON, reason="MOE_THEORY_TRANSFORMERS names no Python with torch and transformers"),
]


def ran(*arguments):
    """Output of the other Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(PYTHON), *map(str, arguments)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("transformers")
    ran(SCRIPT, "make", place)
    return place


@pytest.fixture(scope="module")
def found(folder):
    """Answers of Transformers on each family's forms, by FAMILY.FORM; None where there is no such form."""
    (folder / "merged").mkdir()
    made = {}
    for path in sorted((folder / "models").iterdir()):
        for form in FORMS:
            try:
                merge_checkpoint(path, None, WEIGHTS, folder / "merged" / f"{path.name}.{form}", form)
            except InvalidParamsError:
                made[f"{path.name}.{form}"] = None
    return made | json.loads(ran(SCRIPT, "check", folder))


def test_every_family_has_the_forms_that_are_stated(found):
    """Of the families in the script, which knows more than those with a dense form."""
    families = {name.rpartition(".")[0] for name in found}
    assert families >= FAMILIES.keys() | NEVER_ALONE.keys()
    for family in families:
        assert (found[f"{family}.moe-1"] is None) == (family in NEVER_ALONE)
        assert (found[f"{family}.dense"] is None) == (family not in FAMILIES)


def test_what_was_merged_loads_whole_and_computes_the_average(found):
    wrong = {}
    for name, facts in found.items():
        if facts is None:
            continue
        keys = [facts.get(key) for key in ("failed", "missing_keys", "unexpected_keys", "mismatched_keys")]
        if any(keys) or not facts["distance"] < 1e-5 * facts["size"]:
            wrong[name] = facts
    assert not wrong


@pytest.mark.parametrize("name", ["mxfp4", "fp8"])
def test_the_way_out_of_a_quantised_checkpoint_works(name, folder, tmp_path):
    """By the words of the message."""
    merge = functools.partial(merge_checkpoint, pattern=None, weights=[0.25] * 4, out=tmp_path / "out")
    with pytest.raises(InvalidCheckpointError) as failure:
        merge(folder / "quantised" / name)
    (code,) = re.findall(r"AutoModelForCausalLM.*\)", str(failure.value))
    setting = f"FOLDER, OTHER = {str(folder / 'quantised' / name)!r}, {str(tmp_path / 'other')!r}"
    ran("-c", f"from transformers import *\n{setting}\n{code}")
    assert merge(tmp_path / "other").num_merged > 0
