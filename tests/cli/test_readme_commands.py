"""What README's table says of each command beside it: catches a demonstration that shows something else.

That each parses is tested in `test_printed.py`, and what each does in its own file; here, what its sentence promises.
"""

import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from moe_theory.continual.experiments import FIGURE_2_DIMS
from moe_theory.merging import policies, reading
from moe_theory.merging.experiments import TESTBEDS
from moe_theory.report import wording
from moe_theory.verification.catalog import statements
from moe_theory.verification.explore import plan_search
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.request import check_request
from moe_theory.verification.settings import parsed

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("## What you can do")[2].partition("\n## ")[0]
ROWS = {
    command: sentence.strip()
    for sentence, row in re.findall(r"^\| (.+) \| (`moe-theory .+) \|$", TABLE, flags=re.MULTILINE)
    for command in re.findall(r"`moe-theory ([^`]+)`", row)
}


def named(*words: str) -> list[str]:
    """The words of the row whose command begins with these."""
    (command,) = [each for each in ROWS if tuple(each.split()[: len(words)]) == words]
    return shlex.split(command)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_every_row_is_looked_at():
    looked_at = {"why", "report", "verify", "challenge", "explore", "sweep", "new", "figures", "bound", "merge"}
    assert {command.split()[0] for command in ROWS} == looked_at | {"deep"}  # of images, with their own tests


def test_why_says_the_status(ran):
    words = named("why")
    (known,) = judged_statements(words[1])
    assert wording.statement_status(known) in ran(*words).out


def test_a_report_is_of_a_whole_paper_and_one_file(ran, tmp_path):
    words = named("report", "--paper")
    ran(*words, "--out", tmp_path)
    page, document = ((tmp_path / f"report.{suffix}").read_text() for suffix in ("html", "json"))
    claims = {each["claim"] for each in json.loads(document)["verdicts"]}
    assert all(f"{option(words, '--paper')}." in claim and claim in page for claim in claims)
    assert not re.search(r'(?:src|href)="(?!data:|#|https?://)[^"]+\.(?:css|js|svg|png)"', page)


def test_proofs_are_a_page(ran, tmp_path):
    words = named("report", "--proofs")
    ran(*words, "--out", tmp_path)
    page = (tmp_path / "proofs.html").read_text()
    assert all(each.name in page for each in statements(option(words, "--proofs")) if each.proofs)


def test_settings_of_one_s_own_are_those_of_the_verdict():
    words = named("verify")
    (study,) = check_request(words[1], "unit-signal", settings=parsed([option(words, "--set")])).studies
    (verdict,) = study.blanks
    assert verdict.claim == words[1]
    assert option(words, "--set") in verdict.reading


def test_a_map_is_over_the_axis(ran):
    words = named("explore")
    name, _, ends = option(words, "--over").partition("=")
    (axis,) = plan_search(words[1], over=[option(words, "--over")]).axes
    assert axis.name == name
    assert [f"{end:g}" for end in (axis.values[0], axis.values[-1])] == ends.split("..")


def test_what_is_searched_leaves_something_free():
    (known,) = statements(named("challenge")[1])
    assert known.free


def test_a_paper_of_one_s_own_is_a_package(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = named("new")
    ran(*words)
    assert {words[2], "pyproject.toml"} <= {path.name for path in (tmp_path / words[2]).iterdir()}
    assert (tmp_path / words[2] / words[2] / "__init__.py").is_file()


def test_sizes_are_one_s_own_and_the_paper_prints_something_for_each():
    """Catches M = N, for which the paper prints nothing."""
    words = named("figures")
    assert {"--experts", "--width", "--format"} <= set(words)
    assert str(FIGURE_2_DIMS.num_tasks) not in option(words, "--experts").split(",")


def test_the_bound_says_something(ran):
    assert "informs" in ran(*named("bound")).out


def test_merging_has_the_settings_of_what_readme_says_of_it():
    """README says that Tanbr is ahead of NUCB, by claims on the testbed: the command must not show other learners."""
    assert "Tanbr is ahead of NUCB" in README
    from moe_theory.merging.command import merge

    default = inspect.signature(merge).parameters["reading"].default
    cells = {cell.name: cell.params for cell in TESTBEDS["dynamic"].cells_under(reading("random-split"))}
    for policy in (policies.TANBR, policies.NUCB):
        own = reading(default).params(**policies.TUNED[policy])
        fixed = {"slot_size", "mix_drift", "num_experts", "max_active"}  # of the stream
        assert {name for name in own._fields if getattr(own, name) != getattr(cells[policy], name)} <= fixed


@pytest.mark.thorough
def test_merging_shows_what_readme_says_of_it(ran, tmp_path):
    document = json.loads(ran(*named("merge"), "--policy", "all", "--out", tmp_path, "--json").out)
    for window in ("mean_reward", "late_reward"):
        earned = {row["policy"]: row[window] for row in document["policies"]}
        assert earned["tanbr"] > earned["nucb"] > max(earned["average"], earned["uniform"], earned["best-expert"])
