"""The package as imported and as a command: catches an eager import, a changed configuration, a missing name."""

import subprocess
import sys
import warnings

import pytest

import moe_theory


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_loads_neither_jax_nor_anything_heavy():
    heavy = run(
        "import sys, moe_theory, moe_theory.cli;"
        "print({name.split('.')[0] for name in sys.modules} & {'jax', 'scipy', 'matplotlib', 'xarray', 'optax'})"
    )
    assert heavy.strip() == "set()"


def test_using_everything_changes_no_jax_configuration():
    code = (
        "import jax; before = dict(jax.config.values);"
        "import moe_theory as mt; [getattr(mt, name) for name in mt.__all__]; mt.claims();"
        "import moe_theory.report.plots;"
        "print({key for key, value in jax.config.values.items() if before.get(key) != value})"
    )
    assert run(code).strip() == "set()"


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
