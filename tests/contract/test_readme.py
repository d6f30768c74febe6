"""The README and the site's pages: their code runs as printed, and generated parts are what the checked-in data make.

Their commands are in tests/cli/test_printed.py.
"""

import re
import sys
from pathlib import Path

import found
import pytest
import readme

from moe_theory.verification import Status, recorded, registry, session
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.registry import load_claims

pytestmark = pytest.mark.usefixtures("much_room")

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "pages").glob("*.md"))}
TEXTS = {"README": README, **PAGES}
OWN_CLAIMS = "mt.statement("


def blocks(text: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(code: str, where: str) -> None:
    exec(compile(code, where, "exec"), {"__name__": where})


@pytest.fixture
def networks():
    """Undo a block's registrations."""
    from moe_theory.deep import datasets, networks, presets

    for module in (networks, sys.modules["moe_theory.deep.params"], sys.modules["moe_theory.deep.training"]):
        assert module.NETWORKS is networks.NETWORKS  # one dictionary, that a reader may add to
    tables = (networks.NETWORKS, datasets.DATASETS, presets.PRESETS)
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


WITH_CODE = [name for name, text in TEXTS.items() if blocks(text)]


@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "README")) for name in WITH_CODE]
)
def test_every_block_runs_as_printed(page, capsys, within_folder, networks):
    for code in blocks(TEXTS[page]):
        if OWN_CLAIMS not in code:
            run(code, page)
            assert capsys.readouterr().out, f"nothing is printed by\n{code}"


def test_a_sentence_is_printed_while_its_statements_have_the_statuses_that_it_rests_on():
    """Guards the public sentences about the papers against a run that is recorded later."""
    printed = found.sentences(readme.OURS)
    for paper, findings in found.FINDINGS.items():
        statuses = {each.statement.id: found.statement_status(each) for each in judged_statements(paper)}
        holding = [each["sentence"] for each in findings if each["needs"].items() <= statuses.items()]
        assert holding
        assert all(each["needs"].keys() <= statuses.keys() for each in findings)
        assert [each["sentence"] for each in findings if each["sentence"] in printed] == holding


@pytest.mark.usefixtures("compiled_to_run")
@pytest.mark.parametrize(
    ("paper", "reading", "statuses"),
    [
        pytest.param("continual", "unit-signal", {"unit-signal": Status.SUPPORTED}, marks=pytest.mark.thorough),
        ("choices", None, {"best-of-1": Status.REFUTED, "best-of-2": Status.SUPPORTED}),
    ],
)
def test_the_claim_and_the_paper_of_one_s_own_are_judged(tmp_path, forgotten, paper, reading, statuses):
    (code,) = [code for code in blocks(PAGES["own"]) if OWN_CLAIMS in code and f'paper="{paper}"' in code]
    path = tmp_path / f"my_{paper}.py"
    path.write_text(code)
    request = session.check_request(load_claims(path), reading and [reading], 256, error=0.01, module=str(path))
    judged = {verdict.reading: verdict.status for verdict in session.carry_out(request).verdicts}
    assert judged == statuses


def test_every_paper_is_recorded_under_its_readings():
    for paper, run in recorded.read().items():
        assert set(run.readings) == {reading.name for reading in registry.select_readings(paper, None)}


def test_the_generated_parts_are_what_the_data_make():
    readme.main(["--check"])  # else: make readme, and commit what it changes
    (_, parts), *_ = readme.TEXTS.items()
    assert readme.filled(README.replace("| paper | true |", "| paper | right |", 1), parts) == README
    with pytest.raises(ValueError, match="end of found"):
        readme.filled(README.replace("<!-- end of found -->", ""), parts)


def test_what_is_linked_is_there():
    linked = re.findall(r'(?:\]\(|href="|src="|srcset=")([^)"]+)[)"]', README)
    assert linked
    assert not [link for link in linked if not link.startswith("http") and not (ROOT / link).exists()]


def test_the_files_that_texts_name_are_there():
    named = r"`((?:benchmarks|docs|examples|moe_theory|tests)/[\w./-]*\.[a-z]+)`"
    found = {(where, name) for where, text in TEXTS.items() for name in re.findall(named, text)}
    assert ("verdicts", "tests/verification/test_planted_claims.py") in found
    assert not [each for each in sorted(found) if not (ROOT / each[1]).exists()]
