"""Merging for a stream of one's own: catches slots that are lost or served twice, and streams that are misread."""

import os
import zipfile
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from moe_theory import merging
from moe_theory.core.errors import InvalidRewardError, InvalidStreamError, MoeTheoryError
from moe_theory.core.random import root_key
from moe_theory.merging import Feedback, Params, online, policies
from moe_theory.merging.online import checked, from_file, from_module, merge_online
from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import VALIDATION, Recipe, examples
from moe_theory.merging.testbed.training import PATTERN, arrays_of
from moe_theory.runs.tensors import InvalidCheckpointError, write_safetensors

SETTING = Recipe(batch_size=96, num_experts=3, num_tasks=4, width=16, hidden=8, num_layers=1, num_heads=2)


class Corner:
    """A stream of two tasks whose reward is the weight of one expert; it remembers what it was asked."""

    num_experts, num_tasks = 3, 2

    def __init__(self, num_slots: int) -> None:
        self.num_slots, self.asked = num_slots, []

    def slots(self) -> Iterator[int]:
        return iter(range(self.num_slots))

    def serve(self, slot: int, weights: np.ndarray) -> Feedback:
        self.asked.append((slot, weights))
        return Feedback(np.array([weights[1], 0.5]), np.array([3, 0 if slot % 2 else 1]))


@pytest.fixture(scope="module")
def model():
    return with_experts(jax.device_get(jax.jit(lambda: training.initial(root_key(0), SETTING))()))


def with_experts(model):
    """Three experts a layer, which differ."""
    copies = [
        jax.tree.map(lambda part: np.concatenate([part, part + np.float32(0.1), -part]), layer.experts)
        for layer in model.layers
    ]
    return transformer.replace_experts(model, copies)


def test_slots_are_served_once_and_in_order():
    stream = Corner(12)
    rows = list(merge_online(stream, policies.UNIFORM, 9))
    assert [slot for slot, _ in stream.asked] == list(range(9))
    assert [row.slot for row in rows] == list(range(1, 10))
    for row, (slot, weights) in zip(rows, stream.asked, strict=True):
        np.testing.assert_allclose(row.weights, weights, atol=1e-6)
        assert weights.sum() == pytest.approx(1)
        counts = np.array([3, 0 if slot % 2 else 1])
        assert row.reward == pytest.approx((3 * weights[1] + 0.5 * counts[1]) / counts.sum())
    assert rows[-1].mean_reward == pytest.approx(np.mean([row.reward for row in rows]))
    # The monitor knows a slot's counts from the next one on.
    np.testing.assert_allclose(rows[0].estimated_mix, 0.5)
    np.testing.assert_allclose(rows[1].estimated_mix, 0.9 * 0.5 + 0.1 * np.array([0.75, 0.25]), atol=1e-6)


def test_a_stream_that_ends_early_ends_the_run():
    assert len(list(merge_online(Corner(4), policies.AVERAGE, 100))) == 4


def test_a_policy_learns_from_what_is_served():
    rows = list(merge_online(Corner(60), policies.BEST_EXPERT, 60))
    assert [int(np.argmax(row.weights)) for row in rows[:3]] == [0, 1, 2]
    assert np.mean([row.weights[1] for row in rows[30:]]) > 0.5


def test_policies_are_compared_on_the_same_slots():
    opened = []

    def open_stream():
        opened.append(Corner(5))
        return opened[-1]

    found = merging.compare(open_stream, num_slots=4)
    assert found.keys() == policies.POLICIES.keys() - {policies.MIX}  # three experts, two tasks
    served = [stream.asked for stream in opened if stream.asked]
    assert [[slot for slot, _ in asked] for asked in served] == [[0, 1, 2, 3]] * len(found)
    for rows, asked in zip(found.values(), served, strict=True):
        np.testing.assert_allclose([row.weights for row in rows], [weights for _, weights in asked], atol=1e-6)
    few = merging.compare(open_stream, [policies.TANBR], num_slots=4, max_active=1)
    assert {np.count_nonzero(row.weights) for row in few[policies.TANBR]} == {1}
    alone = list(merge_online(Corner(4), policies.TANBR, 4, online.params_for(policies.TANBR, 3)))
    assert [row.reward for row in alone] == [row.reward for row in found[policies.TANBR]]
    assert online.equal_rewards(Corner(5), 4) == [row.reward for row in found[policies.AVERAGE]]


@pytest.mark.parametrize(
    ("slots", "options", "said"),
    [
        (3, {"names": ["tanber"]}, "Did you mean 'tanbr'"),
        (3, {"max_active": 4}, "max_active=4 must be at most num_experts=3"),
        (0, {}, "no slots"),
    ],
)
def test_policies_that_cannot_be_compared_are_refused(slots, options, said):
    with pytest.raises(MoeTheoryError, match=said):
        merging.compare(lambda: Corner(slots), **options)


@pytest.mark.parametrize(
    ("served", "said"),
    [
        (([0.5, np.nan], [1, 1]), "reward of task 1 is NaN"),
        (([0.5, 1.5], [1, 1]), "reward of task 1 is 1.5"),
        (([0.5], [1]), r"shape \(1,\) must be of shape \(2,\)"),
        (([0.5, 0.5], [0, 0]), "not all of them 0"),
        (([0.5, 0.5], [1.5, 1]), "must be whole numbers"),
        (0.5, "must return"),
    ],
)
def test_rewards_that_are_none_are_refused(served, said):
    with pytest.raises(InvalidRewardError, match=said):
        checked(served, 2, 7)


def test_a_task_without_requests_may_have_any_reward():
    np.testing.assert_array_equal(checked(([np.nan, 0.25], [0, 4]), 2, 1).rewards, [0, 0.25])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "tanber"}, "Did you mean 'tanbr'"),
        ({"monitor": "oracle"}, "unknown monitor 'oracle'"),
        ({"params": Params(smoothness_ratio=1.0)}, "smoothness_ratio=1.0"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_first_slot(arguments, said):
    stream = Corner(3)
    with pytest.raises(MoeTheoryError, match=said):
        merge_online(stream, **{"policy": policies.AVERAGE, "num_slots": 3} | arguments)
    assert stream.asked == []


def test_requests_are_read_from_a_file(model, tmp_path):
    data = examples(SETTING, VALIDATION)
    chosen = np.array([0, 900, 5, 400, 1100])
    tasks = np.array([0, 2, 0, 1, 3])
    path = tmp_path / "requests.npz"
    np.savez(path, inputs=data.inputs[chosen], labels=data.labels[chosen], tasks=tasks, slots=[4, 4, 2, 4, 2])
    stream = from_file(path, model)
    slots = list(stream.slots())
    assert (stream.num_experts, stream.num_tasks, [len(slot.labels) for slot in slots]) == (3, 4, [2, 3])
    weights = np.array([0.2, 0.3, 0.5])
    served = stream.serve(slots[1], weights)
    answer = jax.jit(lambda weights, inputs: transformer.forward(merge.weighted(model, weights), inputs, merge.single))
    right = np.argmax(np.asarray(answer(weights, data.inputs[[0, 900, 400]])), axis=1) == data.labels[[0, 900, 400]]
    np.testing.assert_array_equal(served.counts, [1, 1, 1, 0])
    np.testing.assert_allclose(served.rewards, [right[0], right[2], right[1], 0])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tasks": None}, "has no array"),
        ({"tasks": np.array([0.5, 1.0])}, "must be whole numbers"),
        ({"inputs": np.zeros((2, 3, 5), np.float32)}, "the checkpoint reads"),
        ({"slots": np.array([-1, 0])}, "counted from 0"),
        ({"labels": np.array([1, 2, 3])}, "one for each input"),
        (
            {"labels": np.array([1, 2**32])},
            "labels must be below 10, but one is 4294967296",
        ),  # class 0, were it cast first
        ({"labels": np.array([1, 10])}, "labels must be below 10"),
        ({"tasks": np.array([0, 2**62])}, "tasks must be below 1024"),  # or a policy would remember as many
        ({"tasks": np.array([0, 2**63], np.uint64)}, "tasks must be below 1024"),
        ({"inputs": "complex"}, "'inputs' holds complex numbers"),
        ({"inputs": "S8"}, "'inputs' holds bytes of text"),
        ({"inputs": 1e300}, "no finite numbers"),
        ({"inputs": np.nan}, "no finite numbers"),
    ],
)
def test_a_file_that_is_no_stream_is_refused(changed, said, model, tmp_path):
    data = examples(SETTING, VALIDATION)
    arrays = {
        "inputs": data.inputs[:2],
        "labels": np.array([1, 2]),
        "tasks": np.array([0, 1]),
        "slots": np.array([0, 0]),
    }
    path = tmp_path / "requests.npz"
    if isinstance(kind := changed.get("inputs"), str):
        changed = {"inputs": data.inputs[:2].astype(kind)}
    elif isinstance(kind, float):
        changed = {"inputs": np.full(data.inputs[:2].shape, kind)}
    np.savez(path, **{name: array for name, array in (arrays | changed).items() if array is not None})
    with pytest.raises(InvalidStreamError, match=said):
        from_file(path, model)


def test_a_file_that_is_no_npz_is_refused(model, tmp_path):
    """Each ends in another exception of NumPy's or of the standard library's."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "zip").write_bytes(b"PK\x03\x04 and no more")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "scalar.npz", inputs=1.0, labels=[1], tasks=[1], slots=[1])
    with zipfile.ZipFile(tmp_path / "huge", "w") as file, file.open("inputs.npy", "w") as entry:
        np.lib.format.write_array_header_1_0(entry, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    for name, said in (
        ("huge", "cannot be"),
        ("empty", "cannot be"),
        ("zip", "cannot be"),
        ("array.npy", "cannot be"),
        ("scalar.npz", "one"),
        ("pipe", "it is a named pipe, not a file"),
        (".", "Is a directory"),
    ):
        with pytest.raises(InvalidStreamError, match=said):
            from_file(tmp_path / name, model)


OWN = """
import numpy as np

num_tasks = 2

def slots(seed):
    yield from range(seed, seed + 3)

def serve(experts, slot):
    return [float(np.mean(experts[0]["b_out"])), slot / 10], [1, 2]
"""


def test_a_file_of_one_s_own_serves_merged_experts(model, tmp_path):
    checkpoint, path = tmp_path / "model.safetensors", tmp_path / "own.py"
    biases = np.float32([[0.0] * 16, [0.5] * 16, [1.0] * 16])
    layers = tuple(layer._replace(experts=layer.experts._replace(b_out=biases)) for layer in model.layers)
    write_safetensors(checkpoint, arrays_of(model._replace(layers=layers)), {})
    path.write_text(OWN)
    stream = from_module(path, checkpoint, PATTERN, 4)
    assert (stream.num_experts, stream.num_tasks, list(stream.slots())) == (3, 2, [4, 5, 6])
    served = checked(stream.serve(5, np.array([0.0, 0.5, 0.5])), 2, 1)
    np.testing.assert_allclose(served.rewards, [0.75, 0.5])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace("num_tasks = 2", ""), "has no num_tasks"),
        (OWN.replace("num_tasks = 2", "num_tasks = 'two'"), "num_tasks='two' must be a whole number"),
        (OWN + "\n1 / 0", "ZeroDivisionError"),
        (OWN + "\nraise SystemExit", "failed: SystemExit"),
    ],
)
def test_a_file_of_one_s_own_that_lacks_something_is_refused(text, said, model, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(text)
    with pytest.raises(InvalidStreamError, match=said):
        from_module(path, tmp_path / "model.safetensors", PATTERN, 0)


def test_layers_with_other_numbers_of_experts_are_refused(model, tmp_path):
    """One vector of weights serves all layers; would otherwise end in NumPy's own error in the first slot."""
    checkpoint, path = tmp_path / "model.safetensors", tmp_path / "own.py"
    arrays = {f"layers.{layer}.experts.{k}.w": np.ones(2) for layer, count in ((0, 2), (1, 3)) for k in range(count)}
    write_safetensors(checkpoint, arrays, {})
    path.write_text(OWN)
    with pytest.raises(InvalidStreamError, match="different numbers of experts"):
        from_module(path, checkpoint, PATTERN, 0)


def test_a_slot_reads_what_changed_and_merges_what_is_asked_for(tmp_path, monkeypatch):
    """Against NumPy over 100 slots of ten mixes, some of which differ in two experts alone; the same mix twice is one
    merge, and rounding does not add up.
    """
    arrays = {
        f"layers.0.experts.{k}.w": np.random.default_rng(k).normal(size=(9, 5)).astype(np.float32) for k in range(6)
    }
    write_safetensors(tmp_path / "model.safetensors", arrays, {})
    (tmp_path / "own.py").write_text("num_tasks = 1\nslots = None\ndef serve(experts, slot):\n    return experts\n")
    stream = from_module(tmp_path / "own.py", tmp_path / "model.safetensors", None, 0)
    stack, reads = np.stack(list(arrays.values())), []
    original = online.add_weighted
    monkeypatch.setattr(
        online,
        "add_weighted",
        lambda parts, x, *rest: (reads.append(np.count_nonzero(x)), original(parts, x, *rest))[1],
    )
    first = np.random.default_rng(0).dirichlet(np.ones(6))
    mixes = [first + delta * np.eye(6)[0] - delta * np.eye(6)[1] for delta in np.linspace(0, 0.01, 10)]
    for slot in range(100):
        (own,) = stream.serve(slot, mixes[slot // 2 % 10]).values()
        np.testing.assert_allclose(own["w"], np.tensordot(mixes[slot // 2 % 10], stack, 1), rtol=0, atol=3e-6)
    assert len(reads) == 50
    assert sorted(set(reads)) == [2, 6]
    assert reads.count(6) <= 1 + 50 // 30
    with pytest.raises(ValueError, match="read-only"):
        own["w"][0, 0] = 1


def test_a_stream_s_expert_that_is_not_finite_is_named(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", {"layers.0.experts.w": np.array([[1.0], [np.nan]])}, {})
    (tmp_path / "own.py").write_text(OWN)
    stream = from_module(tmp_path / "own.py", tmp_path / "model.safetensors", None, 0)
    with pytest.raises(InvalidCheckpointError, match=r"layers.0.experts.w\[1\] has nan at \(0,\)"):
        stream.serve(0, np.array([0.5, 0.5]))


def test_a_policy_of_one_s_own_goes_by_its_name(monkeypatch):
    average = policies.POLICIES["average"]
    monkeypatch.setitem(policies.POLICIES, "mine", lambda dims, uncertainty: average(dims, uncertainty))
    mine, theirs = (list(merge_online(Corner(3), name, 3)) for name in ("mine", "average"))
    assert [row.reward for row in mine] == [row.reward for row in theirs]


def test_the_rewards_of_the_paper_s_families_are_a_stream_s_too():
    """A `Reward` served by hand: the loop in `tanbr`'s docstring, through a stream."""

    class Peaked(Corner):
        def serve(self, slot: int, weights: np.ndarray) -> Feedback:
            self.asked.append(slot)
            return Feedback(np.exp(-np.sum((weights - [0.1, 0.8, 0.1]) ** 2) * np.ones(2)), np.array([1, 1]))

    rows = list(merge_online(Peaked(40), policies.TANBR, 40, Params(split_rule=1, smoothness=0.5)))
    assert rows[-1].num_candidates > rows[0].num_candidates == 1
    assert max(row.reward for row in rows) > rows[0].reward
