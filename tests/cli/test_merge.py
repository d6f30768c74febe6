"""The command that merges as a user meets it: catches tracebacks, a table without slots, files that are not written."""

import csv
import json
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest

from moe_theory.core.random import root_key
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import Recipe


@pytest.fixture(scope="module")
def model():
    """A small model with three experts a layer, which differ; not trained."""
    start = training.initial(
        root_key(0), Recipe(batch_size=96, num_experts=3, width=16, hidden=8, num_layers=1, num_heads=2)
    )
    copies = [
        jax.tree.map(lambda part: jnp.concatenate([part, part + 0.1, -part]), layer.experts) for layer in start.layers
    ]
    return transformer.replace_experts(start, copies)


@pytest.fixture(autouse=True)
def untrained(model, monkeypatch):
    """In place of the minute that training takes."""
    monkeypatch.setattr(training, "trained", lambda setting, progress: model)


@pytest.mark.thorough
def test_slots_are_shown_and_written(tmp_path, ran):
    printed = ran("merge", "--slots", 6, "--slot-size", 8, "--policy", "uniform", "--out", tmp_path / "out").out
    assert "The same 6 slots by each policy" in printed
    assert {"uniform", "average"} <= set(printed.split())
    table = list(csv.DictReader((tmp_path / "out" / "slots.csv").read_text().splitlines()))
    rows = [row for row in table if row["policy"] == "uniform"]
    assert [int(row["slot"]) for row in rows] == list(range(1, 7))
    for row in rows:
        weights = [float(row[f"weight_{expert}"]) for expert in range(3)]
        assert sum(weights) == pytest.approx(1, abs=1e-5)
        assert sum(int(row[f"count_{task}"]) for task in range(8)) == 8
    assert ElementTree.parse(tmp_path / "out" / "merge.svg").getroot().tag.endswith("svg")


@pytest.mark.thorough
def test_every_policy_serves_the_same_slots(tmp_path, ran):
    few = ("--slots", 3, "--slot-size", 8, "--policy", "all", "--out", tmp_path / "out")
    document = json.loads(ran("merge", *few, "--json").out)
    found = {row["policy"]: row["mean_reward"] for row in document["policies"]}
    assert found.keys() == {"tanbr", "nucb", "uniform", "average", "best-expert", "gradient"}  # no task has an expert
    alone = json.loads(ran("merge", *few[:-3], "average", *few[-2:], "--json").out)
    assert found["average"] == alone["mean_reward"]
    assert ElementTree.parse(tmp_path / "out" / "merge.svg").getroot().tag.endswith("svg")


def test_mistakes_are_one_line(refused, inside):
    (inside / "text.txt").write_text("no Python")
    for said, *arguments in (
        ("Did you mean 'tanbr'", "--policy", "tanber"),
        ("slots=0", "--slots", "0"),
        ("text.txt", "--out", "text.txt"),
    ):
        assert said in refused("merge", "--slots", 2, "--policy", "average", *arguments, may_print=True)
