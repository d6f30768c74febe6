"""The paper's runs end, and each of its statements gets a status."""

import allocations

import moe_theory as mt
from moe_theory.verification.status import judged


def test_a_state_counts_its_rounds():
    state, _ = mt.simulate(allocations.system(allocations.Dims()), mt.root_key(0), allocations.Params(), 100)
    assert state.round == 100


def test_every_statement_gets_a_status():
    verdicts = mt.verify("allocations", readings="all", replicates=64)  # also runs the proofs
    assert [verdict.reason for verdict in verdicts if verdict.status is mt.Status.ERROR] == []
    for statement in mt.statements("allocations"):
        assert judged(statement, verdicts).missing == [], statement.name
