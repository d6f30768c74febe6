"""The command that merges as a user meets it: catches tracebacks, a table without slots, files that are not written."""

import csv
import json
import os
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.random import root_key
from moe_theory.merging.benchmark import streams
from moe_theory.merging.policies import POLICIES
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import Recipe
from moe_theory.merging.testbed.training import PATTERN, arrays_of
from moe_theory.runs.tensors import read_safetensors, write_safetensors

SETTING = Recipe(batch_size=96, num_experts=3, width=16, hidden=8, num_layers=1, num_heads=2)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "model.safetensors"
    model = training.initial(root_key(0), SETTING)
    copies = [
        jax.tree.map(lambda part: jnp.concatenate([part, part + 0.1, -part]), layer.experts) for layer in model.layers
    ]
    write_safetensors(path, arrays_of(transformer.replace_experts(model, copies)), {})
    return path


def test_slots_are_shown_and_written(checkpoint, tmp_path, ran):
    few = ("--slots", 6, "--slot-size", 8, "--policy", "uniform", "--out", tmp_path / "out")
    printed = ran("merge", "--checkpoint", checkpoint, *few).out
    assert printed.count("slot ") >= 6
    assert "uniform: mean reward" in printed
    own, equal, _ = printed.partition("uniform: ")[2].split(". ", maxsplit=2)
    windows = [re.sub(r"0\.\d+", "", words.partition("0.")[2]) for words in (own, equal)]
    assert windows[0] == windows[1]  # both over all slots and over the last ones
    rows = list(csv.DictReader((tmp_path / "out" / "slots.csv").read_text().splitlines()))
    assert [int(row["slot"]) for row in rows] == list(range(1, 7))
    for row in rows:
        weights = [float(row[f"weight_{expert}"]) for expert in range(3)]
        assert sum(weights) == pytest.approx(1, abs=1e-5)
        assert sum(int(row[f"count_{task}"]) for task in range(8)) == 8
    assert ElementTree.parse(tmp_path / "out" / "merge.svg").getroot().tag.endswith("svg")


def test_json_says_the_same_and_the_checkpoint_is_merged(checkpoint, tmp_path, ran):
    merged = tmp_path / "merged.safetensors"
    few = ("--slots", 3, "--slot-size", 8, "--policy", "average", "--out", tmp_path / "out")
    document = json.loads(ran("merge", "--checkpoint", checkpoint, *few, "--write-merged", merged, "--json").out)
    assert [slot["slot"] for slot in document["slots"]] == [1, 2, 3]
    assert document["mean_reward"] == pytest.approx(np.mean([slot["reward"] for slot in document["slots"]]))
    assert document["equal_weights"] == pytest.approx(document["mean_reward"])  # what `average` is
    assert str(merged) in document["files"]
    assert merged.stat().st_size < checkpoint.stat().st_size


def test_every_policy_serves_the_same_slots(checkpoint, tmp_path, ran):
    few = ("--slots", 3, "--slot-size", 8, "--policy", "all", "--out", tmp_path / "out")
    document = json.loads(ran("merge", "--checkpoint", checkpoint, *few, "--json").out)
    found = {row["policy"]: row["mean_reward"] for row in document["policies"]}
    assert found.keys() == {"tanbr", "nucb", "uniform", "average", "best-expert", "gradient"}  # no task has an expert
    alone = json.loads(ran("merge", "--checkpoint", checkpoint, *few[:-3], "average", *few[-2:], "--json").out)
    assert found["average"] == alone["mean_reward"]
    assert ElementTree.parse(tmp_path / "out" / "policies.svg").getroot().tag.endswith("svg")


OWN = "num_tasks = 1\ndef slots(seed):\n    return [0, 1]\ndef serve(experts, slot):\n    return [{reward}], [1]\n"


def test_a_stream_of_one_s_own(checkpoint, tmp_path, ran):
    path = tmp_path / "own.py"
    path.write_text(OWN.format(reward=0.25))
    options = ("--pattern", PATTERN, "--stream", path, "--policy", "average", "--out", tmp_path)
    assert "mean reward 0.250 over 2 slots" in ran("merge", "--checkpoint", checkpoint, *options).out


def test_a_merge_is_of_all_experts_unless_told(tmp_path, ran):
    """Would catch `Params.max_active`, which is 8, in place of the stream's number of experts."""
    write_safetensors(tmp_path / "ten.safetensors", {f"layers.0.experts.{k}.w": np.ones(1) for k in range(10)}, {})
    (tmp_path / "own.py").write_text(OWN.format(reward=0.25))
    options = ["--stream", tmp_path / "own.py", "--policy", "average", "--out", tmp_path, "--json"]
    document = json.loads(ran("merge", "--checkpoint", tmp_path / "ten.safetensors", *options).out)
    assert document["slots"][0]["weights"] == pytest.approx([0.1] * 10)


def test_a_checkpoint_is_merged_once(tmp_path, ran):
    """Experts that are found, by weights that are equal or given, in each form of the document."""
    arrays = {f"layers.0.mlp.experts.{k}.w": np.full(2, k) * 1.0 for k in range(3)}
    write_safetensors(tmp_path / "m.safetensors", arrays | {"layers.0.mlp.gate.weight": np.eye(3)}, {})
    common = ("merge", "--checkpoint", tmp_path / "m.safetensors", "--weights")
    printed = ran(*common, "equal", "--write-merged", tmp_path / "a.safetensors")
    assert "experts: layers.{layer}.mlp.experts.{expert}.{name}" in printed.out
    assert "2 tensors merged (average), 0 copied" in printed.out
    np.testing.assert_allclose(read_safetensors(tmp_path / "a.safetensors")[0]["layers.0.mlp.experts.0.w"], [1, 1])
    document = json.loads(ran(*common, "0.5,0,0.5", "--write-merged", tmp_path / "b.safetensors", "--json").out)
    assert document["merged"]["num_experts"] == 3
    assert document["patterns"] == ["layers.{layer}.mlp.experts.{expert}.{name}"]
    assert document["files"] == [str(tmp_path / "b.safetensors")]
    np.testing.assert_allclose(
        read_safetensors(tmp_path / "b.safetensors")[0]["layers.0.mlp.gate.weight"], [[0.5, 0, 0.5]]
    )


def test_a_policy_of_a_stream_s_own_file(checkpoint, tmp_path, ran):
    path = tmp_path / "own.py"
    text = "from moe_theory.merging.policies import POLICIES\nPOLICIES['mine'] = POLICIES['average']\n"
    path.write_text(text + OWN.format(reward=0.25))
    try:
        printed = ran("merge", "--checkpoint", checkpoint, "--stream", path, "--policy", "mine", "--out", tmp_path).out
    finally:
        POLICIES.pop("mine", None)
    assert "mine: mean reward 0.250 over 2 slots" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["equal"], "--write-merged: name both"),
        (["equal", "--write-merged", "o", "--stream", "own.py"], "Leave one out"),
        (["half", "--write-merged", "o"], "--weights 'half' must be 'equal' or numbers"),
        (["1,1,1", "--write-merged", "o"], "must sum to 1"),
        (["0.5,0.5", "--write-merged", "o"], "weights have shape (2,), but layer 0 has 3 experts"),
        (["equal", "--write-merged", "o", "--as", "moe-2"], "'moe-2' is not one of moe-1, dense"),
        (["equal", "--write-merged", "o", "--method", "tie"], "Did you mean 'ties'"),
        (["equal", "--write-merged", "o", "--method", "ties"], "which is not given"),
        (["equal", "--write-merged", "o", "--method", "dare", "--base", "b"], "b is not there"),
        (["equal", "--write-merged", "o", "--pattern", "w.{layer}.{expert}"], "Nearest"),
    ],
)
def test_a_merge_that_cannot_be_says_why(arguments, said, checkpoint, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refused("merge", "--checkpoint", checkpoint, "--weights", *arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "ties"], "--method, --base and --scale are for --weights"),
        (["--policy", "tanber"], "Did you mean 'tanbr'"),
        (["--monitor", "oracle"], "unknown monitor 'oracle'"),
        (["--slots", "0"], "slots=0"),
        (["--max-active", "9", "--drift", "-2"], "mix_drift=-2"),
        (["--max-active", "0"], "max_active=0"),
        (["--reading", "random"], "Did you mean 'random-"),
        (["--checkpoint", "missing.safetensors"], "missing.safetensors"),
        (["--checkpoint", "text.safetensors"], "text.safetensors"),
        (["--checkpoint", "."], ". is a folder"),
        (["--pattern", "a.{layer}.{expert}.{name}"], "give --stream a Python file"),
        (["--pattern", "a.{layer}.{expert}.{name}", "--stream", "own.py"], "a.{layer}.{expert}.{name}"),
        (["--stream", "own.py", "--checkpoint", "CHECKPOINT"], "reward of task 0 is NaN"),
        (["--stream", "missing.npz"], "missing.npz"),
        (["--tasks", "digit"], "Did you mean 'digits'"),
        (["--tasks", "sequences"], "does not read inputs of the tasks 'sequences'"),
        (["--out", "text.safetensors"], "text.safetensors"),
        (["--write-merged", "text.safetensors"], "exists already"),
    ],
)
def test_mistakes_are_one_line(arguments, said, checkpoint, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.safetensors").write_text("no tensors")
    (tmp_path / "own.py").write_text(OWN.format(reward="float('nan')"))
    arguments = [str(checkpoint) if part == "CHECKPOINT" else part for part in arguments]
    if "--checkpoint" not in arguments:
        arguments += ["--checkpoint", str(checkpoint)]
    few = ("--slot-size", 8, "--slots", 2, "--policy", "average")
    assert said in refused("merge", *few, *arguments, may_print=True)


def test_a_checkpoint_is_named_where_one_is_needed(tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN.format(reward=0.5))
    for arguments, said in (
        (["--stream", "own.py"], "name it by --checkpoint"),
        (["--write-merged", "x.safetensors"], "--checkpoint"),
    ):
        assert said in refused("merge", *arguments)
    assert os.listdir(tmp_path / "runs" / "merge") == []


MINE = """
import numpy as np

NUMBER = 3
class Mine:
    def __init__(self, num_experts, num_tasks, seed):
        self.weights = np.full(num_experts, 1 / num_experts)
    def choose(self, mix):
        return self.weights
    def learn(self, rewards, counts):
        pass
"""


def test_a_policy_of_ones_own_is_placed_on_recorded_streams(tmp_path, ran, monkeypatch):
    at = streams.Condition("agreeing", "drifting", streams.ESTIMATED)  # a policy that looks at neither plays all alike
    monkeypatch.setattr(streams, "CONDITIONS", [at, at._replace(tasks="conflicting")])
    (tmp_path / "mine.py").write_text(MINE)
    few = ("--streams", "recorded", "--tasks", "agreeing", "--slots", 32, "--out", tmp_path / "out")
    document = json.loads(ran("merge", *few, "--policy", f"{tmp_path}/mine.py:Mine", "--json").out)
    assert [at["tasks"] for at in document["conditions"]] == ["agreeing"]
    (same,) = [each for each in document["differences"] if each["rival"] == "average"]
    assert abs(same["difference"]) < 1e-3  # what it is, but for ties by rounding
    rows = list(csv.DictReader((tmp_path / "out" / "places.csv").read_text().splitlines()))
    assert len(rows) == len(document["differences"])
    assert {row["rival"] for row in rows if row["verdict"] == "behind"} >= {"not merged", "regmean"}
    assert ElementTree.parse(tmp_path / "out" / "places.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "mine.py:Nine"], "Did you mean 'Mine'"),
        (["--policy", "mine.py:NUMBER"], "is 3: neither a merging.Policy nor a class"),
        (["--policy", "missing.py:Mine"], "missing.py is no Python file"),
        (["--policy", "cma"], "Did you mean 'cma-es'"),
        (["--tasks", "digits"], "Known: agreeing, conflicting, sequences"),
        (["--policy", "mine.py"], "Write it as FILE:NAME"),
        (["--slots", "100"], "slots=100 must be one of 32, 64, 128, 256, 512"),
        (["--checkpoint", "x"], "--checkpoint is not for recorded streams"),
        (["--monitor", "average"], "--monitor is not for recorded streams"),
    ],
)
def test_what_cannot_be_scored_is_one_line(arguments, said, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    assert said in refused("merge", "--streams", "recorded", *arguments)
