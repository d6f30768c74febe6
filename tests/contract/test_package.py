"""The package as imported and as a command: catches an eager import, a changed configuration, a missing name."""

import json
import subprocess
import sys
import warnings

import pytest

import moe_theory
from moe_theory.core.papers import paper_names

# In a process of its own, from little to much: what is loaded after each of three steps, and what has changed.
SCRIPT = """
import json, sys, moe_theory as mt, moe_theory.cli
heavy = {name.split(".")[0] for name in sys.modules} & {"jax", "scipy", "matplotlib", "xarray", "optax"}
import jax
before = dict(jax.config.values)
mt.verify.select_claims(["continual.lemma-4", "continual.theorem-*"])
parts = {name.split(".")[1] for name in sys.modules if name.startswith("moe_theory.")}
[getattr(mt, name) for name in mt.__all__]
mt.claims()
import moe_theory.report.plots
changed = {key for key, value in jax.config.values.items() if before.get(key) != value}
print(json.dumps([*map(sorted, (heavy, parts, changed))]))
"""


def test_no_more_is_imported_than_is_used_and_nothing_configured():
    """Would catch an eager import, a claim that imports other papers, and a change of JAX's settings."""
    out = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    heavy, parts, changed = json.loads(out)
    assert heavy == []
    assert set(parts) & set(paper_names()) == {"continual"}
    assert changed == []


@pytest.mark.parametrize("name", moe_theory.__all__)
def test_public_names_exist(name):
    assert getattr(moe_theory, name) is not None
    assert name in dir(moe_theory)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="simulat'"):
        moe_theory.simulat  # noqa: B018


def test_verify_is_a_package_and_a_function():
    from moe_theory.verify import session

    assert session.verify.__name__ == "verify"
    assert callable(moe_theory.verify)


@pytest.mark.parametrize(
    ("message", "module"), [("x is deprecated", "moe_theory.core.engine"), ("jax.x is gone", "flax")]
)
def test_deprecations_are_errors(message, module):
    """Would catch a silence in which JAX's deprecations reach users first."""
    with pytest.raises(DeprecationWarning):
        warnings.warn_explicit(message, DeprecationWarning, "file.py", 1, module=module)
