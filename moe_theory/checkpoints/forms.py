"""Forms of a merged checkpoint, as libraries load it: a mixture of one expert, or the dense model of its family."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.runs.reading import read_text
from moe_theory.runs.tensors import InvalidCheckpointError

MOE_1, DENSE = FORMS = ("moe-1", "dense")
CONFIG = "config.json"
_ONES = {  # keys of numbers of experts, of those that are active and of their groups
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok",
    "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts",
    "num_selected_experts", "n_group", "topk_group", "num_expert_group",
}  # fmt: skip
_OF_MIXTURES = _ONES | {
    "moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers", "output_router_logits",
    "router_aux_loss_coef", "router_jitter_noise", "shared_intermediate_size", "num_shared_expert", "use_mixed_mlp_moe",
    "moe_layer_num_skipped", "moe_drop_tokens", "moe_random_routing_dropped_token",
}  # fmt: skip
_GATED = {name: (name,) for name in ("gate_proj.weight", "up_proj.weight", "down_proj.weight")}
_MIXTRAL = {"w1.weight": ("gate_proj.weight",), "w3.weight": ("up_proj.weight",), "w2.weight": ("down_proj.weight",)}
_GRANITE = {
    "input_linear.weight": ("gate_proj.weight", "up_proj.weight"),
    "output_linear.weight": ("down_proj.weight",),
}


class Dense(NamedTuple):
    """How a family's mixture becomes a dense model with the same outputs, gates of one expert being 1."""

    names: Mapping[str, tuple[str, ...]]  # by name within the expert; two where a tensor is split; empty: the same
    module: str = ""  # what the last part of the module's name becomes; empty: the same
    model_type: str = ""  # of the result; empty: the same, with the keys below
    architecture: str = ""
    shared: str = ""  # the module of a shared expert, from the layer's: its hidden units are added
    config: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: {}  # keys that change where the type does not
    factor: Callable[[Mapping[str, Any]], float] = lambda config: 1.0  # that experts' outputs are multiplied by
    needs: tuple[str, ...] = ()  # keys that these functions read
    is_sigmoid: bool = False  # whether gates are, so that one is 1 only where they are normalised


def _by_layers(config: dict[str, Any]) -> dict[str, Any]:
    lists = {"mlp_layer_types": ["dense"] * config["num_hidden_layers"]} if "mlp_layer_types" in config else {}
    return {"first_k_dense_replace": config["num_hidden_layers"], **lists}


_SOFTMAX = Dense(
    _GATED,
    shared="mlp.shared_experts",
    config=_by_layers,
    factor=lambda config: config["routed_scaling_factor"],
    needs=("num_hidden_layers", "routed_scaling_factor"),
)
_SIGMOID = _SOFTMAX._replace(needs=(*_SOFTMAX.needs, "norm_topk_prob"), is_sigmoid=True)
FAMILIES = {  # by `model_type`
    "mixtral": Dense(_MIXTRAL, "mlp", "mistral", "MistralForCausalLM"),
    "qwen3_moe": Dense(_GATED, "mlp", "qwen3", "Qwen3ForCausalLM"),
    "granitemoe": Dense(_GRANITE, "mlp", "granite", "GraniteForCausalLM"),
    "granitemoeshared": Dense(_GRANITE, "mlp", "granite", "GraniteForCausalLM", "shared_mlp"),
    "hunyuan_v1_moe": Dense(_GATED, "mlp", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "mlp.shared_mlp"),
    "deepseek_v2": _SOFTMAX,
    "deepseek_v3": _SIGMOID,
    "glm4_moe": _SIGMOID,
    "dots1": _SIGMOID,
    "ernie4_5_moe": Dense(
        _GATED,
        shared="mlp.shared_experts",
        config=lambda config: {"moe_layer_start_index": config["num_hidden_layers"]},
        needs=("num_hidden_layers",),
    ),
    "jamba": Dense(_GATED, config=lambda config: {"num_experts": 1, "num_experts_per_tok": 1}),
    "nllb-moe": Dense(
        {},
        config=lambda config: {"encoder_sparse_step": 0, "decoder_sparse_step": 0},
        factor=lambda config: 1 - config["moe_token_dropout"],  # also where nothing is dropped
        needs=("moe_token_dropout",),
    ),
}
_OF_GROUPS = "its router takes the best two of each group"
NEVER_ALONE = {  # families whose code cannot run a mixture of one expert
    "deepseek_v3": _OF_GROUPS,
    "glm4_moe": _OF_GROUPS,
    "dots1": _OF_GROUPS,
    "jamba": "a layer of one expert has no router there",
    "nllb-moe": "its router takes two experts",
    "phimoe": "its router takes two experts",
}


def read_config(folder: Path) -> dict[str, Any] | None:
    """A checkpoint's configuration; None without one. Raises: InvalidCheckpointError for what is no JSON object."""
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        config = json.loads(read_text(path).removeprefix("\ufeff"))  # which has infinities in some families
        if not isinstance(config, dict):
            raise ValueError("it is no JSON object")
    except (OSError, ValueError, RecursionError) as failure:
        raise InvalidCheckpointError(f"{path} cannot be read ({shortened(str(failure))}). Fetch it again.") from None
    return config


def require_form(form: str, config: Mapping[str, Any] | None, place: Path) -> Dense | None:
    """The family's dense form; None for a mixture of one.

    Raises: InvalidParamsError for a form that this family does not have.
    """
    if form not in FORMS:
        raise InvalidParamsError(f"form {shortened(form)} is not one of {', '.join(FORMS)}. Name one of them.")
    family = None if config is None else config.get("model_type")
    family = family if isinstance(family, str) else None
    without = f"Merge it without its {CONFIG}, for code of yours"
    if form == MOE_1:
        if family in NEVER_ALONE:
            raise InvalidParamsError(
                f"{place} is of the family {family}, whose code cannot run one expert alone: {NEVER_ALONE[family]}. "
                f"{'Write the dense form' if family in FAMILIES else without}."
            )
        return None
    if config is None or family is None or family not in FAMILIES:
        what = f"of the family {shortened(family)}" if family else f"without a {CONFIG} that names its family"
        raise InvalidParamsError(
            f"{place} is {what}: dense models with the same outputs are known of {', '.join(FAMILIES)}. "
            f"{without if family in NEVER_ALONE else 'Write a mixture of one expert, moe-1'}."
        )
    dense = FAMILIES[family]
    if missing := [key for key in dense.needs if key not in config]:
        raise InvalidCheckpointError(f"{place / CONFIG} has no {missing[0]}, which its dense form needs. Add it.")
    if dense.is_sigmoid and config["norm_topk_prob"] is not True:
        raise InvalidParamsError(
            f"{place} has gates that are sigmoids and not normalised (norm_topk_prob), so that no dense model has its "
            "outputs."
        )
    return dense


def of_one_expert(config: Any) -> Any:
    """A configuration whose numbers of experts are 1, in all its parts."""
    if isinstance(config, list):
        return [of_one_expert(each) for each in config]
    if not isinstance(config, dict):
        return config
    ones = {
        key: [1] * len(value) if isinstance(value, list) else 1
        for key, value in config.items()
        if key in _ONES and value  # none and 0 are of parts without experts
    }
    return {key: ones.get(key, of_one_expert(value)) for key, value in config.items()}


def of_dense(config: dict[str, Any], dense: Dense, width: int) -> dict[str, Any]:
    """The configuration of a dense model whose feed-forward layers have this many hidden units."""
    if not dense.model_type:
        new = {**config, **dense.config(config)}
    else:
        new = {key: value for key, value in config.items() if key not in _OF_MIXTURES}
        new |= {"model_type": dense.model_type, "architectures": [dense.architecture]}
    return new | {"intermediate_size": width} if "intermediate_size" in config else new
