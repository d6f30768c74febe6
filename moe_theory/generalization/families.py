"""What published families of language models with sparse experts are made of: a line for each tensor.

A line is `tensor: shape`, with `if` where it depends on the configuration, of whose keys shapes and conditions are
formulas. A shape of two or more numbers is a matrix, or a stack of them; of one, a vector. `layer` counts from 0.
Matrices of experts are named as they are stored, three an expert where its units are gated.
"""

from typing import NamedTuple

# Names that keys go by; where a file has several, they must agree.
SYNONYMS = {
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "num_selected_experts"),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
}


class Family(NamedTuple):
    """A kind of model, by its `model_type`."""

    once: str  # tensors that there are once
    stacks: dict[str, tuple[str, str]]  # by name: how many layers, and the tensors of each
    rules: dict[str, str] = {}  # names that formulas use  # noqa: RUF012
    defaults: dict[str, str] = {}  # of keys that a file may leave out, as the family's own code has them  # noqa: RUF012
    only: dict[str, tuple[object, ...]] = {}  # values of keys of which alone the tensors are known  # noqa: RUF012
    ignored: tuple[str, ...] = ()  # keys of other families that change nothing here
    inner: str = ""  # the key under which the language model's own keys are


EMBEDDINGS = """
embed_tokens: vocab_size, hidden_size
lm_head: vocab_size, hidden_size if not tie_word_embeddings
norm: hidden_size
"""
NORMS = """
input_layernorm: hidden_size
post_attention_layernorm: hidden_size
"""
ATTENTION = """
self_attn.q_proj: num_attention_heads * head_dim, hidden_size
self_attn.k_proj: num_key_value_heads * head_dim, hidden_size
self_attn.v_proj: num_key_value_heads * head_dim, hidden_size
self_attn.o_proj: hidden_size, num_attention_heads * head_dim
"""
INPUT_BIASES = """
self_attn.q_proj.bias: num_attention_heads * head_dim if attention_bias
self_attn.k_proj.bias: num_key_value_heads * head_dim if attention_bias
self_attn.v_proj.bias: num_key_value_heads * head_dim if attention_bias
"""
BIASES = INPUT_BIASES + "self_attn.o_proj.bias: hidden_size if attention_bias\n"
HEAD_NORMS = """
self_attn.q_norm: head_dim
self_attn.k_norm: head_dim
"""
ALL_HEADS_NORMS = """
self_attn.q_norm: num_attention_heads * head_dim
self_attn.k_norm: num_key_value_heads * head_dim
"""
LATENT_ATTENTION = """
self_attn.q_proj: num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim), hidden_size if not q_lora_rank
self_attn.q_a_proj: q_lora_rank, hidden_size if q_lora_rank
self_attn.q_a_proj.bias: q_lora_rank if q_lora_rank and attention_bias
self_attn.q_a_layernorm: q_lora_rank if q_lora_rank
self_attn.q_b_proj: num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim), q_lora_rank if q_lora_rank
self_attn.kv_a_proj_with_mqa: kv_lora_rank + qk_rope_head_dim, hidden_size
self_attn.kv_a_proj_with_mqa.bias: kv_lora_rank + qk_rope_head_dim if attention_bias
self_attn.kv_a_layernorm: kv_lora_rank
self_attn.kv_b_proj: num_attention_heads * (qk_nope_head_dim + v_head_dim), kv_lora_rank
self_attn.o_proj: hidden_size, num_attention_heads * v_head_dim
self_attn.o_proj.bias: hidden_size if attention_bias
"""
INDEXER = """
self_attn.indexer.wq_b: index_n_heads * index_head_dim, q_lora_rank if has_indexer
self_attn.indexer.wk: index_head_dim, hidden_size if has_indexer
self_attn.indexer.k_norm: index_head_dim if has_indexer
self_attn.indexer.k_norm.bias: index_head_dim if has_indexer
self_attn.indexer.weights_proj: index_n_heads, hidden_size if has_indexer
"""
ROUTER = "mlp.gate: num_experts, hidden_size if is_sparse\n"
CORRECTION = "mlp.gate.e_score_correction_bias: num_experts if is_sparse\n"
EXPERTS = """
mlp.experts.gate_proj: num_experts, moe_intermediate_size, hidden_size if is_sparse
mlp.experts.up_proj: num_experts, moe_intermediate_size, hidden_size if is_sparse
mlp.experts.down_proj: num_experts, hidden_size, moe_intermediate_size if is_sparse
"""
SHARED = """
mlp.shared_experts.gate_proj: shared_size, hidden_size if is_sparse and shared_size
mlp.shared_experts.up_proj: shared_size, hidden_size if is_sparse and shared_size
mlp.shared_experts.down_proj: hidden_size, shared_size if is_sparse and shared_size
"""
SHARED_GATE = "mlp.shared_expert_gate: hidden_size if is_sparse\n"
DENSE = """
mlp.gate_proj: dense_size, hidden_size if not is_sparse
mlp.up_proj: dense_size, hidden_size if not is_sparse
mlp.down_proj: hidden_size, dense_size if not is_sparse
"""
GATED_DELTA_NET = """
linear_attn.in_proj_qkvz: 2 * keys + 2 * values, hidden_size if is_linear
linear_attn.in_proj_ba: 2 * linear_num_value_heads, hidden_size if is_linear
linear_attn.conv1d: 2 * keys + values, linear_conv_kernel_dim if is_linear
linear_attn.dt_bias: linear_num_value_heads if is_linear
linear_attn.A_log: linear_num_value_heads if is_linear
linear_attn.norm: linear_value_head_dim if is_linear
linear_attn.out_proj: hidden_size, values if is_linear
"""


def only_if(condition: str, block: str) -> str:
    """The block, of layers of one kind."""
    lines = [line for line in block.split("\n") if line]
    return "\n".join(line + (" and " if " if " in line else " if ") + condition for line in lines) + "\n"


def decoder(layer: str, once: str = EMBEDDINGS, count: str = "num_hidden_layers") -> dict:
    """Fields of a family with one stack of layers."""
    return {"once": once, "stacks": {"layers": (count, layer)}}


UNTIED = {"tie_word_embeddings": "False"}
BY_HEADS = {"head_dim": "hidden_size // num_attention_heads"}
NO_BIAS = {"attention_bias": "False"}
ALL_SPARSE = {"is_sparse": "True", "moe_intermediate_size": "intermediate_size"}
BY_STEP = {
    "is_sparse": "layer not in mlp_only_layers and (layer + 1) % decoder_sparse_step == 0",
    "dense_size": "intermediate_size",
    "shared_size": "shared_expert_intermediate_size",
}
STEPS = {"mlp_only_layers": "[]", "decoder_sparse_step": "1"}
DENSE_FIRST = {
    "is_sparse": "mlp_layer_types[layer] == 'sparse' if mlp_layer_types else layer >= first_k_dense_replace",
    "dense_size": "intermediate_size",
    "shared_size": "n_shared_experts * moe_intermediate_size",
}
SHARED_OF_THESE = {"mlp_layer_types": "[]", "n_shared_experts": "0"}
EACH_LAYER = {"moe_layer_freq": (1,)}
LATENT = ("head_dim", "num_key_value_heads", "qk_head_dim")  # which latent attention does without
SPARSE_GATED = ROUTER + EXPERTS
DELTA_NET_RULES = {
    "is_linear": "layer_types[layer] == 'linear_attention' if layer_types else (layer + 1) % full_attention_interval",
    "keys": "linear_num_key_heads * linear_key_head_dim",
    "values": "linear_num_value_heads * linear_value_head_dim",
}
GATED_ATTENTION = ATTENTION.replace("q_proj: num", "q_proj: 2 * num") + INPUT_BIASES.replace(
    "q_proj.bias: num", "q_proj.bias: 2 * num"
)
DELTA_NET_LAYER = (
    NORMS
    + GATED_DELTA_NET
    + only_if("not is_linear", GATED_ATTENTION + "self_attn.o_proj.bias: hidden_size if attention_bias\n" + HEAD_NORMS)
    + SPARSE_GATED
    + SHARED
    + SHARED_GATE
    + DENSE
)
MIXTRAL = Family(**decoder(NORMS + ATTENTION + SPARSE_GATED), rules=ALL_SPARSE, defaults=UNTIED | BY_HEADS)
QWEN3_MOE = Family(
    **decoder(NORMS + ATTENTION + BIASES + HEAD_NORMS + SPARSE_GATED + DENSE),
    rules=BY_STEP,
    defaults=UNTIED | NO_BIAS | STEPS,
)
DEEPSEEK_V3 = Family(
    **decoder(NORMS + LATENT_ATTENTION + SPARSE_GATED + CORRECTION + SHARED + DENSE),
    rules=DENSE_FIRST,
    defaults=UNTIED | NO_BIAS | SHARED_OF_THESE | {"q_lora_rank": "0"},
    only=EACH_LAYER,
    ignored=LATENT,
)
DEEPSEEK_V32 = DEEPSEEK_V3._replace(
    **decoder(NORMS + LATENT_ATTENTION + INDEXER + SPARSE_GATED + CORRECTION + SHARED + DENSE),
    rules=DENSE_FIRST | {"has_indexer": "True"},
)
VISION_BLOCK = """
norm1: vision_config.hidden_size
norm1.bias: vision_config.hidden_size
norm2: vision_config.hidden_size
norm2.bias: vision_config.hidden_size
attn.qkv: 3 * vision_config.hidden_size, vision_config.hidden_size
attn.qkv.bias: 3 * vision_config.hidden_size
attn.proj: vision_config.hidden_size, vision_config.hidden_size
attn.proj.bias: vision_config.hidden_size
mlp.linear_fc1: vision_config.intermediate_size, vision_config.hidden_size
mlp.linear_fc1.bias: vision_config.intermediate_size
mlp.linear_fc2: vision_config.hidden_size, vision_config.intermediate_size
mlp.linear_fc2.bias: vision_config.hidden_size
"""
QWEN_VISION = """
visual.patch_embed.proj: vision_config.hidden_size, patch
visual.patch_embed.proj.bias: vision_config.hidden_size
visual.pos_embed: vision_config.num_position_embeddings, vision_config.hidden_size
visual.merger.norm: vision_config.hidden_size
visual.merger.norm.bias: vision_config.hidden_size
visual.merger.linear_fc1: merged, merged
visual.merger.linear_fc1.bias: merged
visual.merger.linear_fc2: vision_config.out_hidden_size, merged
visual.merger.linear_fc2.bias: vision_config.out_hidden_size
"""
LLAMA4_LAYER = NORMS + ATTENTION + BIASES + SPARSE_GATED + SHARED + DENSE
LLAMA4_RULES = {
    "is_sparse": "layer in moe_layers if moe_layers else (layer + 1) % interleave_moe_layer_step == 0",
    "moe_intermediate_size": "intermediate_size",
    "shared_size": "intermediate_size",
    "dense_size": "intermediate_size_mlp",
}
LLAMA4_DEFAULTS = UNTIED | NO_BIAS | BY_HEADS | {"moe_layers": "[]", "interleave_moe_layer_step": "1"}
LLAMA4_TEXT = Family(
    **decoder(LLAMA4_LAYER), rules=LLAMA4_RULES, defaults=LLAMA4_DEFAULTS, ignored=("use_qk_norm",)
)
TOWER_LAYER = """
self_attn.q_proj: vision_config.hidden_size, vision_config.hidden_size
self_attn.q_proj.bias: vision_config.hidden_size
self_attn.k_proj: vision_config.hidden_size, vision_config.hidden_size
self_attn.k_proj.bias: vision_config.hidden_size
self_attn.v_proj: vision_config.hidden_size, vision_config.hidden_size
self_attn.v_proj.bias: vision_config.hidden_size
self_attn.o_proj: vision_config.hidden_size, vision_config.hidden_size
self_attn.o_proj.bias: vision_config.hidden_size
mlp.fc1: vision_config.intermediate_size, vision_config.hidden_size
mlp.fc1.bias: vision_config.intermediate_size
mlp.fc2: vision_config.hidden_size, vision_config.intermediate_size
mlp.fc2.bias: vision_config.hidden_size
input_layernorm: vision_config.hidden_size
input_layernorm.bias: vision_config.hidden_size
post_attention_layernorm: vision_config.hidden_size
post_attention_layernorm.bias: vision_config.hidden_size
"""
LLAMA4_VISION = """
vision_model.class_embedding: vision_config.hidden_size
vision_model.positional_embedding_vlm: patches + 1, vision_config.hidden_size
vision_model.patch_embedding: vision_config.hidden_size, vision_config.num_channels * vision_config.patch_size ** 2
vision_model.layernorm_pre: vision_config.hidden_size
vision_model.layernorm_pre.bias: vision_config.hidden_size
vision_model.layernorm_post: vision_config.hidden_size
vision_model.layernorm_post.bias: vision_config.hidden_size
vision_model.vision_adapter.mlp.fc1: vision_config.projector_input_dim, vision_config.intermediate_size
vision_model.vision_adapter.mlp.fc2: vision_config.projector_output_dim, vision_config.projector_output_dim
multi_modal_projector.linear_1: hidden_size, vision_config.vision_output_dim
"""

LLAMA4_TOWER = {  # of files that leave it out
    "hidden_size": 768, "intermediate_size": 5632, "num_hidden_layers": 34, "image_size": 448, "patch_size": 14,
    "num_channels": 3, "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 7680,
}  # fmt: skip
GEMMA4_LAYER = """
input_layernorm: hidden_size
post_attention_layernorm: hidden_size
pre_feedforward_layernorm: hidden_size
post_feedforward_layernorm: hidden_size
pre_feedforward_layernorm_2: hidden_size
post_feedforward_layernorm_1: hidden_size
post_feedforward_layernorm_2: hidden_size
layer_scalar: 1
self_attn.q_proj: num_attention_heads * size, hidden_size
self_attn.q_proj.bias: num_attention_heads * size if attention_bias
self_attn.k_proj: groups * size, hidden_size
self_attn.k_proj.bias: groups * size if attention_bias
self_attn.v_proj: groups * size, hidden_size if not (is_full and attention_k_eq_v)
self_attn.v_proj.bias: groups * size if attention_bias and not (is_full and attention_k_eq_v)
self_attn.o_proj: hidden_size, num_attention_heads * size
self_attn.o_proj.bias: hidden_size if attention_bias
self_attn.q_norm: size
self_attn.k_norm: size
mlp.gate_proj: intermediate_size, hidden_size
mlp.up_proj: intermediate_size, hidden_size
mlp.down_proj: hidden_size, intermediate_size
router.proj: num_experts, hidden_size
router.scale: hidden_size
router.per_expert_scale: num_experts
"""
GEMMA4_VISION = """
vision_tower.patch_embedder.input_proj: vision_config.hidden_size, 3 * vision_config.patch_size ** 2
vision_tower.patch_embedder.positions: 2, vision_config.position_embedding_size, vision_config.hidden_size
vision_tower.std_bias: vision_config.hidden_size if vision_config.standardize
vision_tower.std_scale: vision_config.hidden_size if vision_config.standardize
embed_vision.embedding_projection: hidden_size, vision_config.hidden_size
"""
GEMMA4_TOWER_LAYER = """
self_attn.q_proj: vision_config.num_attention_heads * vision_config.head_dim, vision_config.hidden_size
self_attn.k_proj: vision_config.num_key_value_heads * vision_config.head_dim, vision_config.hidden_size
self_attn.v_proj: vision_config.num_key_value_heads * vision_config.head_dim, vision_config.hidden_size
self_attn.o_proj: vision_config.hidden_size, vision_config.num_attention_heads * vision_config.head_dim
self_attn.q_norm: vision_config.head_dim
self_attn.k_norm: vision_config.head_dim
mlp.gate_proj: vision_config.intermediate_size, vision_config.hidden_size
mlp.up_proj: vision_config.intermediate_size, vision_config.hidden_size
mlp.down_proj: vision_config.hidden_size, vision_config.intermediate_size
input_layernorm: vision_config.hidden_size
post_attention_layernorm: vision_config.hidden_size
pre_feedforward_layernorm: vision_config.hidden_size
post_feedforward_layernorm: vision_config.hidden_size
"""
GEMMA4_TEXT = Family(
    **decoder(GEMMA4_LAYER + EXPERTS),
    rules={
        "is_sparse": "True",
        "is_full": "layer == num_hidden_layers - 1 or layer_types[layer] == 'full_attention'",
        "size": "global_head_dim if is_full else head_dim",
        "groups": "num_global_key_value_heads or num_key_value_heads if is_full and attention_k_eq_v "
        "else num_key_value_heads",
        "num_experts_per_tok": "top_k_experts",
    },
    defaults={"tie_word_embeddings": "True", "global_head_dim": "512", "num_global_key_value_heads": "0"} | NO_BIAS,
    only={
        "enable_moe_block": (True,),
        "hidden_size_per_layer_input": (0,),
        "num_kv_shared_layers": (0,),
        "use_double_wide_mlp": (False, None),
    },
)
MAMBA_2 = """
mixer.in_proj: 2 * inner + 2 * n_groups * ssm_state_size + mamba_num_heads, hidden_size
mixer.in_proj.bias: 2 * inner + 2 * n_groups * ssm_state_size + mamba_num_heads if use_bias
mixer.conv1d: inner + 2 * n_groups * ssm_state_size, conv_kernel
mixer.conv1d.bias: inner + 2 * n_groups * ssm_state_size if use_conv_bias
mixer.dt_bias: mamba_num_heads
mixer.A_log: mamba_num_heads
mixer.D: mamba_num_heads
mixer.norm: inner
mixer.out_proj: hidden_size, inner
mixer.out_proj.bias: hidden_size if use_bias
"""
NEMOTRON_ATTENTION = ATTENTION.replace("self_attn", "mixer")
NEMOTRON_EXPERTS = """
mixer.gate: num_experts, hidden_size
mixer.gate.e_score_correction_bias: num_experts
mixer.fc1_latent_proj: moe_latent_size, hidden_size if moe_latent_size
mixer.fc1_latent_proj.bias: moe_latent_size if moe_latent_size and mlp_bias
mixer.fc2_latent_proj: hidden_size, moe_latent_size if moe_latent_size
mixer.fc2_latent_proj.bias: hidden_size if moe_latent_size and mlp_bias
mixer.experts.up_proj: num_experts, moe_intermediate_size, moe_latent_size or hidden_size
mixer.experts.down_proj: num_experts, moe_latent_size or hidden_size, moe_intermediate_size
mixer.shared_experts.up_proj: moe_shared_expert_intermediate_size, hidden_size
mixer.shared_experts.up_proj.bias: moe_shared_expert_intermediate_size if mlp_bias
mixer.shared_experts.down_proj: hidden_size, moe_shared_expert_intermediate_size
mixer.shared_experts.down_proj.bias: hidden_size if mlp_bias
"""
NEMOTRON_MLP = """
mixer.up_proj: intermediate_size, hidden_size
mixer.up_proj.bias: intermediate_size if mlp_bias
mixer.down_proj: hidden_size, intermediate_size
mixer.down_proj.bias: hidden_size if mlp_bias
"""
JAMBA_MAMBA = """
mamba.in_proj: 2 * inner, hidden_size
mamba.in_proj.bias: 2 * inner if mamba_proj_bias
mamba.conv1d: inner, mamba_d_conv
mamba.conv1d.bias: inner if mamba_conv_bias
mamba.x_proj: mamba_dt_rank + 2 * mamba_d_state, inner
mamba.dt_proj: inner, mamba_dt_rank
mamba.dt_proj.bias: inner
mamba.A_log: inner, mamba_d_state
mamba.D: inner
mamba.dt_layernorm: mamba_dt_rank
mamba.b_layernorm: mamba_d_state
mamba.c_layernorm: mamba_d_state
mamba.out_proj: hidden_size, inner
mamba.out_proj.bias: hidden_size if mamba_proj_bias
"""
DELTA_ATTENTION = """
self_attn.q_proj: width, hidden_size
self_attn.k_proj: width, hidden_size
self_attn.v_proj: width, hidden_size
self_attn.conv1d: 3 * width, kernel
self_attn.forget_gate.dt_bias: width
self_attn.forget_gate.A_log: heads
self_attn.forget_gate.f_a_proj: size, hidden_size
self_attn.forget_gate.f_b_proj: width, size
self_attn.b_proj: heads, hidden_size
self_attn.g_a_proj: size, hidden_size
self_attn.g_b_proj: width, size
self_attn.o_norm: size
self_attn.o_proj: hidden_size, width
"""
LIGHTNING_ATTENTION = """
self_attn.qkv_proj: 3 * num_attention_heads * head_dim, hidden_size
self_attn.out_proj: hidden_size, num_attention_heads * head_dim
self_attn.output_gate: num_attention_heads * head_dim, hidden_size
self_attn.norm: num_attention_heads * head_dim
"""
COMPRESSED_ATTENTION = """
self_attn.sinks: num_attention_heads
self_attn.q_a_proj: q_lora_rank, hidden_size
self_attn.q_a_norm: q_lora_rank
self_attn.q_b_proj: num_attention_heads * head_dim, q_lora_rank
self_attn.kv_proj: head_dim, hidden_size
self_attn.kv_norm: head_dim
self_attn.o_a_proj: o_groups * o_lora_rank, num_attention_heads * head_dim // o_groups
self_attn.o_b_proj: hidden_size, o_groups * o_lora_rank
self_attn.compressor.position_bias: heavy_rate, head_dim if is_heavy
self_attn.compressor.kv_proj: head_dim, hidden_size if is_heavy
self_attn.compressor.gate_proj: head_dim, hidden_size if is_heavy
self_attn.compressor.kv_norm: head_dim if is_heavy or is_light
self_attn.compressor.position_bias: light_rate, 2 * head_dim if is_light
self_attn.compressor.kv_proj: 2 * head_dim, hidden_size if is_light
self_attn.compressor.gate_proj: 2 * head_dim, hidden_size if is_light
self_attn.compressor.indexer.position_bias: light_rate, 2 * index_head_dim if is_light
self_attn.compressor.indexer.kv_proj: 2 * index_head_dim, hidden_size if is_light
self_attn.compressor.indexer.gate_proj: 2 * index_head_dim, hidden_size if is_light
self_attn.compressor.indexer.kv_norm: index_head_dim if is_light
self_attn.compressor.indexer.q_b_proj: index_n_heads * index_head_dim, q_lora_rank if is_light
self_attn.compressor.indexer.scorer.weights_proj: index_n_heads, hidden_size if is_light
"""
HYPER_CONNECTIONS = """
attn_hc.fn: (2 + hc_mult) * hc_mult, hc_mult * hidden_size
attn_hc.base: (2 + hc_mult) * hc_mult
attn_hc.scale: 3
ffn_hc.fn: (2 + hc_mult) * hc_mult, hc_mult * hidden_size
ffn_hc.base: (2 + hc_mult) * hc_mult
ffn_hc.scale: 3
"""
HYPER_HEAD = """
hc_head.hc_fn: hc_mult, hc_mult * hidden_size
hc_head.hc_base: hc_mult
hc_head.hc_scale: 1
"""
MINIMAX_M3_LAYER = (
    NORMS
    + ATTENTION
    + HEAD_NORMS
    + """
self_attn.indexer.q_proj: index_n_heads * index_head_dim, hidden_size if is_indexed
self_attn.indexer.k_proj: index_head_dim, hidden_size if is_indexed
self_attn.indexer.q_norm: index_head_dim if is_indexed
self_attn.indexer.k_norm: index_head_dim if is_indexed
"""
    + SPARSE_GATED
    + CORRECTION
    + SHARED
    + DENSE
)
MINIMAX_M3_VISION = """
vision_tower.embeddings.proj: vision_config.hidden_size, patch
vision_tower.pre_layrnorm: vision_config.hidden_size
vision_tower.pre_layrnorm.bias: vision_config.hidden_size
multi_modal_projector.linear_1: projector_hidden_size, vision_config.hidden_size
multi_modal_projector.linear_1.bias: projector_hidden_size
multi_modal_projector.linear_2: hidden_size, projector_hidden_size
multi_modal_projector.linear_2.bias: hidden_size
multi_modal_projector.merge_linear_1: projector_hidden_size, merged_hidden_size
multi_modal_projector.merge_linear_1.bias: projector_hidden_size
multi_modal_projector.merge_linear_2: hidden_size, projector_hidden_size
multi_modal_projector.merge_linear_2.bias: hidden_size
"""
T5_ATTENTION = """
q_proj: num_heads * d_kv, d_model
k_proj: num_heads * d_kv, d_model
v_proj: num_heads * d_kv, d_model
o_proj: d_model, num_heads * d_kv
"""
SWITCH_LAYER = (
    T5_ATTENTION
    + """
self_attn.relative_bias: relative_attention_num_buckets, num_heads if layer == 0
self_attn.layer_norm: d_model
mlp.layer_norm: d_model
mlp.router: num_experts, d_model if STEP
mlp.router.bias: num_experts if STEP and router_bias
mlp.experts.wi: num_experts, d_ff, d_model if STEP
mlp.experts.wo: num_experts, d_model, d_ff if STEP
mlp.wi: d_ff, d_model if not STEP
mlp.wo: d_model, d_ff if not STEP
"""
)
CROSS_ATTENTION = T5_ATTENTION.replace("_proj", "_cross_proj") + "cross_attn.layer_norm: d_model\n"
NLLB_ATTENTION = """
q_proj: d_model, d_model
q_proj.bias: d_model
k_proj: d_model, d_model
k_proj.bias: d_model
v_proj: d_model, d_model
v_proj.bias: d_model
out_proj: d_model, d_model
out_proj.bias: d_model
attn_layer_norm: d_model
attn_layer_norm.bias: d_model
"""
NLLB_LAYER = (
    NLLB_ATTENTION
    + """
ff_layer_norm: d_model
ff_layer_norm.bias: d_model
ffn.router: num_experts, d_model if STEP
ffn.router.bias: num_experts if STEP and router_bias
ffn.experts.fc1: num_experts, SIZE, d_model if STEP
ffn.experts.fc1.bias: num_experts * SIZE if STEP
ffn.experts.fc2: num_experts, d_model, SIZE if STEP
ffn.experts.fc2.bias: num_experts * d_model if STEP
ffn.fc1: SIZE, d_model if not STEP
ffn.fc1.bias: SIZE if not STEP
ffn.fc2: d_model, SIZE if not STEP
ffn.fc2.bias: d_model if not STEP
"""
)


def in_part(layer: str, step: str, size: str = "") -> str:
    """An encoder's or decoder's layers, whose steps and sizes have names of their own."""
    return layer.replace("STEP", step).replace("SIZE", size)


FAMILIES = {
    "mixtral": MIXTRAL,
    "olmoe": MIXTRAL._replace(
        **decoder(NORMS + ATTENTION + BIASES + ALL_HEADS_NORMS + SPARSE_GATED),
        defaults=UNTIED | BY_HEADS | NO_BIAS,
    ),
    "qwen2_moe": Family(
        **decoder(NORMS + ATTENTION + INPUT_BIASES + SPARSE_GATED + SHARED + SHARED_GATE + DENSE),
        rules=BY_STEP | {"attention_bias": "qkv_bias"},
        defaults=UNTIED | BY_HEADS | STEPS | {"qkv_bias": "True"},
    ),
    "qwen3_moe": QWEN3_MOE,
    "qwen3_next": Family(
        **decoder(DELTA_NET_LAYER),
        rules=BY_STEP | DELTA_NET_RULES,
        defaults=UNTIED | NO_BIAS | STEPS | {"layer_types": "[]", "full_attention_interval": "4"},
    ),
    "qwen3_5_moe_text": (
        QWEN3_5_TEXT := Family(
            **decoder(DELTA_NET_LAYER),
            rules={**BY_STEP, **DELTA_NET_RULES, "is_sparse": "True"},
            defaults=UNTIED | NO_BIAS | {"layer_types": "[]", "full_attention_interval": "4"},
            only={"mlp_only_layers": ([], None), "attn_output_gate": (True, None)},
        )
    ),
    "qwen3_5_moe": QWEN3_5_TEXT._replace(
        once=EMBEDDINGS + QWEN_VISION,
        stacks={"layers": ("num_hidden_layers", DELTA_NET_LAYER), "visual": ("vision_config.depth", VISION_BLOCK)},
        rules=QWEN3_5_TEXT.rules
        | {
            "patch": "vision_config.in_channels * vision_config.temporal_patch_size * vision_config.patch_size ** 2",
            "merged": "vision_config.hidden_size * vision_config.spatial_merge_size ** 2",
        },
        only=QWEN3_5_TEXT.only | {"deepstack_visual_indexes": ([], None)},
        inner="text_config",
    ),
    "deepseek_v2": DEEPSEEK_V3._replace(
        **decoder(NORMS + LATENT_ATTENTION + SPARSE_GATED + SHARED + DENSE),
        rules=DENSE_FIRST,
        only=EACH_LAYER | {"mlp_bias": (False, None)},
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "deepseek_v32": DEEPSEEK_V32,
    "glm_moe_dsa": DEEPSEEK_V32._replace(
        rules=DEEPSEEK_V32.rules
        | {
            "has_indexer": "indexer_types[layer] == 'full' if indexer_types else index_topk_pattern[layer] in "
            "('F', 'full') if index_topk_pattern else "
            "max(layer - index_skip_topk_offset + 1, 0) % max(index_topk_freq, 1) == 0"
        },
        defaults=DEEPSEEK_V3.defaults
        | {"indexer_types": "[]", "index_topk_pattern": "[]", "index_skip_topk_offset": "2", "index_topk_freq": "1"},
    ),
    "deepseek_v4": Family(
        **decoder(
            NORMS
            + COMPRESSED_ATTENTION
            + HYPER_CONNECTIONS
            + SPARSE_GATED
            + CORRECTION.replace("sparse", "learned")
            + SHARED,
            EMBEDDINGS + HYPER_HEAD,
        ),
        rules={
            "is_sparse": "True",
            "is_learned": "mlp_layer_types[layer] != 'hash_moe' if mlp_layer_types else layer >= num_hash_layers",
            "is_heavy": "layer_types[layer] == 'heavily_compressed_attention' if layer_types else "
            "compress_ratios[layer] == 128",
            "is_light": "layer_types[layer] == 'compressed_sparse_attention' if layer_types else "
            "compress_ratios[layer] == 4",
            "heavy_rate": "compress_rates['heavily_compressed_attention']",
            "light_rate": "compress_rates['compressed_sparse_attention']",
            "shared_size": "moe_intermediate_size * bool(n_shared_experts)",
        },
        defaults=UNTIED
        | {
            "mlp_layer_types": "[]",
            "num_hash_layers": "3",
            "layer_types": "[]",
            "compress_rates": "{'compressed_sparse_attention': 4, 'heavily_compressed_attention': 128}",
        },
        only={"mlp_bias": (False, None), "attention_bias": (False, None)},
        ignored=("num_key_value_heads", "qk_rope_head_dim"),
    ),
    "kimi_linear": Family(
        **decoder(
            NORMS
            + only_if("is_linear", DELTA_ATTENTION)
            + only_if("not is_linear", LATENT_ATTENTION)
            + SPARSE_GATED
            + CORRECTION
            + SHARED
            + DENSE
        ),
        rules=DENSE_FIRST
        | {
            "is_linear": "layer_types[layer] == 'linear_attention' if layer_types else "
            "layer + 1 in linear_attn_config.kda_layers",
            "heads": "linear_num_heads or linear_attn_config.num_heads",
            "size": "linear_head_dim or linear_attn_config.head_dim",
            "kernel": "linear_conv_kernel_dim or linear_attn_config.short_conv_kernel_size",
            "width": "heads * size",
        },
        defaults=DEEPSEEK_V3.defaults
        | {
            "layer_types": "[]",
            "linear_num_heads": "0",
            "linear_head_dim": "0",
            "linear_conv_kernel_dim": "0",
            "first_k_dense_replace": "1",
        },
        only=EACH_LAYER,
        ignored=LATENT,
    ),
    "gpt_oss": Family(
        **decoder(
            NORMS
            + ATTENTION
            + BIASES
            + """
self_attn.sinks: num_attention_heads
mlp.router: num_experts, hidden_size
mlp.router.bias: num_experts
mlp.experts.gate_up_proj: num_experts, 2 * intermediate_size, hidden_size
mlp.experts.gate_up_proj.bias: num_experts * 2 * intermediate_size
mlp.experts.down_proj: num_experts, hidden_size, intermediate_size
mlp.experts.down_proj.bias: num_experts * hidden_size
"""
        ),
        defaults=UNTIED | {"attention_bias": "True"},
    ),
    "llama4_text": LLAMA4_TEXT,
    "llama4": LLAMA4_TEXT._replace(
        once=EMBEDDINGS + LLAMA4_VISION,
        stacks={
            "layers": ("num_hidden_layers", LLAMA4_LAYER),
            "vision_model": ("vision_config.num_hidden_layers", TOWER_LAYER),
        },
        rules=LLAMA4_RULES | {"patches": "(vision_config.image_size // vision_config.patch_size) ** 2"},
        defaults=LLAMA4_DEFAULTS | {"vision_config": repr(LLAMA4_TOWER)},
        only={"multi_modal_projector_bias": (False, None)},
        inner="text_config",
    ),
    "glm4_moe": Family(
        **decoder(
            NORMS
            + ATTENTION
            + INPUT_BIASES
            + "self_attn.q_norm: head_dim if use_qk_norm\nself_attn.k_norm: head_dim if use_qk_norm\n"
            + SPARSE_GATED
            + CORRECTION
            + SHARED
            + DENSE
        ),
        rules=DENSE_FIRST,
        defaults=UNTIED | BY_HEADS | NO_BIAS | SHARED_OF_THESE | {"use_qk_norm": "False"},
    ),
    "minimax": Family(
        **decoder(
            NORMS + only_if("is_linear", LIGHTNING_ATTENTION) + only_if("not is_linear", ATTENTION) + SPARSE_GATED
        ),
        rules=ALL_SPARSE | {"is_linear": "layer_types[layer] == 'linear_attention' if layer_types else layer % 2 == 1"},
        defaults=UNTIED | BY_HEADS | {"layer_types": "[]"},
        only={"attn_type_list": (None,), "shared_intermediate_size": (0, None)},
    ),
    "minimax_m2": Family(
        **decoder(NORMS + ATTENTION + ALL_HEADS_NORMS + SPARSE_GATED + CORRECTION),
        rules=ALL_SPARSE,
        defaults=UNTIED | BY_HEADS,
        only={
            "use_qk_norm": (True, None),
            "qk_norm_type": ("per_layer", None),
            "use_routing_bias": (True, None),
            "shared_intermediate_size": (0, None),
        },
    ),
    "minimax_m3_vl": Family(
        once=EMBEDDINGS + MINIMAX_M3_VISION,
        stacks={
            "layers": ("num_hidden_layers", MINIMAX_M3_LAYER),
            "vision_tower": ("vision_config.num_hidden_layers", TOWER_LAYER),
        },
        rules={
            "is_sparse": "mlp_layer_types[layer] == 'sparse'",
            "is_indexed": "layer_types[layer] == 'minimax_m3_sparse'",
            "moe_intermediate_size": "intermediate_size",
            "shared_size": "shared_intermediate_size",
            "dense_size": "dense_intermediate_size",
            "patch": "vision_config.num_channels * vision_config.temporal_patch_size * vision_config.patch_size ** 2",
        },
        defaults=UNTIED,
        inner="text_config",
    ),
    "mimo_v2_flash": Family(
        **decoder(
            NORMS
            + """
self_attn.q_proj: heads * size, hidden_size
self_attn.q_proj.bias: heads * size if attention_bias
self_attn.k_proj: groups * size, hidden_size
self_attn.k_proj.bias: groups * size if attention_bias
self_attn.v_proj: groups * v_size, hidden_size
self_attn.v_proj.bias: groups * v_size if attention_bias
self_attn.o_proj: hidden_size, heads * v_size
self_attn.sinks: heads if add_swa_attention_sink_bias and is_sliding
"""
            + SPARSE_GATED
            + CORRECTION
            + DENSE
        ),
        rules={
            "is_sparse": "mlp_layer_types[layer] == 'sparse' if mlp_layer_types else moe_layer_freq[layer]",
            "dense_size": "intermediate_size",
            "is_sliding": "layer_types[layer] == 'sliding_attention' if layer_types else hybrid_layer_pattern[layer]",
            "heads": "swa_num_attention_heads if is_sliding else num_attention_heads",
            "groups": "swa_num_key_value_heads if is_sliding else num_key_value_heads",
            "size": "swa_head_dim if is_sliding else head_dim",
            "v_size": "swa_v_head_dim if is_sliding else v_head_dim",
        },
        defaults=UNTIED
        | NO_BIAS
        | {
            "layer_types": "[]",
            "mlp_layer_types": "[]",
            "add_swa_attention_sink_bias": "True",
            "swa_num_attention_heads": "num_attention_heads",
            "swa_head_dim": "head_dim",
            "swa_v_head_dim": "v_head_dim",
        },
        only={"n_shared_experts": (None, 0), "add_full_attention_sink_bias": (False, None)},
    ),
    "nemotron_h": Family(
        **decoder(
            "norm: hidden_size\n"
            + only_if("kind in ('M', 'mamba', 'linear_attention')", MAMBA_2)
            + only_if("kind in ('*', 'attention', 'full_attention')", NEMOTRON_ATTENTION)
            + only_if("kind in ('E', 'moe')", NEMOTRON_EXPERTS)
            + only_if("kind in ('-', 'mlp')", NEMOTRON_MLP),
            count="len(kinds)",
        ),
        rules={
            "kinds": "hybrid_override_pattern or layers_block_type or layer_types",
            "kind": "kinds[layer]",
            "inner": "mamba_num_heads * mamba_head_dim",
        },
        defaults=UNTIED
        | {
            "hybrid_override_pattern": "''",
            "layers_block_type": "[]",
            "moe_latent_size": "0",
            "use_bias": "False",
            "mlp_bias": "False",
            "use_conv_bias": "True",
        },
        ignored=("attention_bias", "mamba_proj_bias", "n_shared_experts", "num_hidden_layers"),
    ),
    "gemma4_text": GEMMA4_TEXT,
    "gemma4": GEMMA4_TEXT._replace(
        once=EMBEDDINGS + GEMMA4_VISION,
        stacks={
            "layers": ("num_hidden_layers", GEMMA4_LAYER + EXPERTS),
            "vision_tower": ("vision_config.num_hidden_layers", GEMMA4_TOWER_LAYER),
        },
        only=GEMMA4_TEXT.only | {"audio_config": (None,), "vision_config.use_clipped_linears": (False, None)},
        inner="text_config",
    ),
    "phimoe": Family(
        **decoder(
            NORMS
            + "input_layernorm.bias: hidden_size\npost_attention_layernorm.bias: hidden_size\n"
            + ATTENTION
            + BIASES
            + SPARSE_GATED,
            EMBEDDINGS + "norm.bias: hidden_size\nlm_head.bias: vocab_size if lm_head_bias\n",
        ),
        rules=ALL_SPARSE,
        defaults=UNTIED | BY_HEADS | NO_BIAS | {"lm_head_bias": "False"},
    ),
    "granitemoe": (
        GRANITE := Family(
            **decoder(NORMS + ATTENTION + BIASES + SPARSE_GATED),
            rules=ALL_SPARSE,
            defaults=UNTIED | BY_HEADS | NO_BIAS,
        )
    ),
    "granitemoeshared": GRANITE._replace(
        **decoder(NORMS + ATTENTION + BIASES + SPARSE_GATED + SHARED),
        rules=ALL_SPARSE | {"shared_size": "shared_intermediate_size"},
        defaults=GRANITE.defaults | {"shared_intermediate_size": "0"},
    ),
    "dbrx": Family(
        once="wte: vocab_size, d_model\nlm_head: vocab_size, d_model if not tie_word_embeddings\nnorm_f: d_model\n",
        stacks={
            "blocks": (
                "n_layers",
                """
norm_1: d_model
norm_2: d_model
attn.qkv_proj: d_model + 2 * groups * head_dim, d_model
attn.out_proj: d_model, d_model
ffn.router: num_experts, d_model
ffn.experts.w1_proj: num_experts, size, d_model
ffn.experts.v1_proj: num_experts, size, d_model
ffn.experts.w2_proj: num_experts, size, d_model
""",
            )
        },
        rules={
            "groups": "attn_config.kv_n_heads",
            "head_dim": "d_model // n_heads",
            "size": "ffn_config.ffn_hidden_size",
            "num_experts": "ffn_config.moe_num_experts",
            "num_experts_per_tok": "ffn_config.moe_top_k",
            "hidden_size": "d_model",
        },
        defaults=UNTIED,
    ),
    "jamba": Family(
        **decoder(
            NORMS.replace("post_attention", "pre_ff")
            + only_if("is_attention", ATTENTION)
            + only_if("not is_attention", JAMBA_MAMBA)
            + SPARSE_GATED
            + DENSE
        ),
        rules={
            "is_attention": "layer % attn_layer_period == attn_layer_offset",
            "is_sparse": "num_experts > 1 and layer % expert_layer_period == expert_layer_offset",
            "moe_intermediate_size": "intermediate_size",
            "dense_size": "intermediate_size",
            "inner": "mamba_expand * hidden_size",
        },
        defaults=UNTIED | BY_HEADS | {"mamba_conv_bias": "True", "mamba_proj_bias": "False"},
    ),
    "ernie4_5_moe": Family(
        **decoder(NORMS + ATTENTION + SPARSE_GATED + CORRECTION + SHARED + DENSE),
        rules={
            "is_sparse": "moe_layer_start_index <= layer <= (moe_layer_end_index if moe_layer_end_index >= 0 else "
            "num_hidden_layers - 1) and (layer + 1) % moe_layer_interval == 0",
            "shared_size": "n_shared_experts * moe_intermediate_size",
            "dense_size": "intermediate_size",
        },
        defaults={"tie_word_embeddings": "True", "moe_layer_end_index": "-1", "moe_layer_interval": "1"} | BY_HEADS,
        only={"use_bias": (False, None)},
    ),
    "hunyuan_v1_moe": Family(
        **decoder(NORMS + ATTENTION + BIASES + HEAD_NORMS + SPARSE_GATED + SHARED),
        rules=ALL_SPARSE | {"shared_size": "intermediate_size"},
        defaults=UNTIED | BY_HEADS | NO_BIAS,
        only={"use_qk_norm": (True, None), "use_cla": (False, None), "n_shared_experts": (1, None)},
    ),
    "switch_transformers": Family(
        once="shared: vocab_size, d_model\nlm_head: vocab_size, d_model if not tie_word_embeddings\n"
        "encoder.final_layer_norm: d_model\ndecoder.final_layer_norm: d_model\n",
        stacks={
            "encoder": ("num_layers", in_part(SWITCH_LAYER, "in_encoder")),
            "decoder": ("num_decoder_layers or num_layers", in_part(SWITCH_LAYER, "in_decoder") + CROSS_ATTENTION),
        },
        rules={
            "in_encoder": "encoder_sparse_step == 1 or encoder_sparse_step > 1 and layer % encoder_sparse_step == 1",
            "in_decoder": "decoder_sparse_step == 1 or decoder_sparse_step > 1 and layer % decoder_sparse_step == 1",
            "num_experts_per_tok": "1",
            "hidden_size": "d_model",
        },
        defaults={
            "tie_word_embeddings": "True",
            "num_decoder_layers": "0",
            "router_bias": "False",
            "relative_attention_num_buckets": "32",
            "encoder_sparse_step": "num_layers // num_sparse_encoder_layers",
            "decoder_sparse_step": "(num_decoder_layers or num_layers) // num_sparse_decoder_layers",
        },
    ),
    "nllb-moe": Family(
        once="shared: vocab_size, d_model\nlm_head: vocab_size, d_model if not tie_word_embeddings\n"
        "encoder.layer_norm: d_model\nencoder.layer_norm.bias: d_model\n"
        "decoder.layer_norm: d_model\ndecoder.layer_norm.bias: d_model\n",
        stacks={
            "encoder": ("encoder_layers", in_part(NLLB_LAYER, "in_encoder", "encoder_ffn_dim")),
            "decoder": (
                "decoder_layers",
                in_part(NLLB_LAYER, "in_decoder", "decoder_ffn_dim") + NLLB_ATTENTION.replace("proj", "cross_proj"),
            ),
        },
        rules={
            "in_encoder": "encoder_sparse_step > 0 and (layer + 1) % encoder_sparse_step == 0",
            "in_decoder": "decoder_sparse_step > 0 and (layer + 1) % decoder_sparse_step == 0",
            "num_experts_per_tok": "2",
            "hidden_size": "d_model",
        },
        defaults={"tie_word_embeddings": "True", "router_bias": "False"},
        ignored=("num_hidden_layers",),
    ),
    "grok-1": Family(
        **decoder(
            "pre_attn_norm: hidden_size\npost_attn_norm: hidden_size\npre_moe_norm: hidden_size\n"
            "post_moe_norm: hidden_size\n" + ATTENTION + SPARSE_GATED
        ),
        rules=ALL_SPARSE,
        defaults=BY_HEADS,
    ),
}
