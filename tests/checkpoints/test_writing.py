"""What a merge leaves on disk: catches a configuration that does not fit its tensors, memory that grows with the
checkpoint, JAX that is imported for nothing, half a folder, and work that is done twice.
"""

import json
import shutil
import subprocess
import sys
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest
import scipy.optimize  # noqa: F401  (its import is no memory of a merge)
from safetensors.numpy import load_file, save_file

from moe_theory.checkpoints import find_experts, merge_checkpoint, writing
from moe_theory.checkpoints.forms import FAMILIES, NEVER_ALONE
from moe_theory.core.errors import InvalidParamsError, OutputError
from moe_theory.runs.tensors import INDEX, InvalidCheckpointError

K, D, F = 3, 4, 6
WEIGHTS = np.array([0.5, 0.3, 0.2])


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layer(number, width=F, seed=0, module="mlp"):
    shapes = {"gate_proj": (width, D), "up_proj": (width, D), "down_proj": (D, width)}
    tensors = {
        f"model.layers.{number}.{module}.experts.{k}.{name}.weight": drawn(*shape, seed=seed + 10 * k + place)
        for k in range(K)
        for place, (name, shape) in enumerate(shapes.items())
    }
    return tensors | {f"model.layers.{number}.{module}.gate.weight": drawn(K, D, seed=seed)}


def feed_forward(module, width, seed):
    shapes = {"gate_proj": (width, D), "up_proj": (width, D), "down_proj": (D, width)}
    return {f"{module}.{name}.weight": drawn(*shape, seed=seed) for name, shape in shapes.items()}


def saved(folder, tensors, config):
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "generation_config.json", "modeling_own.py"):
        (folder / name).write_text(name)
    return folder


def average(tensors, name, prefix="model.layers.{}.mlp.experts.{}.", number=0):
    return np.tensordot(WEIGHTS, np.stack([tensors[prefix.format(number, k) + name] for k in range(K)]), 1)


def test_one_expert_has_its_configuration_and_the_rest_is_copied(tmp_path):
    """Keys of any part of it; a list stays one; infinities, which JSON has not, stay too."""
    inner = {"num_experts": 3, "num_experts_per_tok": 2, "moe_topk": [2, 2], "hidden_size": D}
    config = {"model_type": "own", "text_config": inner, "n_group": 1, "time_step_limit": [0.0, float("inf")]}
    config["vision_config"] = {"num_experts": 0, "n_group": None}  # a part without experts
    merge_checkpoint(saved(tmp_path / "model", layer(0), config), None, WEIGHTS, tmp_path / "out")
    ones = {"num_experts": 1, "num_experts_per_tok": 1, "moe_topk": [1, 1], "hidden_size": D}
    assert json.loads((tmp_path / "out/config.json").read_text()) == config | {"text_config": ones}
    for name in ("tokenizer.json", "generation_config.json", "modeling_own.py"):
        assert (tmp_path / "out" / name).read_text() == name


def test_a_mixture_without_a_router_is_refused_with_its_configuration_alone(tmp_path):
    tensors = {name: array for name, array in layer(0).items() if "gate.weight" not in name}
    folder = saved(tmp_path / "model", tensors, {"model_type": "own"})
    with pytest.raises(InvalidCheckpointError, match=r"no router.*Move its config.json elsewhere"):
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out")
    (folder / "config.json").rename(tmp_path / "config.json")  # the way out works
    assert merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out").num_merged == 3


def test_a_dense_model_of_a_mixture(tmp_path):
    config = {"model_type": "qwen3_moe", "moe_intermediate_size": F, "intermediate_size": 99, "num_experts": K}
    tensors = layer(0) | layer(1, seed=100)
    merge_checkpoint(saved(tmp_path / "model", tensors, config), None, WEIGHTS, tmp_path / "out", "dense")
    after = load_file(tmp_path / "out/model.safetensors")
    names = [f"{name}_proj.weight" for name in ("gate", "up", "down")]
    assert after.keys() == {f"model.layers.{number}.mlp.{name}" for number in (0, 1) for name in names}
    for number in (0, 1):
        for name in names:
            expected = average(tensors, name, number=number)
            np.testing.assert_allclose(after[f"model.layers.{number}.mlp.{name}"], expected, atol=1e-6)
    new = json.loads((tmp_path / "out/config.json").read_text())
    assert new == {"model_type": "qwen3", "intermediate_size": F, "architectures": ["Qwen3ForCausalLM"]}


DEEPSEEK = {
    "model_type": "deepseek_v3", "num_hidden_layers": 2, "routed_scaling_factor": 2.5, "norm_topk_prob": True,
    "first_k_dense_replace": 1, "intermediate_size": 12,
}  # fmt: skip


def with_shared(width=12):
    shared = feed_forward("model.layers.1.mlp.shared_experts", 5, seed=50)
    return layer(1) | shared | feed_forward("model.layers.0.mlp", width, seed=60)


def test_a_shared_expert_joins_the_hidden_units_of_a_dense_model(tmp_path):
    """As one function: the merged expert's outputs times the factor, and the shared expert's."""
    tensors = with_shared()
    merge_checkpoint(saved(tmp_path / "model", tensors, DEEPSEEK), None, WEIGHTS, tmp_path / "out", "dense")
    after = load_file(tmp_path / "out/model.safetensors")

    def outputs(gate, up, down):
        return (np.tanh(inputs @ gate.T) * (inputs @ up.T)) @ down.T

    inputs, names = drawn(9, D, seed=70), [f"{name}_proj.weight" for name in ("gate", "up", "down")]
    merged = outputs(*(average(tensors, name, number=1) for name in names))
    shared = outputs(*(tensors[f"model.layers.1.mlp.shared_experts.{name}"] for name in names))
    dense = outputs(*(after[f"model.layers.1.mlp.{name}"] for name in names))
    np.testing.assert_allclose(dense, 2.5 * merged + shared, rtol=1e-4, atol=1e-5)
    assert after["model.layers.1.mlp.down_proj.weight"].shape == (D, 12)  # as wide as the dense layer
    assert not any("shared" in name for name in after)
    new = json.loads((tmp_path / "out/config.json").read_text())
    assert (new["first_k_dense_replace"], new["intermediate_size"]) == (2, 12)


@pytest.mark.parametrize(
    ("config", "tensors", "form", "said"),
    [
        (DEEPSEEK, with_shared(), "moe-1", "best two of each group. Write the dense form"),
        (DEEPSEEK | {"norm_topk_prob": False}, with_shared(), "dense", "sigmoids and not normalised"),
        (DEEPSEEK, with_shared(10), "dense", "would have 11 hidden units.*have 10"),
        (DEEPSEEK, with_shared(), "moe-2", "'moe-2' is not one of moe-1, dense"),
        ({"model_type": "olmoe"}, layer(0), "dense", "family 'olmoe'.*Write a mixture of one expert"),
        ({"model_type": "phimoe"}, layer(0), "dense", r"Merge it without its config.json"),
        ({"model_type": "phimoe"}, layer(0), "moe-1", r"Merge it without its config.json"),
        ({"model_type": ["a"]}, layer(0), "dense", "without a config.json that names its family"),
        (None, layer(0), "dense", "without a config.json"),
    ],
)
def test_forms_that_a_model_does_not_have_say_why(config, tensors, form, said, tmp_path):
    folder = saved(tmp_path / "model", tensors, config)
    with pytest.raises(InvalidParamsError, match=said) as failure:
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out", form)
    assert "\n" not in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000, "\ufffe"])
def test_a_configuration_that_cannot_be_read_is_named(text, tmp_path):
    folder = saved(tmp_path / "model", layer(0), None)
    (folder / "config.json").write_text(text)
    with pytest.raises(InvalidCheckpointError, match=r"config\.json cannot be read"):
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out")


def test_a_key_that_a_dense_form_needs_is_named(tmp_path):
    for key in FAMILIES["deepseek_v3"].needs:
        config = {name: value for name, value in DEEPSEEK.items() if name != key}
        folder = saved(tmp_path / key, with_shared(), config)
        with pytest.raises(InvalidCheckpointError, match=f"has no {key}"):
            merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out", "dense")


def test_every_family_has_a_form():
    """Would catch a message that sends from one form to the other and back."""
    assert {family for family in NEVER_ALONE if family not in FAMILIES} == {"phimoe"}


@pytest.mark.parametrize("is_stacked", [True, False])
@pytest.mark.parametrize("method", ["average", "aligned"])
def test_memory_does_not_grow_with_the_checkpoint(is_stacked, method, tmp_path):
    """Of its own, as NumPy tells: below one expert's tensor, a copy and the pieces; the checkpoint has 64 MB."""
    names, shape = ("up.weight", "down.weight"), (256, 1024)
    tensors = {}
    for number in range(8):
        for name in names:
            own = shape if name == "up.weight" else shape[::-1]
            if is_stacked:
                tensors[f"layers.{number}.experts.{name}"] = np.ones((4, *own), np.float32)
            else:
                tensors |= {f"layers.{number}.experts.{k}.{name}": np.ones(own, np.float32) for k in range(4)}
    save_file(tensors, tmp_path / "model.safetensors")
    del tensors
    tracemalloc.start()
    try:
        made = writing.Method(method)
        merge_checkpoint(tmp_path / "model.safetensors", None, [0.25] * 4, tmp_path / "out.safetensors", method=made)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_merging_imports_no_jax(tmp_path):
    """The command, too: it alone takes more memory than the merge of any checkpoint."""
    save_file(layer(0), tmp_path / "model.safetensors")
    program = (
        "import sys\nfrom moe_theory.cli import main\n"
        f"main(['merge', '--checkpoint', {str(tmp_path / 'model.safetensors')!r}, '--weights', 'equal', "
        f"'--write-merged', {str(tmp_path / 'out.safetensors')!r}])\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 layers of 3 experts: 4 tensors merged (average), 0 copied" in done.stdout


def sharded(folder, count=4):
    folder.mkdir()
    shard_of = {}
    for number in range(count):
        file = f"model-{number + 1:05}-of-{count:05}.safetensors"
        save_file(tensors := layer(number, seed=100 * number), folder / file)
        shard_of |= dict.fromkeys(tensors, file)
    (folder / INDEX).write_text(json.dumps({"weight_map": shard_of}))
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_merge_that_was_stopped_goes_on_and_is_whole_or_not_there(tmp_path, monkeypatch):
    """Stopped after each byte count that is reported: what is done is not done again, and the end is the same."""
    folder = sharded(tmp_path / "model")
    merge_checkpoint(folder, None, WEIGHTS, tmp_path / "expected")
    expected = contents(tmp_path / "expected")
    written = []
    original = writing._write_file
    monkeypatch.setattr(writing, "_write_file", lambda out, *rest: (written.append(out.name), original(out, *rest)))

    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        merge_checkpoint(folder, None, WEIGHTS, out, progress=stop)
    assert len(written) == 3
    assert not out.exists()
    reported = []
    merge_checkpoint(folder, None, WEIGHTS, out, progress=lambda done, total: reported.append((done, total)))
    assert len(written) == 3 + 2  # the shard that was begun, and the last
    assert contents(out) == expected
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1][0] == reported[-1][1]
    assert {path.name for path in tmp_path.iterdir()} == {"model", "expected", "out"}


def test_what_was_begun_with_other_weights_is_not_used(tmp_path):
    """Nor with another method, form or checkpoint: each would be a mix of two merges."""
    folder = sharded(tmp_path / "model")

    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out", progress=stop)
    merge_checkpoint(folder, None, WEIGHTS[::-1], tmp_path / "out")
    merge_checkpoint(folder, None, WEIGHTS[::-1], tmp_path / "expected")
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


def test_room_is_looked_for_first(tmp_path, monkeypatch):
    folder = sharded(tmp_path / "model")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 9, 1))
    with pytest.raises(OutputError, match=r"takes 1,216 bytes, but .* has room for 1: make room"):
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "a" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_output_opens_as_what_it_is(tmp_path):
    """Would catch an index that names a tensor which is gone, and sizes that are those of before."""
    merged = merge_checkpoint(sharded(tmp_path / "model"), None, WEIGHTS, tmp_path / "out")
    index = json.loads((tmp_path / "out" / INDEX).read_text())
    assert index["metadata"]["total_size"] == merged.bytes_after
    with pytest.raises(InvalidCheckpointError, match="has 1 expert"):
        find_experts(tmp_path / "out")


def test_what_is_refused_before_a_shard_is_whole_leaves_nothing(tmp_path):
    """Would catch an empty folder beside the output, for each merge of a checkpoint with a number that is none."""
    folder = sharded(tmp_path / "model")
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        save_file({name: np.full_like(tensor, np.nan) for name, tensor in tensors.items()}, path)
    with pytest.raises(InvalidCheckpointError, match="has nan"):
        merge_checkpoint(folder, None, WEIGHTS, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
