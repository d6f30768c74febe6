"""Judging networks from Python: catches verdicts that name other data, seeds that are run though all is decided, runs
that do not resume, and requests that are refused only once something has run."""

import numpy as np
import pytest
from refusals import refusal

from moe_theory import deep
from moe_theory.core.errors import InvalidValueError, MissingError, UnknownNameError
from moe_theory.deep import datasets, runs
from moe_theory.runs import Progress, Run
from moe_theory.verification import Status

TINY = {"network": "mlp", "epochs": 1, "samples": 10, "batch": 10, "rounds": 4, "test_images": 40, "seed": 3}


class Counts(Progress):
    """Work that is planned, and done."""

    def __init__(self):
        self.planned = self.done = 0

    def add_work(self, replicate_rounds):
        self.planned += replicate_rounds

    def advance(self, replicate_rounds):
        self.done += replicate_rounds


@pytest.fixture(scope="module")
def bumps():
    """Data of one's own: four classes that any network tells apart."""
    labels = np.arange(120) % 4
    features = np.random.default_rng(0).normal(size=(120, 8)) + 4 * np.eye(8)[labels]
    return datasets.from_arrays("bumps", features[:80], labels[:80], features[80:], labels[80:])


@pytest.mark.thorough
def test_networks_are_judged_on_data_of_one_s_own(bumps, tmp_path):
    options = dict(TINY, classes=(0, 1, 2), replicates=2, folder=tmp_path, settings={"gate_scale": 5})
    plan = deep.plan("continual-mnist-small", bumps, **options)
    assert "<DataSet bumps: 80 training and 40 test images of 1 x 1 x 8, 4 classes>" in repr(plan)  # and no pixels
    found = deep.judge(plan)
    assert {verdict.data for verdict in found.verdicts} == {"bumps"}
    assert {verdict.setting for verdict in found.verdicts} == {"balanced, gate_scale=5 on bumps"}
    assert all("'gate_scale': 5" in verdict.command for verdict in found.verdicts)
    assert sum(verdict.error for verdict in found.verdicts) == pytest.approx(found.verdicts.source.error)
    errors = found.to_xarray().generalization_error
    assert dict(errors.sizes) == {"cell": 5, "round": 4, "replicate": 2}
    shown = next(cell for cell in found.summary.cells if cell.name == "M = 7")
    mean = float(errors.sel(cell="M = 7", round=4).astype(float).mean())
    assert shown.measures["generalization_error"].mean == pytest.approx(mean)

    again = deep.plan("continual-mnist-small", bumps, **options)
    counts = Counts()
    assert deep.judge(again, progress=counts).to_xarray().equals(found.to_xarray())
    assert counts.planned == counts.done == 0  # what is saved is neither


@pytest.mark.parametrize(("share", "looks"), [(1.0, 1), (0.5, 2)])
def test_no_more_seeds_are_run_once_every_claim_is_decided(share, looks, monkeypatch):
    """Records are made up: in this share of the seeds termination is best and one expert worst, else the other way."""
    plan = deep.plan("continual-mnist-small", **(TINY | {"rounds": 15}), replicates=64)
    asked = []

    def made_up(plan, on_step, threads, replicates):
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
        ({"data": (np.zeros((4, 2)), np.zeros(4))}, InvalidValueError, ""),
        ({"data": "nowhere"}, MissingError, ""),
        ({"experts": (4, 4)}, InvalidValueError, "experts"),
        ({"experts": 4}, InvalidValueError, ""),
        ({"classes": 1}, InvalidValueError, ""),
        ({"test_images": 10**6}, InvalidValueError, "test_images"),
    ):
        refused = refusal(error, deep.plan, **({"preset": "continual-mnist-small"} | options))
        assert refused.argument == argument, options
