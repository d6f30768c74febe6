"""Judging networks from Python: no seeds after all is decided, and requests refused before anything runs."""

import numpy as np
import pytest
from refusals import refusal

from moe_theory import deep
from moe_theory.core.errors import InvalidValueError, MissingError, UnknownNameError
from moe_theory.deep import runs
from moe_theory.runs import Run
from moe_theory.verification import Status

TINY = {"network": "mlp", "epochs": 1, "samples": 10, "batch": 10, "rounds": 4, "test_images": 40, "seed": 3}


@pytest.mark.parametrize(("share", "looks"), [(1.0, 1), (0.5, 2)])
def test_no_more_seeds_are_run_once_every_claim_is_decided(share, looks, monkeypatch):
    """Records are made up: in this share of the seeds termination is best and one expert worst, else the other way."""
    plan = deep.plan("continual-mnist-small", **(TINY | {"rounds": 15}), replicates=64)
    asked = []

    def made_up(plan, progress, threads, replicates):
        asked.append(replicates)
        info, found = runs.paper_of(plan.preset).Info, {}
        sign = np.where(np.arange(len(replicates)) < share * len(replicates), 1, -1)
        for cell, params in plan.params().items():
            rank = 3 if int(params.num_experts) == 1 else 1 if bool(params.terminate) else 2
            values = np.broadcast_to(sign * rank, (15, len(replicates))).astype(np.float32)
            records = info(**dict.fromkeys(info._fields, values))
            found[cell] = Run(params, np.arange(1, 16), np.array(replicates), None, records)
        return found

    monkeypatch.setattr(runs, "run_plan", made_up)
    found = deep.judge(plan)
    assert asked == [range(32), range(32, 64)][:looks]
    assert found.plan.replicates == 32 * looks
    assert {verdict.status for verdict in found.verdicts} == {Status.SUPPORTED if looks == 1 else Status.INCONCLUSIVE}


def test_requests_that_cannot_be_met_are_refused():
    for options, error, argument in (
        ({"preset": "continual-minst"}, UnknownNameError, "preset"),
        ({"reading": "balance"}, UnknownNameError, "reading"),
        ({"data": "nowhere"}, MissingError, ""),
        ({"experts": (4, 4)}, InvalidValueError, "experts"),
        ({"test_images": 10**6}, InvalidValueError, "test_images"),
    ):
        refused = refusal(error, deep.plan, **({"preset": "continual-mnist-small"} | options))
        assert refused.argument == argument, options
