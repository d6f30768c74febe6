"""Promises of a paper, whatever it finds: that its runs end, and that each statement gets a status."""

import allocations

import moe_theory as mt
from moe_theory.verification.status import judged


def test_a_state_counts_its_rounds():
    state, _ = mt.simulate(allocations.system(allocations.Dims()), mt.root_key(0), allocations.Params(), 100)
    assert state.round == 100


def test_every_statement_gets_a_status():
    verdicts = mt.verify("allocations", readings="all", replicates=64)  # which runs the proofs that there are
    assert [verdict.reason for verdict in verdicts if verdict.status is mt.Status.ERROR] == []
    for statement in mt.statements("allocations"):
        assert judged(statement, verdicts).missing == [], statement.name
