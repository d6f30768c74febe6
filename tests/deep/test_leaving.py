"""`moe_theory.deep` is a paper like a stranger's: catches what needs it below, and a command that fails without it."""

import json
import re
import subprocess
import sys

COMMANDS = (
    "--help",
    "statements --claims --json",
    "statements --json",
    "why edge.theorem-1",
    "figures --list --json",
    "verify continual.lemma-4 --reading quick --replicates 64 --out run",
    "report run --out report",
    "report --paper edge --out paper",
    "report run --cite --json",
)
WITHOUT = """
import contextlib, io, json, sys
from importlib import metadata

every = metadata.entry_points
metadata.entry_points = lambda **asked: metadata.EntryPoints(each for each in every(**asked) if each.name != "deep")
sys.modules["moe_theory.deep"] = None  # as if it were not installed
from moe_theory.cli import main

said = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            main(command.split())
        except SystemExit as end:
            assert not end.code, command
    said[command] = text.getvalue()
print(json.dumps(said))
"""


def test_everything_else_works_without_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *COMMANDS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    listed = re.findall(r"^  (\w+) ", said["--help"], re.MULTILINE)
    assert "bound" in listed
    assert "deep" not in listed
    papers = {each["paper"] for each in json.loads(said["statements --claims --json"])}
    assert papers == {"continual", "edge", "generalization", "merging", "reinforced"}
    assert "deep" not in json.loads(said["figures --list --json"])
    assert (tmp_path / "report" / "report.html").is_file()
    assert (tmp_path / "paper" / "report.html").is_file()
