"""Promises of the paper, whatever it finds: that its runs end, and that each statement gets a status."""

import single

import moe_theory as mt
from moe_theory.verification.status import judged


def test_a_state_counts_its_rounds_and_nothing_is_wrong_in_any():
    state, _ = mt.simulate(single.system(single.Dims()), mt.root_key(0), single.Params(), 4, debug=True)
    assert state.round == 4


def test_every_statement_gets_a_status():
    verdicts = mt.verify("single", seed=0)  # which runs the proofs that there are
    assert [verdict.reason for verdict in verdicts if verdict.status is mt.Status.ERROR] == []
    for statement in mt.statements("single"):
        assert judged(statement, verdicts).missing == [], statement.name
