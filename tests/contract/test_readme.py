"""The README: its code runs as printed, its commands parse, and its generated parts are what the checked-in data make.

Here too the code on the site's pages.
"""

import json
import re
import sys
from pathlib import Path

import pytest
import readme
import record

from benchmarks import report
from moe_theory.report import pages
from moe_theory.verify import Status, Verdict, recorded, registry, session
from moe_theory.verify.registry import load_claims
from moe_theory.verify.verdict import Report

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "pages").glob("*.md"))}
OWN_CLAIMS = "mt.statement("
BLOCK_LINES = 20  # of code that a reader is asked to copy


def blocks(text: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def code_lines(block: str) -> int:
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in block.splitlines())


def run(code: str, where: str) -> None:
    exec(compile(code, where, "exec"), {"__name__": where})


@pytest.fixture
def networks(monkeypatch):
    """What a block registers is gone after it."""
    from moe_theory.deep import networks

    for module in (networks, sys.modules["moe_theory.deep.params"], sys.modules["moe_theory.deep.training"]):
        assert module.NETWORKS is networks.NETWORKS  # one dictionary, that a reader may add to
    before = dict(networks.NETWORKS)
    yield
    networks.NETWORKS.clear()
    networks.NETWORKS.update(before)


def test_every_block_runs_as_printed(capsys, tmp_path, monkeypatch, networks):
    monkeypatch.chdir(tmp_path)
    for code in blocks(README):
        assert code_lines(code) <= BLOCK_LINES
        if OWN_CLAIMS not in code:
            run(code, "README.md")
            assert capsys.readouterr().out, f"nothing is printed by\n{code}"


def test_the_pages_blocks_run_as_printed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in (code for page in PAGES.values() for code in blocks(page)):
        run(code, "docs/pages")
    printed = capsys.readouterr().out
    assert "num_experts" in printed  # of the sweep
    assert "kappa" in printed  # of the images
    assert "Avalanche" in printed  # of the field


@pytest.mark.usefixtures("compiled_to_run")
@pytest.mark.parametrize(
    ("paper", "reading", "statuses"),
    [
        ("continual", "unit-signal", {"unit-signal": Status.SUPPORTED}),
        ("choices", None, {"best-of-1": Status.REFUTED, "best-of-2": Status.SUPPORTED}),
    ],
)
def test_the_claim_and_the_paper_of_one_s_own_are_judged(tmp_path, forgotten, paper, reading, statuses):
    (code,) = [code for code in blocks(README) if OWN_CLAIMS in code and f'paper="{paper}"' in code]
    path = tmp_path / f"my_{paper}.py"
    path.write_text(code)
    request = session.check_request(load_claims(path), reading and [reading], 256, module=str(path))
    found = {verdict.reading: verdict.status for verdict in session.carry_out(request).verdicts}
    assert found == statuses


def test_the_specifications_are_read(tmp_path):
    from moe_theory.sweep.results import Sweep

    found = [block for page in (README, *PAGES.values()) for block in blocks(page, "toml")]
    assert len(found) == 2
    for block in found:
        path = tmp_path / "grid.toml"
        path.write_text(block)
        assert Sweep.read(path).system == "continual"


def test_the_speed_is_what_the_benchmarks_report(tmp_path):
    folder = ROOT / "figures" / "bench"
    report.write(report.read([folder / "bench.json"]), tmp_path)
    for name in ("summary.md", "table.md"):
        assert (folder / name).read_text() == (tmp_path / name).read_text()
    assert (folder / "summary.md").read_text() in README


def test_every_paper_is_recorded_under_its_readings():
    for paper, run in recorded.read().items():
        assert set(run.readings) == {reading.name for reading in registry.select_readings(paper, None)}


def test_the_generated_parts_are_what_the_data_make(capsys, monkeypatch, tmp_path):
    readme.main(["--check"])  # else: make readme, and commit what it changes
    aged = tmp_path / "README.md"
    aged.write_text(README.replace("| holds |", "| fails |", 1), encoding="utf-8")
    monkeypatch.setattr(readme, "README", aged)
    with pytest.raises(SystemExit, match="make readme"):
        readme.main(["--check"])
    readme.main([])
    assert aged.read_text(encoding="utf-8") == README
    aged.write_text(README.replace("<!-- end of gallery -->", ""), encoding="utf-8")
    with pytest.raises(ValueError, match="end of gallery"):
        readme.main([])


def test_every_figure_is_shown_and_what_is_linked_is_there():
    shown = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "figures").rglob("*.svg"))]
    assert shown
    assert not [path for path in shown if path not in README]
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", README, flags=re.DOTALL), flags=re.MULTILINE)
    anchors = {title.lower().replace(" ", "-") for title in titles} | set(re.findall(r'<a id="(.+?)">', README))
    linked = re.findall(r'(?:\]\(|href="|src=")([^)"]+)[)"]', README)
    assert not [link for link in linked if link.startswith("#") and link[1:] not in anchors]
    files = {link for link in linked if not link.startswith(("#", "http"))}
    assert not [path for path in files if not (ROOT / path).is_file()]


def test_what_is_not_a_whole_run_of_one_paper_is_not_recorded(tmp_path, capsys):
    (chosen, *_) = registry.select_claims(["deep"])
    verdict = Verdict(chosen.id, "deep", "", "", "ordering", "balanced", Status.SUPPORTED, "", 8, "", data="digits")
    report = Report(
        [verdict], "moe-theory verify deep --out 'a place' --seed 1", 1, 0.01, {}, False, {}, finished="2026"
    )
    report.readings["deep.balanced"] = "halves"
    (tmp_path / pages.NUMBERS).write_text(pages.to_json(report))
    with pytest.raises(SystemExit):
        record.main([str(tmp_path)])
    assert "no verdict on" in capsys.readouterr().err
    all_of_it = [Verdict(**(vars(verdict) | {"claim": each.id})) for each in registry.select_claims(["deep"])]
    report.verdicts[:] = all_of_it[::-1]
    (tmp_path / pages.NUMBERS).write_text(pages.to_json(report))
    trimmed = record.trimmed(tmp_path)
    assert trimmed.command == "moe-theory verify deep --seed 1"
    assert [each["claim"] for each in trimmed.verdicts] == [each.claim for each in all_of_it]
    text = recorded.written(trimmed)
    assert json.loads(text)["schema"] == recorded.SCHEMA
    assert recorded.parsed(text, "here") == trimmed
