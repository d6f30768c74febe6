"""Where checkpoints keep their experts: catches experts that are not found, are found twice or too many of them, sums
over the wrong axis, and messages whose way out is none."""

import contextlib
import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from moe_theory.checkpoints import find_experts, load_experts, merge_checkpoint
from moe_theory.core.errors import MoeTheoryError
from moe_theory.runs.tensors import INDEX, InvalidCheckpointError

K, D, F = 3, 4, 6
WEIGHTS = np.array([0.5, 0.3, 0.2])
GATED = {"gate_proj.weight": (F, D), "up_proj.weight": (F, D), "down_proj.weight": (D, F)}
FUSED = {"gate_up_proj": (D, 2 * F), "down_proj": (F, D)}
# Names as they are published: an expert's tensors, the router's, and what is beside them and stays as it is.
SEPARATE = {
    "mixtral": (
        "model.layers.1.block_sparse_moe.experts.{}.",
        {"w1.weight": (F, D), "w2.weight": (D, F)},
        "gate.weight",
    ),
    "qwen": ("model.layers.1.mlp.experts.{}.", GATED, "gate.weight"),
    "deepseek": ("model.layers.1.mlp.experts.{}.", GATED, "gate.e_score_correction_bias"),
    "hunyuan": ("model.layers.1.mlp.experts.{}.", GATED, "gate.wg.weight"),
    "jamba": ("model.layers.1.feed_forward.experts.{}.", GATED, "router.weight"),
    "switch": (
        "encoder.block.1.layer.1.mlp.experts.expert_{}.",
        {"wi.weight": (F, D), "wo.weight": (D, F)},
        "router.classifier.weight",
    ),
    "nllb": (
        "model.decoder.layers.3.ffn.experts.expert_{}.",
        {"fc1.weight": (F, D), "fc1.bias": (F,), "fc2.weight": (D, F), "fc2.bias": (D,)},
        "router.classifier.weight",
    ),
    "multimodal": ("model.language_model.layers.1.mlp.experts.{}.", GATED, "gate.weight"),
    "without a prefix": ("layers.1.experts.{}.", GATED, "router.weight"),
}
STACKED = {
    "gpt-oss": (
        "model.layers.1.mlp.experts.",
        FUSED | {"gate_up_proj_bias": (2 * F,), "down_proj_bias": (D,)},
        "router.bias",
    ),
    "llama 4": ("language_model.model.layers.1.feed_forward.experts.", FUSED, "router.weight"),
    "qwen 3.5": (
        "model.language_model.layers.1.mlp.experts.",
        {"gate_up_proj": (2 * F, D), "down_proj": (D, F)},
        "gate.weight",
    ),
    "granite": (
        "model.layers.1.block_sparse_moe.",
        {"input_linear.weight": (2 * F, D), "output_linear.weight": (D, F)},
        "router.layer.weight",
    ),
    "gemma 4": ("model.layers.1.experts.", FUSED, "router.per_expert_scale"),
}
BESIDE = ("shared_experts.up_proj.weight", "shared_expert.up_proj.weight", "shared_expert_gate.weight")


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def made(prefix, shapes, router, is_stacked):
    """A layer's tensors, and the arrays (K, ...) that its experts are."""
    module = prefix.partition("experts")[0] if "experts" in prefix else prefix
    arrays = {name: drawn(K, *shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    rows = (K,) if "bias" in router or "scale" in router else (K, D)
    tensors = {module + router: drawn(*rows, seed=9), "model.norm.weight": drawn(D), "model.layers.0.mlp.w": drawn(D)}
    tensors |= {module + name: drawn(F, D) for name in BESIDE}
    for name, array in arrays.items():
        tensors |= {prefix + name: array} if is_stacked else {prefix.format(k) + name: array[k] for k in range(K)}
    return tensors, arrays, module + router


@pytest.mark.parametrize("layout", [*SEPARATE, *STACKED])
def test_experts_are_found_by_themselves_and_averaged(layout, tmp_path):
    """Against NumPy, name by name: what is an expert's, the router's, and nobody's."""
    is_stacked = layout in STACKED
    prefix, shapes, router = (STACKED if is_stacked else SEPARATE)[layout]
    tensors, arrays, router = made(prefix, shapes, router, is_stacked)
    save_file(tensors, tmp_path / "model.safetensors")
    (own,) = load_experts(tmp_path / "model.safetensors").values()
    assert own.keys() == arrays.keys()
    for name, array in own.items():
        np.testing.assert_array_equal(array, arrays[name])
    merge_checkpoint(tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "merged.safetensors")
    after = load_file(tmp_path / "merged.safetensors")
    first = {prefix.format(0) + name: np.tensordot(WEIGHTS, array, 1) for name, array in arrays.items()}
    first = {name: array[None] if is_stacked else array for name, array in first.items()}
    expected = first | {router: np.tensordot(WEIGHTS, tensors[router], 1)[None]}
    others = {name for name in tensors if name != router and not name.startswith(prefix.partition("{}")[0])}
    others |= {name for name in tensors if any(name.endswith(beside) for beside in BESIDE)}
    assert after.keys() == expected.keys() | others
    for name, array in after.items():
        wanted = expected.get(name, tensors.get(name))
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6)


def test_encoder_and_decoder_are_merged_together(tmp_path):
    """Would catch layers of one number that are taken for one layer."""
    tensors = {}
    for stack, sublayer in (("encoder", 1), ("decoder", 2)):
        prefix, shapes, _ = SEPARATE["switch"]
        prefix = prefix.replace("encoder", stack).replace("layer.1", f"layer.{sublayer}")
        tensors |= made(prefix, shapes, "router.classifier.weight", False)[0]
    save_file(tensors, tmp_path / "model.safetensors")
    found = load_experts(tmp_path / "model.safetensors")
    assert set(found) == {"encoder.block.1.layer.1.mlp", "decoder.block.1.layer.2.mlp"}
    merged = merge_checkpoint(tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "merged.safetensors")
    assert (merged.num_layers, merged.num_merged) == (2, 6)


@pytest.mark.parametrize(
    ("pattern", "axis"),
    [("a.{layer}.all.{name}", 0), ("a.{layer}.all[{expert}].{name}", 0), ("a.{layer}.all[:,{expert}].{name}", 1)],
)
def test_an_axis_of_experts_is_named(pattern, axis, tmp_path):
    stacked = drawn(K, F, D)
    save_file({"a.0.all.w": np.moveaxis(stacked, 0, axis).copy(), "a.0.b": drawn(2)}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load_experts(tmp_path / "model.safetensors", pattern)[0]["w"], stacked)
    merge_checkpoint(tmp_path / "model.safetensors", pattern, WEIGHTS, tmp_path / "merged.safetensors")
    merged = load_file(tmp_path / "merged.safetensors")["a.0.all.w"]
    assert merged.shape[axis] == 1
    np.testing.assert_allclose(merged.squeeze(axis), np.tensordot(WEIGHTS, stacked, 1), atol=1e-6)


def test_experts_one_below_the_other_are_told_by_the_router(tmp_path):
    """As DBRX has them: would catch K f experts of one row."""
    arrays = {name: drawn(K * F, D, seed=seed) for seed, name in enumerate(("w1", "v1", "w2"))}
    tensors = {f"blocks.0.ffn.experts.mlp.{name}": array for name, array in arrays.items()}
    save_file(tensors | {"blocks.0.ffn.router.layer.weight": drawn(K, D)}, tmp_path / "model.safetensors")
    merge_checkpoint(tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "merged.safetensors")
    after = load_file(tmp_path / "merged.safetensors")
    for name, array in arrays.items():
        expected = np.tensordot(WEIGHTS, array.reshape(K, F, D), 1)
        np.testing.assert_allclose(after[f"blocks.0.ffn.experts.mlp.{name}"], expected, atol=1e-6)


def fused(**changes):
    module = "model.layers.0.mlp."
    tensors = {f"{module}experts.gate_up_proj": drawn(K, D, 2 * F), f"{module}experts.down_proj": drawn(K, F, D)}
    return tensors | {f"{module}router.weight": drawn(K, D)} | {module + name: array for name, array in changes.items()}


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"model.layers.0.self_attn.experts.w": drawn(K, D, D)}, "no experts are found"),
        ({"model.layers.0.mlp.up_proj.weight": drawn(F, D)}, "no experts are found"),
        (
            fused(**{"experts.down_proj": drawn(K + 1, F, D)}),
            r"has shape \(3, 4, 12\).*has \(4, 6, 4\)|has \(4, 6, 4\)",
        ),
        ({"model.layers.0.mlp.experts.w": drawn(1, F, D)}, "with 1 expert along axis 0"),
        (fused(**{"experts.down_proj": drawn()}), "axis 0 is to be the experts"),
        (fused(**{"experts.down_proj_blocks": np.zeros((K, F, 1, 16), np.uint8)}), r"U8 \(MXFP4\).*Mxfp4Config"),
        (
            {f"a.0.experts.{k}.w.weight": drawn(F, D).astype(ml_dtypes.float8_e4m3fn) for k in range(K)},
            r"F8_E4M3.*FineGrainedFP8Config\(dequantize=True\)",
        ),
        ({f"a.0.experts.{k}.qweight": np.zeros((2, 2), np.int32) for k in range(K)}, "I32.*Dequantise"),
    ],
)
def test_layouts_that_cannot_be_merged_say_why(tensors, said, tmp_path):
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InvalidCheckpointError, match=said) as failure:
        merge_checkpoint(tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "merged.safetensors")
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_stacked", [True, False])
@pytest.mark.parametrize("where", ["expert", "router"])
def test_numbers_that_are_not_finite_are_named_unless_their_weight_is_0(bad, is_stacked, where, tmp_path):
    prefix, shapes, router = STACKED["llama 4"] if is_stacked else SEPARATE["qwen"]
    tensors, _, router = made(prefix, shapes, router, is_stacked)
    name, place = (router, (1, 2)) if where == "router" else (prefix.format(1) + next(iter(shapes)), (2, 3))
    tensors[name][(1, *place) if is_stacked and where == "expert" else place] = bad
    save_file(tensors, tmp_path / "model.safetensors")
    shown = name if where == "expert" and not is_stacked else f"{name}[1]"
    with pytest.raises(InvalidCheckpointError) as failure:
        merge_checkpoint(tmp_path / "model.safetensors", None, WEIGHTS, tmp_path / "merged.safetensors")
    assert f"{shown} has {bad} at {place[1:] if where == 'router' else place}" in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    merge_checkpoint(tmp_path / "model.safetensors", None, [0.4, 0, 0.6], tmp_path / "merged.safetensors")


def sharded(folder, tensors, count=7):
    folder.mkdir()
    names = sorted(tensors)
    files = [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    for number, file in enumerate(files):
        save_file({name: tensors[name] for name in names[number::count]}, folder / file)
    return {name: files[place % count] for place, name in enumerate(names)}


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("missing", [(0,), (6,), (1, 3, 4, 5)])
def test_a_download_that_is_incomplete_says_how_far_it_is(has_index, missing, tmp_path):
    """Would catch a merge of what is there; the last shards can be missing without an index, too."""
    shard_of = sharded(tmp_path / "model", fused() | {f"n{k}": drawn(1) for k in range(5)})
    if has_index:
        (tmp_path / "model" / INDEX).write_text(json.dumps({"weight_map": shard_of}))
    for number in missing:
        (tmp_path / "model" / f"model-{number + 1:05}-of-00007.safetensors").unlink()
    with pytest.raises(
        InvalidCheckpointError,
        match=f"incomplete: {7 - len(missing)} of 7 shards are there, model-0000{missing[0] + 1}",
    ):
        find_experts(tmp_path / "model")


@pytest.mark.parametrize("mark", ["", "\ufeff", None])
def test_shards_are_read_with_an_index_a_byte_order_mark_or_neither(mark, tmp_path):
    tensors = fused() | {f"n{k}": drawn(1) for k in range(5)}
    shard_of = sharded(tmp_path / "model", tensors)
    if mark is not None:
        (tmp_path / "model" / INDEX).write_text(mark + json.dumps({"weight_map": shard_of}), encoding="utf-8")
    merge_checkpoint(tmp_path / "model", None, WEIGHTS, tmp_path / "merged")
    after = {
        name: array for path in (tmp_path / "merged").glob("*.safetensors") for name, array in load_file(path).items()
    }
    assert after.keys() == tensors.keys()
    assert (tmp_path / "merged" / INDEX).exists() == (mark is not None)
    np.testing.assert_allclose(
        after["model.layers.0.mlp.experts.down_proj"][0],
        np.tensordot(WEIGHTS, tensors["model.layers.0.mlp.experts.down_proj"], 1),
        atol=1e-6,
    )


def test_a_tensor_in_two_shards_without_an_index_is_refused(tmp_path):
    for file in ("model.safetensors", "consolidated.safetensors"):
        save_file(fused(), tmp_path / file)
    with pytest.raises(InvalidCheckpointError, match=r"in consolidated.safetensors and in model.safetensors.*Move one"):
        find_experts(tmp_path)
    (tmp_path / "consolidated.safetensors").rename(tmp_path.parent / "elsewhere.safetensors")
    assert list(find_experts(tmp_path).layers) == [0]  # the way out works


def test_no_message_is_a_traceback(tmp_path):
    """Patterns and names of any kind are found or refused."""
    names = [
        "experts",
        "experts.",
        ".experts.0.w",
        "a.experts.0",
        "a.experts..w",
        "experts.0.w",
        "a.experts.gate",
        "9.experts.w",
    ]
    patterns = [
        None,
        "{name}",
        "{expert}",
        "[{expert}]",
        "{layer}[{expert}]",
        "a.experts[{expert}].{name}",
        "[:,{expert}]{name}",
    ]
    for name in names:
        save_file({name: drawn(K, F, D)}, tmp_path / "model.safetensors")
        for pattern in patterns:
            with contextlib.suppress(MoeTheoryError):
                find_experts(tmp_path / "model.safetensors", pattern)
