"""Compiled programs kept between runs: catches a user's choice overruled, and warnings that come back for ever."""

import os
import subprocess
import sys

import pytest

from moe_theory.core.errors import OutputError
from moe_theory.runs.compilation import keep_programs

CODE = """
import sys
from pathlib import Path
from moe_theory.runs.compilation import keep_programs
keep_programs(fallback=Path(sys.argv[1]))
import jax
for function in (lambda x: x + 1, lambda x: x * 3):
    jax.jit(function)(2.0)
print(jax.config.jax_compilation_cache_dir)
"""


def kept_in(tmp_path, **environment):
    """Where a process keeps its programs, and what it says on standard error."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path / "fallback"],
        env=clean | {"XDG_CACHE_HOME": str(tmp_path / "cache")} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_programs_are_kept_in_the_user_s_cache(tmp_path):
    folder, _ = kept_in(tmp_path)
    assert folder.startswith(str(tmp_path / "cache" / "moe_theory"))
    assert os.listdir(folder)


def test_without_a_writable_cache_they_are_kept_in_the_fallback(tmp_path):
    (tmp_path / "file").write_text("")
    folder, _ = kept_in(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert folder == str(tmp_path / "fallback")
    assert os.listdir(folder)


def test_a_user_s_own_folder_stays(tmp_path):
    assert kept_in(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"))[0] == str(tmp_path / "own")
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    """Would catch a user's own folder in which nothing is kept, without a word."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/programs cannot be written.*name another"):
        keep_programs(tmp_path / "file" / "programs")
