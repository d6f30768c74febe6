"""Claims on stored sweeps: catches verdicts that simulate anything, or that are of other runs than the sweep's."""

import contextlib
import json
import shlex
import sqlite3
import sys
import textwrap

import numpy as np
import pytest

from moe_theory import Experiment, cli
from moe_theory.core.errors import InvalidValueError, MissingError
from moe_theory.runs.store import Store, pack
from moe_theory.sweep import runner
from moe_theory.sweep.manifest import Manifest, write_manifest
from moe_theory.sweep.plan import SweepPlan, fingerprint
from moe_theory.sweep.results import Results, Sweep
from moe_theory.sweep.systems import sweepable
from moe_theory.verification import Status, archive, claim, explore, registry, session, statement
from moe_theory.verification.registry import load_claims

from .declarations import make

ARGUMENTS = {
    "system": "continual",
    "rounds": 4,
    "record_every": 2,
    "axes": {"num_experts": [2, 3]},
    "reading": "weak-signal",
    "replicates": 256,
    "chunk_width": 100,
    "observables": ["forgetting"],
    "seed": 3,
}
MEANS = {"num_experts = 2": 5.0, "num_experts = 3": 6.0}


def planted(folder, **changes):
    """Results whose forgetting is Gaussian around `MEANS`, the last of two records."""
    plan, store = SweepPlan(Sweep(**{**ARGUMENTS, **changes}), fingerprint("continual")), Store(folder)
    for chunk in plan.chunks:
        noise = np.random.default_rng((chunk.cell, chunk.first)).standard_normal((2, chunk.task.width))
        store.put({chunk.name: pack({"forgetting": noise + 5 + chunk.cell})})
    write_manifest(store.folder, Manifest(plan.sweep.to_json(), plan.fingerprint), is_part=False)
    return Results(plan, store)


def change_row(store, statement, key):
    with contextlib.closing(sqlite3.connect(store.file, isolation_level=None)) as database:
        assert database.execute(f"{statement} WHERE key = ?", (key,)).rowcount == 1


@pytest.fixture(autouse=True)
def nothing_is_simulated(forgotten, monkeypatch):
    monkeypatch.setattr(session, "CellBatch", lambda *arguments, **options: pytest.fail("simulated"))


def declared(experiment, **changes):
    settings = {
        "id": "mine.claim",
        "paper": "mine",
        "experiment": experiment,
        "observe": lambda runs: runs["num_experts = 3"].records.forgetting[-1],
        "predict": lambda runs: 6.0,
        **changes,
    }
    made = make(**settings)
    claim._REGISTERED[made.id] = made
    return made


def judged(experiment, **changes):
    declared(experiment, **changes)
    (verdict,) = session.verify("mine.claim")
    return verdict


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"margin": 0.1}, Status.SUPPORTED),
        ({"margin": 0.1, "predict": lambda runs: 5.0}, Status.REFUTED),
        ({"margin": 1e-6}, Status.INCONCLUSIVE),
        ({"kind": "lower_bound", "margin": 0.0, "predict": lambda runs: 7.0}, Status.REFUTED),
        (
            {"kind": "ordering", "margin": 0.0, "observe": lambda runs: runs["num_experts = 2"].records.forgetting[-1]}
            | {"predict": lambda runs: runs["num_experts = 3"].records.forgetting[-1]},
            Status.SUPPORTED,
        ),
        ({"hypotheses": lambda dims, runs: [("s = 6", dims.num_samples == 6), ("M > 9", False)]}, Status.INAPPLICABLE),
    ],
)
def test_planted_statements_are_judged_as_they_are(tmp_path, changes, status):
    verdict = judged(Experiment.from_sweep(planted(tmp_path)), **changes)
    assert verdict.status is status
    assert verdict.reading == "weak-signal"
    assert f"replicates of the sweep {tmp_path.name} under its own reading" in verdict.reason
    if status is Status.SUPPORTED and verdict.kind == "equality":
        assert verdict.observed == pytest.approx(MEANS["num_experts = 3"], abs=0.3)
    if status is Status.INCONCLUSIVE:
        assert verdict.replicates == 256  # all there are


def test_each_look_takes_the_next_stored_replicates(tmp_path, monkeypatch):
    results = planted(tmp_path)
    asked, run_of = [], Results.run_of
    monkeypatch.setattr(
        Results,
        "run_of",
        lambda self, place, first=0, last=None: asked.append((place, first, last)) or run_of(self, place, first, last),
    )
    verdict = judged(Experiment.from_sweep(results), margin=1e-6)
    # All cells at first, then only the one that the claim looks at.
    assert asked == [(0, 0, 64), (1, 0, 64), (1, 64, 128), (1, 128, 256)]
    values = run_of(results, 1).records.forgetting[-1].astype(np.float64)
    assert verdict.observed == pytest.approx(values.mean(), rel=1e-12)


def test_more_than_there_is_is_refused_with_the_way_out(tmp_path):
    experiment = Experiment.from_sweep(planted(tmp_path), name="stored")
    declared(experiment)
    with pytest.raises(InvalidValueError, match=r"256 replicates and not 512.*raise `replicates`"):
        session.check_request("mine.claim", replicates=512)
    with pytest.raises(InvalidValueError, match=r"seed 3 and not 5"):
        session.check_request("mine.claim", seed=5)
    with pytest.raises(InvalidValueError, match=r"reading weak-signal and not unit-signal"):
        session.check_request("mine.claim", ["unit-signal"])
    with pytest.raises(InvalidValueError, match=r"noise_scale cannot be set.*stored"):
        session.check_request("mine.claim", settings={"noise_scale": 0.2})
    with pytest.raises(InvalidValueError, match="noise_scale cannot be set"):
        explore.explore("mine.claim", "noise_scale=0.1..1")
    for seed, readings in ((3, ["weak-signal", "unit-signal"]), (0, ["all"]), (0, None)):
        assert session.check_request("mine.claim", readings, seed=seed).studies[0].reading.name == "weak-signal"
    budgeted = session.check_request("mine.claim", budget=600.0)
    assert session.carry_out(budgeted).verdicts[0].replicates <= 256


def test_an_incomplete_sweep_gives_no_experiment(tmp_path):
    results = planted(tmp_path)
    change_row(results.store, "DELETE FROM results", results.plan.chunks[1].name)
    with pytest.raises(MissingError, match="5 of 6 chunks"):
        Experiment.from_sweep(tmp_path)
    with pytest.raises(InvalidValueError, match="every replicate"):
        Experiment.from_sweep(Results.open(tmp_path, partial=True))
    whole = planted(tmp_path / "whole")
    change_row(whole.store, "UPDATE results SET data = zeroblob(length(data))", whole.plan.chunks[0].name)
    declared(Experiment.from_sweep(tmp_path / "whole"))
    with pytest.raises(MissingError, match="has other bytes than were written"):
        session.verify("mine.claim")


def test_cells_may_have_readings_and_sizes_of_their_own(tmp_path):
    axes = {"max_experts": [3, 4], "reading": ["unit-signal", "weak-signal"]}
    results = planted(tmp_path, axes=axes, params={"num_experts": 3}, reading=None)
    name = "max_experts = 4, reading = weak-signal"
    experiment = Experiment.from_sweep(results)
    assert {key: dims.max_experts for key, dims in experiment.dims.items()} == {
        f"max_experts = {size}, reading = {reading}": size for size in (3, 4) for reading in axes["reading"]
    }
    verdict = judged(
        experiment,
        observe=lambda runs: runs[name].records.forgetting[-1],
        predict=lambda runs: 5.0 + 3 * (runs[name].params.signal_scale == 1.0),
    )
    assert verdict.status is Status.SUPPORTED
    assert "readings of their own" in verdict.reason


def test_samples_belong_to_the_sweep_that_they_come_from(tmp_path):
    reading = sweepable("continual").readings["weak-signal"]

    def key(**changes):
        experiment = Experiment.from_sweep(planted(tmp_path / str(changes), **changes), name="same")
        return archive.Keys().of(make(experiment=experiment), reading, 3)

    assert key() == key()
    assert len({key(), key(seed=4), key(params={"noise_scale": 0.2}), key(rounds=3)}) == 4


MODULE = """
    from moe_theory import Experiment, statement
    from moe_theory.verification.statement import ordering

    SWEPT = Experiment.from_sweep({folder!r})
    PAIR = SWEPT.together("num_experts = 2", "num_experts = 3")
    RISES = statement("rises", paper="mine", where="my notes", claim="More experts forget more.")

    @RISES.claim("mine.rises", PAIR, ordering(below=lambda two, three: three.records.forgetting[-1]), role="charitable",
        says="Three experts forget more than two.")
    def forgetting_of_two(two, three):
        return two.records.forgetting[-1]
"""


def test_the_command_of_a_verdict_gives_it_again(tmp_path, monkeypatch, capsys):
    planted(tmp_path / "swept")
    path = tmp_path / "my_claims.py"
    path.write_text(textwrap.dedent(MODULE.format(folder=str(tmp_path / "swept"))))
    registered, declarations = dict(claim._REGISTERED), dict(statement._DECLARED)
    load_claims(path)  # a paper of one's own needs no readings here
    (verdict,) = session.carry_out(session.check_request("mine.*", module=str(path))).verdicts
    assert verdict.status is Status.SUPPORTED
    assert "--reading weak-signal --seed 3" in verdict.command
    for _ in range(2):  # the second goes on from the first one's samples
        monkeypatch.setattr(claim, "_REGISTERED", dict(registered))
        monkeypatch.setattr(statement, "_DECLARED", dict(declarations))
        monkeypatch.setattr(sys, "argv", [*shlex.split(verdict.command), "--out", str(tmp_path / "out"), "--json"])
        cli.main()
        (again,) = json.loads(capsys.readouterr().out)["verdicts"]
        for field in ("status", "observed", "replicates", "command", "interval", "reason"):
            value = getattr(verdict, field)
            assert again[field] == (list(value) if isinstance(value, tuple) else value)


def test_a_stored_sweep_is_what_would_have_been_simulated(tmp_path, monkeypatch):
    monkeypatch.undo()
    registry.all_claims()
    monkeypatch.setattr(claim, "_REGISTERED", dict(claim._REGISTERED))
    arguments = {**ARGUMENTS, "replicates": 64, "chunk_width": 64}
    runner.run(Sweep(**arguments), tmp_path)
    stored = Experiment.from_sweep(tmp_path)
    simulated = Experiment(
        name="simulated",
        dims=stored.dims,
        system=stored.system,
        cells={name: {"num_experts": int(name[-1])} for name in MEANS},
        num_rounds=4,
        record_every=2,
        observe=stored.observe,
        replicates=64,
    )
    declared(stored, id="mine.stored")
    declared(
        simulated,
        id="mine.simulated",
        paper="continual",
        observe=lambda runs: runs["num_experts = 3"].records["forgetting"][-1],
    )
    one, other = session.verify(["mine.simulated", "mine.stored"], readings="weak-signal", seed=3)
    assert one.observed == pytest.approx(other.observed, rel=1e-5)
    assert {one.claim: one.replicates, other.claim: other.replicates} == {"mine.simulated": 64, "mine.stored": 64}
