"""Papers of other distributions, as strangers install them, and commands where they are installed."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def install(folder: Path, project: Mapping[str, Any]) -> None:
    """Register the papers of a `[project]` in a folder of the path, as pip would have done it."""
    name, version, points = project["name"], project["version"], project["entry-points"]["moe_theory.papers"]
    about = folder / f"{name}-{version}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text("\n".join(["[moe_theory.papers]", *map(" = ".join, points.items())]))


def printed(words: Sequence[str], folder: Path, path: Sequence[Path], **environment: str) -> str:
    """What Python prints, run in a folder with these words, and with more folders on its path."""
    folders = [*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
