"""The guided tour: catches a script that stops running, reaches into the package, or says what its page does not."""

import ast
import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import samples

import moe_theory as mt
from moe_theory import cli
from moe_theory.cli import output, tour
from moe_theory.tour import steps

SMALL = {"ROUNDS": "70", "REPLICATES": "32", "SWEEP_REPLICATES": "8", "CLAIM_REPLICATES": "32"}
COLUMNS = 78  # of code: what a terminal of 80 columns shows of it beside the indentation


@pytest.fixture
def toy(monkeypatch):
    """A tour of three steps that take no time."""
    text = "\n".join(
        [
            "# %% [markdown]\n# # Toy\n#\n# Words.\n",
            '# %%\nfrom pathlib import Path\nimport matplotlib.pyplot as plt\nOUT = Path("x")  # for pictures\nN = 1\n',
            "# %% [markdown]\n# ## Step 1: One\n#\n# See `a` < b.\n",
            "# %%\na = N + 1\nshare, b = 0.5, 'no number'\nfor c in range(3):\n    print(c)\n",
            '# %%\nfigure, _ = plt.subplots()\nfigure.savefig(OUT / "01-one.svg")\n',
            "# %% [markdown]\n# ## Step 2: Two\n#\n# It fails.\n",
            "# %%\n\nvalue = 1 / (a - 2)\n",
            "# %% [markdown]\n# ## Step 3: Three\n#\n# It ends.\n",
            "# %%\nraise KeyboardInterrupt\n",
        ]
    )
    monkeypatch.setattr(steps, "script", lambda: text)
    return text


def test_the_script_is_ten_steps_of_words_and_short_code():
    preface, *ten = steps.parse(steps.script())
    assert [step.number for step in ten] == list(range(1, 11))
    assert preface.cells
    lines = steps.script().splitlines()
    for step in ten:
        assert step.title
        assert 2 <= len(re.findall(r"[.:?](?:\s|$)", step.words)) <= 8
        assert step.cells
        for cell in step.cells:
            code = cell.code.splitlines()
            assert code == lines[cell.line - 1 : cell.line - 1 + len(code)]
            assert max(map(len, code)) <= COLUMNS
            assert len(code) <= 24


def test_the_script_uses_public_names_only():
    tree = ast.parse(steps.script())
    imported = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))}
    assert {line for line in imported if "moe_theory" in line} == {
        "import moe_theory as mt",
        "from moe_theory import continual",
        "from moe_theory.verify.statement import ordering",
    }
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for name, public in (("mt", mt.__all__), ("continual", dir(mt.continual))):
        ours = {node.attr for node in attributes if ast.unparse(node.value) == name}
        assert ours
        assert ours <= set(public)
    assert not [node.attr for node in attributes if node.attr.startswith("_") and node.attr != "_replace"]


def run_here(command, **options):
    """`subprocess.run` of this package's command line without another process, which would import everything again."""
    assert command[:3] == [sys.executable, "-m", "moe_theory"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        cli.main(command[3:])
    return subprocess.CompletedProcess(command, 0, printed.getvalue())


@pytest.mark.parametrize("last", [3, pytest.param(10, marks=pytest.mark.thorough)])
def test_the_tour_makes_its_pictures_and_its_page(last, forgotten, ran, tmp_path, monkeypatch):
    small = steps.script()
    for name, value in SMALL.items():
        small = steps.with_value(small, name, value)
    monkeypatch.setattr(steps, "script", lambda: small)
    monkeypatch.setattr(subprocess, "run", run_here)
    out = tmp_path / "tour"
    streams = ran("tour", "--steps", f"1-{last}", "--out", out, "--json")
    taken = json.loads(streams.out)
    assert [entry["step"] for entry in taken] == list(range(1, last + 1))
    for entry in taken:
        assert entry["title"] in streams.err
        assert [f"{entry['step']:02d}-" in path for path in entry["pictures"]] == [True], entry
    numbers = {name: value for entry in taken for name, value in entry["numbers"].items()}
    assert numbers["agreeing"] == 60
    if last == 10:
        assert 0 <= numbers["stopped"] <= 1
        for verdict in numbers["verdicts"]:
            assert f"{verdict['claim']}: {verdict['status']}" in taken[8]["output"]
        assert f"{numbers['own']['claim']}: {numbers['own']['status']}" in taken[9]["output"]
        assert numbers["own"]["status"] in {"REFUTED", "INCONCLUSIVE"}, "two experts a task forget more"
        assert (out / "report" / "report.html").is_file()

    text = (out / "tour.html").read_text()
    page = samples.Page(text)
    assert not page.open + page.wrong
    pictures = [attributes for tag, attributes, _ in page.elements if tag == "img"]
    assert len(pictures) == last
    assert all(picture["alt"] for picture in pictures)
    links = page.attributes("href") + page.attributes("src")
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in links)
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(page.attributes("id"))
    assert (out / "tour.py").read_text() == steps.with_value(small, "OUT", f'Path("{out}")')


def test_a_step_s_numbers_output_and_pictures_are_found(toy, ran, tmp_path):
    (entry,) = json.loads(ran("tour", "--steps", "1", "--out", tmp_path, "--json").out)
    assert entry["numbers"] == {"a": 2, "share": 0.5}
    assert entry["output"] == "0\n1\n2\n"
    assert entry["pictures"] == [str(tmp_path / "01-one.svg")]
    assert "<code>a</code> &lt; b" in (tmp_path / "tour.html").read_text()


def test_a_reader_goes_on_or_ends_and_opens_the_page(toy, ran, tmp_path, monkeypatch):
    """With a key after each step; code that draws is not in the way."""
    monkeypatch.setattr(steps, "script", lambda: toy.replace("(a - 2)", "a").replace("raise KeyboardInterrupt", ""))
    opened = []
    monkeypatch.setattr(tour.webbrowser, "open", opened.append)
    page = tmp_path / tour.PAGE
    for keys, last, times in (("\n\n\n", 3, 1), ("\nq\n\n", 2, 1), ("q\nq\n", 1, 0), ("", 1, 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        opened.clear()
        shown = ran("tour", "--pause", "--out", tmp_path).out
        assert f"{last} steps in" in shown
        assert f'id="step-{last}"' in page.read_text()
        assert f'id="step-{last + 1}"' not in page.read_text()
        assert opened == times * [page.as_uri()]
        assert "a = N + 1" in shown
        assert "plt.subplots" not in shown
    assert "plt.subplots" in re.sub("<.*?>", "", page.read_text())


def test_an_error_names_the_step_and_the_line(toy, tmp_path):
    with pytest.raises(ZeroDivisionError) as failure:
        cli.main(["tour", "--out", str(tmp_path)])
    assert failure.value.__notes__ == [f"in step 2 of the tour, 'Two', of {tmp_path / 'tour.py'}"]
    line = failure.traceback[-1].lineno + 1
    assert (tmp_path / "tour.py").read_text().splitlines()[line - 1] == "value = 1 / (a - 2)"
    assert "Step" not in (tmp_path / "tour.html").read_text().split("<main")[1].replace("step-1", "")


def test_an_interrupt_keeps_what_was_made(toy, refused, tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "script", lambda: toy.replace("(a - 2)", "a"))
    monkeypatch.setattr(tour, "stop_at_once", output.stop)  # ends no process where other threads run
    assert "interrupted in step 3" in refused("tour", "--out", tmp_path, code=130, may_print=True)
    assert 'id="step-2"' in (tmp_path / "tour.html").read_text()
    assert (tmp_path / "01-one.svg").is_file()


@pytest.mark.parametrize("asked", ["0", "11", "4-2", "first", "2-"])
def test_steps_that_are_not_there_are_refused(asked, refused, tmp_path):
    out = tmp_path / "out"
    line = refused("tour", "--steps", asked, "--out", out)
    assert f"steps={asked!r} must be a step or a range of steps from 1 to 10" in line
    assert not out.exists()


def test_a_script_that_its_reader_changed_is_not_overwritten(toy, refused, tmp_path):
    script = tmp_path / tour.SCRIPT
    script.write_text("# mine")
    assert "is not overwritten" in refused("tour", "--out", tmp_path)
    assert script.read_text() == "# mine"


def test_the_script_is_printed_and_nothing_is_made(ran, tmp_path):
    out = tmp_path / 'a "quoted" place'
    lines, shipped = (text.splitlines() for text in (ran("tour", "--script", "--out", out).out, steps.script()))
    ((line, _),) = [pair for pair in zip(lines, shipped, strict=True) if pair[0] != pair[1]]
    assert line.startswith("OUT = ")
    exec(line, {"Path": Path}, namespace := {})
    assert namespace["OUT"] == out
    assert not out.exists()
