"""Weights of published models, against Transformers' own counts of models that it built without memory.

`transformers_counts.json` has them: of models at their published or default sizes, and of small ones in which one key
after the other is changed. Catches a tensor that is forgotten or counted twice, a key that is ignored, a default that
is not the family's, and bits that are fewer than those stored.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from moe_theory.core.errors import InvalidParamsError
from moe_theory.generalization import published, stored
from moe_theory.generalization.families import SYNONYMS, families
from moe_theory.generalization.published import _names_of_all

COUNTS = json.loads(Path(__file__).with_name("transformers_counts.json").read_text())
MODELS = {each["name"]: each for each in COUNTS["models"]}
VARIATIONS = {each["family"]: each for each in COUNTS["variations"]}
REFUSED = 0


@pytest.fixture
def model(tmp_path):
    """A configuration's model."""

    def read(config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return published(path)

    return read


@pytest.fixture
def count(model):
    """The number of weights, or REFUSED."""

    def counted(config):
        try:
            return model(config).num_weights
        except InvalidParamsError:
            return REFUSED

    return counted


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_as_many_weights_as_transformers_builds(name, count):
    each = MODELS[name]
    assert count(each["config"]) == each["parameters"] + each["buffers"]


def test_there_are_many_of_them():
    assert len({each["config"]["model_type"] for each in MODELS.values()}) >= 28
    unchecked = families().keys() - {each["config"]["model_type"] for each in MODELS.values()} - VARIATIONS.keys()
    assert unchecked == {"grok-1"}  # which Transformers does not build


@pytest.mark.parametrize("family", VARIATIONS)
def test_a_changed_key_changes_the_count_or_is_refused(family, count):
    each = VARIATIONS[family]
    config = each["config"]
    assert count(config) == each["weights"]
    found = {
        (key, value): (count(config | {key: value}), weights) for key, value, weights in map(tuple_of, each["changes"])
    }
    wrong = {change: both for change, both in found.items() if both[0] not in (REFUSED, both[1])}
    assert not wrong
    counted = [both for both in found.values() if both[0] != REFUSED]
    assert len(counted) > 0.8 * len(found)


def tuple_of(change):
    key, value, weights = change
    return key, tuple(value) if isinstance(value, list) else value, weights


@pytest.mark.parametrize("family", VARIATIONS)
def test_a_key_that_is_left_out_has_the_family_s_default_or_is_asked_for(family, count):
    config, weights = VARIATIONS[family]["config"], VARIATIONS[family]["weights"]
    not_default = {"shared_intermediate_size"} if family == "granitemoeshared" else {*()}
    for key in config.keys() - {"model_type"} - not_default:
        rest = {name: value for name, value in config.items() if name != key}
        assert count(rest) in (REFUSED, weights), key


@pytest.mark.parametrize("family", VARIATIONS)
def test_what_adds_tensors_elsewhere_is_not_ignored(family, model):
    config, own = VARIATIONS[family]["config"], families()[family].names()
    others = {name for name in _names_of_all() - own if not name.endswith("_config")} - {"layer_types"}
    for key in others - config.keys():
        with pytest.raises(InvalidParamsError, match=key):
            model(config | {key: 7})


@pytest.mark.parametrize("family", ["mixtral", "deepseek_v3", "dbrx", "jamba", "nemotron_h"])
@pytest.mark.parametrize("value", [-1, 1.5, "4096", [], [[1]], 10**30, {}, "x" * 10])
def test_what_is_no_size_is_refused(family, value, model):
    config = VARIATIONS[family]["config"]
    key = "d_model" if family == "dbrx" else "hidden_size"
    with pytest.raises(InvalidParamsError) as refusal:
        model(config | {key: value})
    assert "\n" not in str(refusal.value)
    assert "--weights" in str(refusal.value) or "whole number" in str(refusal.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"layer_types": 5},
        {"layer_types": [[1]]},
        {"layer_types": "full_attention"},
        {"vision_config": [1]},
        {"num_hidden_layers": 10**9},
        {"text_config": 3},
        {"num_experts_per_tok": [1, 2]},
        {"mlp_only_layers": ["0"]},
    ],
)
@pytest.mark.parametrize("family", ["mixtral", "qwen3_5_moe_text", "gemma4_text", "qwen3_moe"])
def test_what_has_the_wrong_shape_is_refused_or_changes_nothing(family, changes, count):
    assert count(VARIATIONS[family]["config"] | changes) in (REFUSED, VARIATIONS[family]["weights"])


@pytest.mark.parametrize("key", ["layer_types", "mlp_layer_types", "hybrid_override_pattern", "layers_block_type"])
def test_layers_of_a_kind_that_is_not_known_are_refused(key, model):
    of_text = {name: each["config"].get("text_config", each["config"]) for name, each in MODELS.items()}
    having = [name for name, config in of_text.items() if config.get(key)]
    assert having or key == "layers_block_type"
    for name in having:
        kinds = of_text[name][key]
        strange = kinds[:-2] + ("?" if isinstance(kinds, str) else ["unheard_of"]) + kinds[-1:]
        config = MODELS[name]["config"]
        changed = of_text[name] | {key: strange}
        with pytest.raises(InvalidParamsError, match=key):
            model(config | {"text_config": changed} if "text_config" in config else changed)


def test_two_names_of_a_key_must_agree(model):
    config = VARIATIONS["gpt_oss"]["config"]
    assert model(config | {"experts_per_token": config["num_experts_per_tok"]}).num_active == 4
    for name, others in SYNONYMS.items():
        if name in config or {*others} & config.keys():
            with pytest.raises(InvalidParamsError, match="contradict"):
                model(config | {others[0]: 5, name: 6})


@pytest.mark.parametrize("name", ["meta-llama/Llama-4-Scout-17B-16E-Instruct", "Qwen/Qwen3.5-35B-A3B"])
def test_a_tower_for_images_of_which_nothing_is_said_is_not_guessed(name, model):
    """Scout's is 1,408 wide, and Transformers' default for files that leave it out 768."""
    config = {key: value for key, value in MODELS[name]["config"].items() if key != "vision_config"}
    with pytest.raises(InvalidParamsError, match=r"vision_config.*--checkpoint"):
        model(config)


def test_what_is_not_counted_is_said(model):
    config = MODELS["deepseek-ai/DeepSeek-V3"]["config"]
    (said,) = [note for note in model(config).notes if "Not counted" in note]
    assert "num_nextn_predict_layers=1" in said
    (said,) = [note for note in model(config | {"num_moe_extras": 3}).notes if "Not known" in note]
    assert "num_moe_extras=3" in said
    (said,) = [note for note in model({**config, "torch_dtype": None, "dtype": None}).notes if "torch_dtype" in note]
    assert "32 bits" in said


SMALL = {
    "model_type": "qwen3_moe", "torch_dtype": "bfloat16", "vocab_size": 100, "num_hidden_layers": 2, "hidden_size": 200,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 96, "intermediate_size": 80, "num_experts": 3,
    "moe_intermediate_size": 40, "num_experts_per_tok": 2, "tie_word_embeddings": False,
}  # fmt: skip
MATRICES = 2 * [(192, 200), (96, 200), (96, 200), (200, 192), *3 * [(40, 200), (40, 200), (200, 40)]]  # of both layers


def scales(block):
    """Scales of all matrices, as arrays that would hold them."""
    shapes = (
        (math.ceil(rows / (block[0] or rows)), math.ceil(columns / (block[1] or columns))) for rows, columns in MATRICES
    )
    return sum(np.empty(shape).size for shape in shapes)


@pytest.mark.parametrize(
    ("said", "weight", "scale", "block"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8, 32, (128, 128)),
        ({"quant_method": "fp8"}, 8, 32, (0, 0)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4, 8, (1, 16)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64}, 4, 20, (1, 64)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4, 20, (1, 128)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4, 32, (1, 64)),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8, 32, (1, 0)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            4,
            36,
            (1, 32),
        ),
    ],
)
def test_quantised_weights_have_their_bits_and_their_scales(said, weight, scale, block, model):
    """And what is small beside these: a few numbers a matrix, or a column."""
    plain, found = model(SMALL), model(SMALL | {"quantization_config": said})
    inside = sum(map(math.prod, MATRICES))
    assert found.num_weights == plain.num_weights
    assert plain.num_bits == 16 * plain.num_weights
    least = plain.num_bits - (16 - weight) * inside + scale * scales(block)
    most = least + sum(4096 + 32 * columns for _, columns in MATRICES)
    assert least <= found.num_bits <= most
    assert any(said["quant_method"] in note or "nvfp4" in note for note in found.notes)


def test_experts_alone_are_quantised_by_mxfp4(model):
    config = VARIATIONS["gpt_oss"]["config"] | {"torch_dtype": "bfloat16"}
    found = model(config | {"quantization_config": {"quant_method": "mxfp4"}})
    for part in found.parts:
        bits = part.bits / part.weights
        assert 4.25 <= bits < 4.26 if part.name.endswith(("experts.gate_up_proj", "experts.down_proj")) else bits >= 16


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("model.layers.0.mlp.experts.1.up_proj", 1),
        ("model.layers.1.self_attn", 4),
        ("model.layers.*.self_attn", 8),
        ("re:.*down_proj$", 2),
        ("re:.*layers.1.self_attn.*", 4),
        ("*.down_proj", 2),
        ("q_proj", 2),
        ("model.layers.7.self_attn", 0),  # a layer for further tokens
        ("lm_head", 0),
    ],
)
def test_what_is_left_out_keeps_its_bits(pattern, parts, model):
    said = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    whole = model(SMALL | {"quantization_config": said})
    found = model(SMALL | {"quantization_config": said | {"modules_to_not_convert": [pattern]}})
    assert (found.num_bits > whole.num_bits) == (parts > 0)
    more = sum(a.bits != b.bits for a, b in zip(found.parts, whole.parts, strict=True))
    assert more == {8: 4, 2: 1}.get(parts, parts)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"quant_method": "hqq"}, "'hqq'"),
        ({"quant_method": "gptq", "group_size": 128}, "cannot be read"),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "is no size"),
        ({"quant_method": "compressed-tensors"}, "cannot be read"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.unheard_of"]}, "unheard_of"),
        ({"quant_method": "fp8", "ignore": ["re:(a|a)*b"]}, "understood"),
        ({"quant_method": "fp8", "ignore": ["*" * 9]}, "understood"),
        ("fp8", "no table"),
    ],
)
def test_bits_that_are_not_known_are_asked_for(said, words, model):
    with pytest.raises(InvalidParamsError, match="--bits") as refusal:
        model(SMALL | {"quantization_config": said})
    assert words in str(refusal.value)


def test_modelopt_writes_beside_the_configuration(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    plain = published(tmp_path).num_bits
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert published(tmp_path).num_bits < plain


def test_headers_count_what_is_stored(tmp_path):
    arrays = [{"a": np.zeros((3, 5), np.float32), "b": np.zeros(7, np.float16)}, {"c": np.zeros((2, 2, 2), np.float64)}]
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for name, part in zip(names, arrays, strict=True):
        save_file(part, tmp_path / name)
    index = tmp_path / "model.safetensors.index.json"
    where = {tensor: name for name, part in zip(names, arrays, strict=True) for tensor in part}
    bits = 8 * sum(array.nbytes for part in arrays for array in part.values())
    index.write_text(json.dumps({"metadata": {"total_size": bits // 8}, "weight_map": where}))
    assert stored(tmp_path)[:2] == stored(index)[:2] == (30, bits)
    save_file({"packed": np.zeros(4, np.uint8)}, tmp_path / "packed.safetensors")
    assert stored(tmp_path / "packed.safetensors")[:2] == (None, 32)
    for name in (*names, "packed.safetensors"):
        (tmp_path / name).unlink()
    assert stored(index)[:2] == stored(tmp_path)[:2] == (None, bits)
    index.write_text(json.dumps({"metadata": {"total_size": bits // 8, "total_parameters": 30}, "weight_map": where}))
    assert stored(tmp_path)[:2] == (30, bits)
    save_file({"empty": np.zeros((0, 3))}, tmp_path / "empty.safetensors")
    with pytest.raises(InvalidParamsError, match="no weights"):
        stored(tmp_path / "empty.safetensors")
    (tmp_path / "empty.safetensors").unlink()
    index.write_text(json.dumps({"weight_map": where}))
    with pytest.raises(InvalidParamsError, match="total_size"):
        stored(tmp_path)
