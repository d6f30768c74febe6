"""Checkpoints as the safetensors library writes them: catches wrong averages, lost tensors, and idle error messages."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from moe_theory.checkpoints import load_experts, merge_checkpoint
from moe_theory.core.errors import InvalidParamsError, OutputError
from moe_theory.runs.tensors import INDEX, InvalidCheckpointError, read_header, read_safetensors

PATTERN = "model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}"
EXPERTS = 3
WEIGHTS = np.array([0.5, 0.3, 0.2])
SHAPES = {"w1.weight": (5, 4), "w2.weight": (4, 5)}


def own(layer, expert, name="w1.weight"):
    return PATTERN.format(layer=layer, expert=expert, name=name)


def arrays(kind=np.float32, layers=(0, 2), seed=0):
    """A model of two layers of experts with a router each, a norm of odd size, and positions of another type."""
    rng = np.random.default_rng(seed)
    found = {"model.norm.weight": rng.normal(size=3).astype(np.float16), "positions": np.arange(7)}
    for layer in layers:
        found[f"model.layers.{layer}.block_sparse_moe.gate.weight"] = rng.normal(size=(EXPERTS, 4)).astype(kind)
        for expert in range(EXPERTS):
            for name, shape in SHAPES.items():
                found[own(layer, expert, name)] = rng.normal(size=shape).astype(kind)
    return found


def saved(path, tensors, metadata=None):
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path, metadata)
    return path


def sharded(folder, tensors):
    """Every third tensor into each of three shards, so that experts of a layer are apart."""
    folder.mkdir()
    names, weight_map = sorted(tensors), {}
    for shard in range(3):
        file = f"model-0000{shard + 1}-of-00003.safetensors"
        saved(folder / file, {name: tensors[name] for name in names[shard::3]}, {"format": "pt"})
        weight_map |= dict.fromkeys(names[shard::3], file)
    index = {"metadata": {"total_size": 1, "kind": "moe"}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))
    (folder / "config.json").write_text('{"num_local_experts": 3}')
    (folder / "pytorch_model.bin").write_bytes(b"large")
    return folder


def read(path):
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def check_merged(tensors, merged, weights=WEIGHTS):
    """Against NumPy's average in double precision, to the rounding of the type and of the sums."""
    expected = {name for name in tensors if ".experts." not in name or ".experts.0." in name}
    assert set(merged) == expected
    for name, array in merged.items():
        assert array.dtype == tensors[name].dtype
        if "gate" in name:
            exact = weights @ tensors[name].astype(float)
            np.testing.assert_allclose(array.astype(float)[0], exact, rtol=float(jnp.finfo(array.dtype).eps), atol=1e-6)
            continue
        if ".experts." not in name:
            np.testing.assert_array_equal(array, tensors[name])
            continue
        others = [tensors[name.replace("experts.0", f"experts.{expert}")].astype(float) for expert in range(EXPERTS)]
        exact = sum(share * other for share, other in zip(weights, others, strict=True))
        precision = float(jnp.finfo(array.dtype).eps)
        of_sums = 2.0**-50 if array.dtype == np.float64 else 2.0**-22  # of numbers of about 1
        np.testing.assert_allclose(array.astype(float), exact, rtol=precision, atol=of_sums)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, jnp.bfloat16])
def test_a_file_is_loaded_and_merged_in_its_own_type(tmp_path, kind):
    tensors = arrays(kind)
    path = saved(tmp_path / "model.safetensors", tensors, {"format": "pt"})
    found = load_experts(path, PATTERN)
    assert list(found) == [0, 2]
    for layer, parts in found.items():
        assert set(parts) == set(SHAPES)
        for name, stacked in parts.items():
            assert stacked.dtype == np.dtype(kind)
            np.testing.assert_array_equal(stacked, [tensors[own(layer, expert, name)] for expert in range(EXPERTS)])
    out = tmp_path / "merged.safetensors"
    merged = merge_checkpoint(path, PATTERN, WEIGHTS, out)
    assert (merged.num_layers, merged.num_experts, merged.num_merged, merged.num_copied) == (2, 3, 6, 2)
    assert merged.bytes_before == sum(array.nbytes for array in tensors.values())
    after = read(out)
    assert merged.bytes_after == sum(array.nbytes for array in after.values())
    check_merged(tensors, after)
    with safe_open(out, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_sharded_checkpoint(tmp_path):
    tensors = arrays(jnp.bfloat16)
    folder = sharded(tmp_path / "model", tensors)
    found = load_experts(folder, PATTERN)
    np.testing.assert_array_equal(
        found[2]["w2.weight"], [tensors[own(2, expert, "w2.weight")] for expert in range(EXPERTS)]
    )
    out = tmp_path / "merged"
    merged = merge_checkpoint(folder, PATTERN, WEIGHTS, out)
    index = json.loads((out / INDEX).read_text())
    after = {name: read(out / shard)[name] for name, shard in index["weight_map"].items()}
    check_merged(tensors, after)
    assert index["metadata"] == {"total_size": merged.bytes_after, "kind": "moe"}
    assert {path.name for path in out.iterdir()} == {*index["weight_map"].values(), INDEX, "config.json"}


def test_numbers_that_numpy_does_not_know_are_copied(tmp_path):
    tensors = arrays() | {"scale": np.arange(8).astype(jnp.float8_e4m3fn)}
    path = saved(tmp_path / "model.safetensors", tensors)
    merge_checkpoint(path, PATTERN, WEIGHTS, tmp_path / "merged.safetensors")
    scale = read_header(tmp_path / "merged.safetensors").tensors["scale"]
    assert scale.kind == "F8_E4M3"
    assert scale.bytes().tobytes() == tensors["scale"].tobytes()
    with pytest.raises(InvalidCheckpointError, match="NumPy"):
        read_safetensors(path)


def test_patterns_without_a_name_and_with_a_repeated_layer(tmp_path):
    path = saved(
        tmp_path / "model.safetensors",
        {f"block.{layer}.part{layer}.e{expert}.w": np.full(2, expert) * 1.0 for layer in (0, 1) for expert in (0, 1)},
    )
    found = load_experts(path, "block.{layer}.part{layer}.e{expert}.w")
    assert {layer: list(parts) for layer, parts in found.items()} == {0: ["w"], 1: ["w"]}
    np.testing.assert_array_equal(found[1]["w"], [[0, 0], [1, 1]])


def without(tensors, *names):
    return {name: array for name, array in tensors.items() if name not in names}


def broken():
    """Checkpoints that cannot be merged: what is in them, by the message that says why."""
    tensors = arrays()
    last = [own(2, expert, name) for expert in (1, 2) for name in SHAPES]
    return {
        "layer 2 has 1 expert": without(tensors, *last),
        "layer 0 has the experts 0, 2, but not 1": without(tensors, *(own(0, 1, name) for name in SHAPES)),
        "expert 1 of layer 2 has no w1.weight": without(tensors, own(2, 1)),
        "experts.1.w1.weight has shape .*experts.0.w1.weight has": tensors | {own(0, 1): np.zeros((4, 4), np.float32)},
        "experts.2.w1.weight is F16, but": tensors | {own(0, 2): np.zeros((5, 4), np.float16)},
        "type I8.*Dequantise": {name: array.astype(np.int8) for name, array in tensors.items()},
        "Nearest: model.layers.0.block_sparse_moe.gate.weight": {
            name: array for name, array in tensors.items() if "experts" not in name
        },
    }


@pytest.mark.parametrize("message", broken())
def test_checkpoints_that_cannot_be_merged_say_why(tmp_path, message):
    path = saved(tmp_path / "model.safetensors", broken()[message])
    with pytest.raises(InvalidCheckpointError, match=message) as failure:
        load_experts(path, PATTERN)
    assert "\n" not in str(failure.value)


def test_files_that_cannot_be_read_say_why(tmp_path):
    path, empty = saved(tmp_path / "model.safetensors", arrays()), tmp_path / "empty"
    empty.mkdir()
    whole = path.read_bytes()
    for data, message in (
        (whole[:-5], "truncated .*not fully covered"),
        (whole[:60], "truncated"),
        (b"PK\x03\x04" + bytes(100), "not a safetensors file"),
        (b"", "not a safetensors file"),
        (whole + b"more", "damaged"),
        (whole[:8] + b"{" + whole[9:40].replace(b'"', b"'") + whole[40:], "not a safetensors file"),
    ):
        path.write_bytes(data)
        with pytest.raises(InvalidCheckpointError, match=message) as failure:
            load_experts(path, PATTERN)
        assert "\n" not in str(failure.value)
    with pytest.raises(InvalidCheckpointError, match="not there"):
        load_experts(tmp_path / "other.safetensors", PATTERN)
    with pytest.raises(InvalidCheckpointError, match="no safetensors files"):
        load_experts(empty, PATTERN)


def test_indices_that_are_wrong_say_why(tmp_path):
    folder = sharded(tmp_path / "model", arrays())
    index = json.loads((folder / INDEX).read_text())
    missing = index["weight_map"] | {own(0, 0): "model-00001-of-00003.safetensors", "extra": "gone.safetensors"}
    elsewhere = dict(index["weight_map"])
    name = sorted(elsewhere)[0]
    elsewhere[name] = next(shard for shard in elsewhere.values() if shard != elsewhere[name])
    outside = index["weight_map"] | {name: "../model.safetensors"}
    for weight_map, message in (
        (missing, "is incomplete: 3 of 4 shards are there, gone.safetensors is not"),
        (elsewhere, "where it is not"),
        (outside, "beside it"),
        ({}, "no index"),
        (index["weight_map"] | {name: "\ud800"}, "no index"),
        (index["weight_map"] | {name: "\0"}, "3 of 4"),
        (index["weight_map"] | {name: "a" * 300}, "3 of 4"),
        (index["weight_map"] | {name: 1}, "no index"),
    ):
        (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(InvalidCheckpointError, match=message):
            load_experts(folder, PATTERN)
    (folder / INDEX).write_text('{"weight_map": ' + "[" * 100_000)
    with pytest.raises(InvalidCheckpointError, match="no index"):
        load_experts(folder, PATTERN)


def test_a_number_of_any_length_is_no_traceback(tmp_path):
    """Would catch a name of an expert whose number Python refuses to read, or counts to."""
    for number in ("9" * 6000, str(10**12), "\u0663"):
        path = saved(tmp_path / "model.safetensors", {own(0, number): np.zeros(2), own(0, 1): np.zeros(2)})
        with pytest.raises(InvalidCheckpointError, match="layer 0 has 1 expert"):
            load_experts(path, PATTERN)


def test_requests_that_cannot_be_met_say_why(tmp_path):
    """And leave nothing behind."""
    path = saved(tmp_path / "model.safetensors", arrays())
    out = tmp_path / "merged.safetensors"
    for weights, message in (([0.5, 0.5], "shape"), ([0.5, 0.6, -0.1], "negative"), ([0.5, 0.5, np.nan], "sum to 1")):
        with pytest.raises(InvalidParamsError, match=message):
            merge_checkpoint(path, PATTERN, weights, out)
    for pattern, message in (
        ("layers.{layer}.{part}", "part"),
        ("layers.{layer}.x", r"must have \{expert\} in it, or \[\{expert\}\]"),
        (PATTERN.replace("{name}", "w1.weight"), "w2.weight belongs to an expert"),
    ):
        with pytest.raises(InvalidCheckpointError, match=message):
            merge_checkpoint(path, pattern, WEIGHTS, out)
    with pytest.raises(OutputError, match="there already"):
        merge_checkpoint(path, PATTERN, WEIGHTS, path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert set(load_experts(path, PATTERN.replace("{name}", "w1.weight"))[0]) == {"w1.weight"}
