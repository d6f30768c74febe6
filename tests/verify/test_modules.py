"""A user's own file of claims: catches one that is not judged, takes others down with it, or fails without a word."""

import sys
import textwrap
from pathlib import Path

import pytest

from moe_theory.core.errors import InvalidClaimError
from moe_theory.verify import Status, evidence, registry, session
from moe_theory.verify.registry import load_claims

pytestmark = pytest.mark.usefixtures("forgotten")

OWN = """
    import numpy as np
    from moe_theory import claim
    from moe_theory.continual.experiments import HISTORY

    @claim("mine.moves", paper="continual", where="my notes", kind="upper_bound")
    class Moves:
        '''An expert moves by less than 10 a round.'''

        experiment = HISTORY
        observe = lambda runs: runs["M = 5"].records.update_norm[-1]
        predict = lambda runs: 10.0
"""
BROKEN = """
    from moe_theory import claim
    from moe_theory.continual.experiments import HISTORY

    def claims(name, values):
        @claim(name, paper="continual", where="my notes", kind="upper_bound")
        class Broken:
            '''Broken.'''

            experiment = HISTORY
            observe = values
            predict = lambda runs: 1.0

    claims("mine.raises", lambda runs: runs["no such cell"])
    claims("mine.nan", lambda runs: runs["M = 5"].records.error[-1] * float("nan"))
    claims("mine.shape", lambda runs: runs["M = 5"].records.error)
    claims("mine.good", lambda runs: runs["M = 5"].records.error[-1] * 0)
"""


def written(folder, text):
    path = folder / "my_claims.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_a_claim_of_fifteen_lines_is_judged(tmp_path):
    path = written(tmp_path, OWN)
    assert len(textwrap.dedent(OWN).strip().splitlines()) <= 15
    assert load_claims(path) == ["mine.moves"]
    request = session.check_request("mine.*", ["unit-signal"], 256, module=str(path))
    (verdict,) = session.carry_out(request).verdicts
    assert verdict.status is Status.SUPPORTED
    assert f"--module {path}" in verdict.command


def test_each_broken_claim_is_an_error_of_its_own(tmp_path):
    load_claims(written(tmp_path, BROKEN))
    verdicts = session.carry_out(session.check_request("mine.*", ["unit-signal"], 64)).verdicts
    outcome = {verdict.claim: (verdict.status, verdict.reason) for verdict in verdicts}
    assert outcome["mine.raises"] == (
        Status.ERROR,
        "UnknownNameError: unknown cell 'no such cell'. Did you mean 'M = 5'? Known: M = 1, M = 5.",
    )
    assert "not finite in 64 of 64 replicates" in outcome["mine.nan"][1]
    assert "one row a replicate" in outcome["mine.shape"][1]
    assert outcome["mine.good"][0] is Status.SUPPORTED


def test_a_paper_of_ones_own_brings_its_readings(tmp_path):
    own = OWN.replace('paper="continual"', 'paper="mine"')
    with pytest.raises(InvalidClaimError, match="READINGS"):
        load_claims(written(tmp_path, own))
    own += """
    from moe_theory import continual
    from moe_theory.core.papers import Reading

    READINGS = {"loud": Reading("loud", "strong signals", continual.Params(), {"signal_scale": 9.0})}
"""
    load_claims(written(tmp_path, own.replace("mine.moves", "mine.louder")))
    request = session.check_request("mine.louder", None, 64)
    assert [study.reading.name for study in request.studies] == ["loud"]
    assert session.carry_out(request).verdicts[0].status is Status.SUPPORTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("1 +", "SyntaxError"),
        ("x = 1", "declares no claim"),
        (OWN.replace("mine.moves", "continual.lemma-3"), "registered already"),
    ],
)
def test_a_file_that_does_not_work_says_why(tmp_path, text, message):
    with pytest.raises(InvalidClaimError, match=message):
        load_claims(written(tmp_path, text))
    with pytest.raises(InvalidClaimError, match="no Python file"):
        load_claims(tmp_path / "missing.py")


def test_samples_belong_to_the_files_that_they_come_from(tmp_path):
    """Catches samples of an edited claim, or of an edited neighbour of it, that are taken for current."""
    (tmp_path / "bounds.py").write_text("LARGE = 10.0\n")
    path = written(tmp_path, OWN.replace("import numpy as np", "from bounds import LARGE").replace("10.0", "LARGE"))
    (id,) = load_claims(path)
    reading = registry.readings_of("continual")["unit-signal"]

    def key():
        return evidence.key_of(registry.all_claims()[id], reading, 0)

    keys = [key(), key()]
    assert keys[0] == keys[1]
    (tmp_path / "bounds.py").write_text("LARGE = 11.0\n")
    keys.append(key())
    path.write_text(path.read_text() + "# changed\n")
    keys.append(key())
    assert len(set(keys)) == 3
    sys.modules.pop("bounds")


def test_an_edit_of_a_statement_s_file_forgets_the_samples_of_its_claims_alone(monkeypatch):
    claims = [registry.all_claims()[id] for id in ("edge.lemma-5.lower", "edge.lemma-6.order")]
    reading = registry.readings_of("edge")["sibling"]
    before = [evidence.key_of(claim, reading, 0) for claim in claims]
    (edited,), read = evidence.sources_of(claims[0]), Path.read_bytes
    assert edited.name == "lemma_5.py"
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# edited" * (path == edited))
    after = [evidence.key_of(claim, reading, 0) for claim in claims]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]
    shared = evidence._shared_sources()
    assert {"core/engine.py", "edge/experiments.py", "edge/theory.py", "verify/judgement.py"} <= set(shared)
    assert not [path for path in shared if "statements" in path or path.startswith(("report/", "cli/"))]
