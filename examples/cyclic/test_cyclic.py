"""The paper's runs end, and each of its statements gets a status."""

import cyclic

import moe_theory as mt
from moe_theory.verification.status import judged


def test_a_state_counts_its_rounds_and_nothing_is_wrong_in_any():
    state, _ = mt.simulate(cyclic.system(cyclic.Dims()), mt.root_key(0), cyclic.Params(), 4, debug=True)
    assert state.round == 4


def test_every_statement_gets_a_status():
    verdicts = mt.verify("cyclic", seed=0)  # also runs the proofs
    assert [verdict.reason for verdict in verdicts if verdict.status is mt.Status.ERROR] == []
    for statement in mt.statements("cyclic"):
        assert judged(statement, verdicts).missing == [], statement.name
