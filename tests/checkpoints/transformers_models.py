"""Tiny models of published families, written and loaded by Transformers: run by another Python, which has torch.

`make FOLDER` writes them, and two that are quantised. `check FOLDER` loads each FOLDER/merged/FAMILY.FORM, of which
FOLDER/models/FAMILY is the mixture, and prints as JSON what did not fit and how far its outputs are from those of the
mixture whose experts are all replaced by NumPy's average of them (its router by the average row, and all experts
active, so that gates sum to 1).
"""

import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch
from safetensors.torch import save_file as save_torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.utils import logging

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
COMMON = {
    "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "intermediate_size": 24, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
QWEN = COMMON | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
SHARED = QWEN | {"shared_expert_intermediate_size": 20}
LINEAR = SHARED | {
    "head_dim": 8, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}  # fmt: skip
LOCAL = COMMON | {"num_local_experts": 4, "num_experts_per_tok": 2}
ROUTED = COMMON | {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1,
}  # fmt: skip
LATENT = ROUTED | {
    "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
    "num_key_value_heads": 4, "n_shared_experts": 1,
}  # fmt: skip
# fmt: off
FAMILIES = {
    "mixtral": LOCAL,
    "qwen2_moe": SHARED,
    "qwen3_moe": QWEN | {"head_dim": 8},
    "olmoe": COMMON | {"num_experts": 4, "num_experts_per_tok": 2},
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT | {"n_group": 2},
    "glm4_moe": ROUTED | {"head_dim": 8},
    "dots1": ROUTED | {"n_shared_experts": 1, "norm_topk_prob": True},
    "granitemoe": LOCAL,
    "granitemoeshared": LOCAL | {"shared_intermediate_size": 20},
    "gpt_oss": LOCAL | {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "llama4_text": COMMON
    | {
        "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 28, "head_dim": 8,
        "interleave_moe_layer_step": 1, "layer_types": ["chunked_attention", "full_attention"],
    },
    "qwen3_next": LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
    "qwen3_5_moe_text": LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
    "phimoe": LOCAL,
    "dbrx": {
        "d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": 64, "max_seq_len": 64,
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "jamba": COMMON
    | {
        "num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "expert_layer_period": 2,
        "expert_layer_offset": 1, "attn_layer_period": 4, "attn_layer_offset": 2, "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "ernie4_5_moe": COMMON
    | {
        "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 12, "moe_layer_start_index": 1,
        "moe_num_shared_experts": 1,
    },
    "hunyuan_v1_moe": COMMON | {"num_experts": 4, "moe_topk": 2, "head_dim": 8},
    "minimax": LOCAL | {"head_dim": 8},
    "minimax_m2": LOCAL | {"head_dim": 8},
    "switch_transformers": {
        "vocab_size": 64, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2,
        "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_heads": 4, "num_experts": 4,
        "decoder_start_token_id": 0, "expert_capacity": 64,
    },
    "nllb-moe": {
        "vocab_size": 64, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "encoder_sparse_step": 2,
        "decoder_sparse_step": 2, "num_experts": 4, "max_position_embeddings": 64, "decoder_start_token_id": 2,
        "expert_capacity": 64,
    },
}
# fmt: on
ACTIVE = ("num_experts_per_tok", "moe_k", "moe_topk")
EXACT = ("llama4_text", "switch_transformers", "phimoe")  # whose code has a fixed number of active experts


def make(folder: Path) -> None:
    for family, sizes in FAMILIES.items():
        config = AutoConfig.for_model(family, **sizes)
        torch.manual_seed(0)
        auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model = auto.from_config(config).float().eval()
        for name, parameter in model.named_parameters():
            is_vector = parameter.ndim == 1 or "bias" in name
            torch.nn.init.normal_(parameter, 1.0 if "norm" in name else 0.0, 0.1 if is_vector else 0.2)
        model.save_pretrained(folder / "models" / family)


def make_quantised(folder: Path) -> None:
    """A model in MXFP4 and one in blocks of 8 bits, as they are published."""
    sizes = LOCAL | {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16, "num_hidden_layers": 1}
    path = _saved(folder / "mxfp4", "gpt_oss", sizes | {"layer_types": ["full_attention"]})
    tensors = load_file(path / "model.safetensors")
    for name in [name for name in tensors if name.endswith("_proj") and ".experts." in name]:
        experts, width, height = tensors.pop(name).shape
        blocks = np.random.default_rng(0).integers(0, 255, (experts, height, width // 32, 16), np.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": np.full(blocks.shape[:3], 125, np.uint8)}
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    _quantised(path, tensors, {"quant_method": "mxfp4", "modules_to_not_convert": kept})
    path = _saved(folder / "fp8", "qwen3_moe", QWEN | {"hidden_size": 128, "moe_intermediate_size": 128})
    tensors = load_torch(path / "model.safetensors")
    for name in [name for name in tensors if "_proj" in name]:
        scale = tensors[name].abs().max() / 448
        tensors[name] = (tensors[name] / scale).to(torch.float8_e4m3fn)
        blocks = [-(-size // 128) for size in tensors[name].shape]
        tensors[f"{name}_scale_inv"] = scale.expand(*blocks).contiguous()
    how = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    _quantised(path, tensors, how | {"modules_to_not_convert": ["lm_head"]})


def _saved(path: Path, family: str, sizes: dict) -> Path:
    AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **sizes)).float().save_pretrained(path)
    return path


def _quantised(path: Path, tensors: dict, how: dict) -> None:
    is_torch = any(isinstance(tensor, torch.Tensor) for tensor in tensors.values())
    (save_torch if is_torch else save_file)(tensors, path / "model.safetensors", {"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"quantization_config": how}))


def check(folder: Path) -> dict[str, dict[str, object]]:
    found = {}
    for path in sorted((folder / "merged").iterdir()):
        family = path.name.rpartition(".")[0]
        try:
            model, said = loaded(path)
        except Exception as failure:
            found[path.name] = {"failed": repr(failure)[:300]}
            continue
        facts = {key: sorted(map(str, said[key])) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")}
        try:
            expected = outputs(loaded(like(folder / "models" / family))[0])
            distance = float(np.abs(outputs(model) - expected).max())
            found[path.name] = {**facts, "distance": distance, "size": float(np.abs(expected).max())}
        except Exception as failure:
            found[path.name] = {**facts, "failed": repr(failure)[:300]}
    return found


def loaded(path: Path):
    config = AutoConfig.from_pretrained(path)
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model, said = auto.from_pretrained(path, output_loading_info=True, dtype=torch.float32)
    return model.eval(), said


def outputs(model) -> np.ndarray:
    tokens = torch.arange(3, 27).reshape(2, 12)
    more = {"decoder_input_ids": tokens[:, :5]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **more).logits.numpy()


def like(path: Path) -> Path:
    """A copy of a mixture whose experts are all the average of its experts."""
    copy = Path(tempfile.mkdtemp()) / path.name
    shutil.copytree(path, copy)
    tensors = load_file(copy / "model.safetensors")
    separate: dict[tuple[str, str], list[str]] = {}
    for name, array in tensors.items():
        before, _, after = name.partition(".experts.")
        number, _, rest = after.partition(".")
        number = number.removeprefix("expert_")
        if number.isdigit():
            separate.setdefault((before, rest), []).append(name)
        elif after or ".block_sparse_moe.input" in name or ".block_sparse_moe.output" in name:
            stacked = array.reshape(4, -1)
            tensors[name] = np.tile(WEIGHTS @ stacked, (4, 1)).reshape(array.shape).astype(array.dtype)
        elif (
            array.shape[:1] == (4,)
            and any(f".{word}." in name for word in ("gate", "router"))
            and "correct" not in name
        ):
            tensors[name] = np.tile(WEIGHTS @ array.reshape(4, -1), (4, 1)).reshape(array.shape).astype(array.dtype)
    for names in separate.values():
        names.sort(
            key=lambda name: int("".join(c for c in name.partition(".experts.")[2].partition(".")[0] if c.isdigit()))
        )
        average = np.tensordot(WEIGHTS, np.stack([tensors[name] for name in names]), 1)
        tensors |= dict.fromkeys(names, average.astype(np.float32))
    config = json.loads((copy / "config.json").read_text())
    if config["model_type"] == "switch_transformers":  # whose gate is the probability of one of four equal experts
        tensors |= {name: 4 * array for name, array in tensors.items() if ".expert_" in name and ".wo." in name}
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    if config["model_type"] not in EXACT:
        for key in ACTIVE:
            if key in config:
                config[key] = [4] * len(config[key]) if isinstance(config[key], list) else 4
        if "n_group" in config:
            config |= {"n_group": 1, "topk_group": 1}
        if "ffn_config" in config:
            config["ffn_config"]["moe_top_k"] = 4
    (copy / "config.json").write_text(json.dumps(config))
    return copy


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    place = Path(sys.argv[2])
    if sys.argv[1] == "make":
        make(place)
        make_quantised(place / "quantised")
    else:
        sys.stdout.write(json.dumps(check(place)))
