"""The README's code: catches an example that no longer runs as printed."""

import re
import shlex
from pathlib import Path

import pytest

from moe_theory import claims, cli
from moe_theory.bench import history
from moe_theory.report.speed import to_markdown
from moe_theory.verify import Status, claim, session
from moe_theory.verify.modules import load_claims
from moe_theory.verify.registry import PAPERS

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


OWN_CLAIMS = "@claim("


def test_the_quickstart_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in blocks("python"):
        if OWN_CLAIMS in code:
            continue
        assert sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in code.splitlines()) <= 20
        exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mean G_t" in printed
    assert "SUPPORTED" in printed
    assert "kappa" in printed


COMMANDS = sorted(
    set(
        re.findall(
            r"(?<=`|\n)(moe-theory (?:claims|verify|explore|sweep|figures|report|bench|bound|merge|deep)[^`#>\n]*)",
            README,
        )
    )
)


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_commands_parse(command):
    cli.parse(shlex.split(command)[1:])


def test_the_speed_is_what_the_benchmarks_report():
    folder = Path(__file__).parents[2] / "figures" / "bench"
    record = history.read(folder / "bench.json")
    assert record.is_complete
    assert (folder / "summary.md").read_text() == to_markdown(record, has_grid=False)
    assert (folder / "table.md").read_text() == to_markdown(record)
    assert (folder / "summary.md").read_text() in README


def test_the_verdicts_name_every_claim():
    shown = re.findall(rf"^\| `((?:{'|'.join(PAPERS)})\..+?)` \|", README, flags=re.MULTILINE)
    assert shown == [claim.id for claim in claims() if claim.id.split(".")[0] in PAPERS]


def test_the_claim_of_one_s_own_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(claim, "_REGISTERED", dict(claim._REGISTERED))
    (code,) = [code for code in blocks("python") if OWN_CLAIMS in code]
    path = tmp_path / "my_claims.py"
    path.write_text(code)
    request = session.check_request(load_claims(path), ["unit-signal"], 256, module=str(path))
    (verdict,) = session.carry_out(request).verdicts
    assert verdict.status is Status.SUPPORTED, verdict.reason


def test_printed_commands_were_found():
    assert len(COMMANDS) >= 4
