"""A user's own file of claims: catches one that is not judged, takes others down with it, or fails without a word."""

import textwrap

import pytest
from refusals import refusal

from moe_theory.core.errors import DeclarationError
from moe_theory.verification import Status, session
from moe_theory.verification.registry import load_claims

pytestmark = pytest.mark.usefixtures("forgotten")

OWN = """
    from moe_theory import statement
    from moe_theory.continual.experiments import HISTORY
    from moe_theory.verification.statement import bound

    MOVES = statement("moves", paper="continual", where="my notes", claim="Experts move in small steps.")

    @MOVES.claim("mine.moves", HISTORY.at("M = 5"), bound(at_most=10.0), role="charitable",
        says="An expert moves by less than 10 a round.")
    def last_move(run):
        return run.records.update_norm[-1]
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


def test_a_paper_of_ones_own_brings_its_readings(tmp_path):
    own = OWN.replace('paper="continual"', 'paper="mine"')
    assert "PAPER = moe_theory.Paper('mine', ...)" in str(
        refusal(DeclarationError, load_claims, written(tmp_path, own))
    )
    own += """
    from moe_theory import Paper, Reading, continual

    LOUD = Reading("loud", "strong signals", continual.Params(), {"signal_scale": 9.0})
    PAPER = Paper("mine", __name__, "mine", {"loud": LOUD})
"""
    load_claims(written(tmp_path, own.replace("mine.moves", "mine.louder").replace('"moves"', '"louder"')))
    request = session.check_request("mine.louder", None, 256)
    assert [study.reading.name for study in request.studies] == ["loud"]
    assert session.carry_out(request).verdicts[0].status is Status.SUPPORTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        (
            "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E",
            "cannot be run: E: its message cannot be read",
        ),
        ("x = 1", r"declares no claim\. Decorate a function with @moe_theory\.statement\(\.\.\.\)\.claim"),
        ("x = 1\nx.y", r"AttributeError: .* \(my_claims\.py, line 2: x\.y\)$"),
        (OWN.replace("mine.moves", "continual.lemma-3"), "already registered"),
        (OWN.replace("where=", "were="), r"statement moves: were: Extra inputs are not permitted"),
        (OWN.replace("charitable", "generous"), "role='generous' must be one of charitable, literal"),
        (OWN.replace("M = 5", "M = 6"), r"unknown cell 'M = 6'\. Did you mean 'M = 5'\? Known: M = 1, M = 5\."),
        (OWN.replace('paper="continual", ', ""), r"DeclarationError: statement 'moves': name its paper as paper="),
        (OWN.replace('"moves", paper="continual"', '"lemma-4", paper="edge"'), "lemma-4 of edge is already declared"),
    ],
)
def test_a_file_that_does_not_work_says_why_in_a_line(tmp_path, text, message):
    with pytest.raises(DeclarationError, match=message) as failure:
        load_claims(written(tmp_path, text))
    assert "\n" not in str(failure.value)
    with pytest.raises(DeclarationError, match="not a Python file"):
        load_claims(tmp_path / "missing.py")


FAULTY = """
    from typing import Any, NamedTuple
    import jax.numpy as jnp
    import moe_theory as mt
    from moe_theory.verification.statement import bound

    class State(NamedTuple):
        value: Any
        round: Any

    class Params(NamedTuple):
        scale: float = 1.0

    READINGS = {name: mt.Reading(name, name, Params(scale)) for name, scale in (("plain", 1.0), ("large", 2.0))}
    PAPER = mt.Paper("mine", __name__, "mine", READINGS)
    MINE = mt.statement("mine", paper="mine", where="my notes", claim="Systems run.")

    def begin(key, params):
        return State(jnp.zeros(2), jnp.int32(0))

    def add(name, init=begin, step=lambda key, state, params: (State(state.value, state.round + 1), ())):
        seen = lambda state, info: state.value.max()
        runs = mt.Experiment(name, None, mt.System(init, step), {"run": {}}, 4, observe=seen, replicates=64)
        small = MINE.ours(f"mine.{name}", runs.at("run"), bound(at_most=1.0), exact=True, says="Small.")  # no key
        small(lambda run: run.records[-1])

    add("dict", lambda key, params: {"round": jnp.int32(0)})
    add("array", lambda key, params: jnp.zeros(2))
    add("round", lambda key, params: State(jnp.zeros(2), jnp.zeros(3)))
    add("init", lambda key, params: params.scal)
    add("step", step=lambda key, state, params: (state.valu, ()))
    add("type", step=lambda key, state, params: (State(state.value > 0, state.round + 1), ()))
    add("shape", step=lambda key, state, params: (State(state.value[:1], state.round + 1), ()))
    add("alone", step=lambda key, state, params: State(state.value, state.round + 1))
    add("good")
"""


def test_a_faulty_system_is_an_error_of_its_claims_alone(tmp_path):
    load_claims(written(tmp_path, FAULTY))
    verdicts = session.carry_out(session.check_request("mine.*", None, 64)).verdicts
    outcome = {verdict.claim: (verdict.status, verdict.reason) for verdict in verdicts}
    assert outcome.pop("mine.good")[0] is Status.SUPPORTED
    assert {status for status, _ in outcome.values()} == {Status.ERROR}
    told = {id: reason for id, (_, reason) in outcome.items()}
    assert "the state is a 'dict' without a field `round`" in told["mine.dict"]
    assert "the state is an array without a field `round`" in told["mine.array"]
    assert "the state's `round` is float32 (3,), not a whole number" in told["mine.round"]
    assert "has no attribute 'scal'" in told["mine.init"]
    assert "has no attribute 'valu'" in told["mine.step"]
    assert "the state's value as bool (2,), but `init` returned it as float32 (2,)" in told["mine.type"]
    assert "the state's value as float32 (1,), but `init` returned it as float32 (2,)" in told["mine.shape"]
    assert "`step` must return the pair (state, info)" in told["mine.alone"]
    assert not any("\n" in reason for reason in told.values())
