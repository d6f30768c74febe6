"""The sizes of published language models with sparse experts, from the `config.json` that their weights come with."""

from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.runs.files import read_json

BITS = {"float32": 32, "bfloat16": 16, "float16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8}
EXPERTS = ("num_local_experts", "num_experts")  # T, as families name it
# Of each family that is known: numbers in the norms of one head's, or all heads', queries and keys; hidden units of an
# expert. Queries, keys, values and outputs have no biases, experts are gated units of three matrices.
FAMILIES = {
    "mixtral": (lambda heads, groups, size: 0, "intermediate_size"),
    "olmoe": (lambda heads, groups, size: (heads + groups) * size, "intermediate_size"),
    "qwen3_moe": (lambda heads, groups, size: 2 * size, "moe_intermediate_size"),
}


def published(path: str | Path) -> dict[str, Any]:
    """Fields of `calculator.Setting` for a model: T, k, d (its hidden size), its number of weights, and their bits.

    Args:
        path: a `config.json` of one of `FAMILIES`: what each layer is made of is known of these alone.
    Source: the configurations as published; their sums are those of the published weights.
    Raises: InvalidParamsError for a file that is no such configuration.

    Examples:
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> from moe_theory import generalization
        >>> config = {
        ...     "model_type": "mixtral", "torch_dtype": "bfloat16", "vocab_size": 32000, "num_hidden_layers": 32,
        ...     "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
        ...     "num_local_experts": 8, "num_experts_per_tok": 2,
        ... }
        >>> path = Path(tempfile.mkdtemp()) / "config.json"
        >>> path.write_text(json.dumps(config)) > 0
        True
        >>> generalization.published(path)["num_weights"]
        46702792704
    """
    config = _read(Path(path))
    family = config.get("model_type")
    if family not in FAMILIES:
        raise InvalidParamsError(
            f"{path} has model_type={shortened(family)}, not one of {', '.join(FAMILIES)}, whose layers are known. "
            "Count its weights and give num_weights."
        )
    normed, units = FAMILIES[family]
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1 or config.get("attention_bias"):
        raise InvalidParamsError(
            f"{path} has layers without experts, or biases, which are not counted. Count its weights and give "
            "num_weights."
        )

    def whole(*names: str, default: int | None = None) -> int:
        found = next((config[name] for name in names if config.get(name) is not None), default)
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise InvalidParamsError(f"{path} must have {' or '.join(names)}, a whole number from 1 on; got {found!r}.")
        return found

    hidden, heads = whole("hidden_size"), whole("num_attention_heads")
    groups, size = whole("num_key_value_heads", default=heads), whole("head_dim", default=hidden // heads)
    experts, active = whole(*EXPERTS), whole("num_experts_per_tok")
    attention = 2 * hidden * size * (heads + groups) + normed(heads, groups, size)
    layer = attention + 2 * hidden + experts * hidden + experts * 3 * hidden * whole(units)
    embeddings = (1 if config.get("tie_word_embeddings") else 2) * whole("vocab_size") * hidden
    stored_as = str(config.get("torch_dtype") or config.get("dtype") or "float32")
    if stored_as not in BITS:
        raise InvalidParamsError(f"{path} has torch_dtype={shortened(stored_as)}, not one of {', '.join(BITS)}.")
    return {
        "num_experts": experts,
        "num_active": active,
        "num_features": hidden,
        "num_weights": whole("num_hidden_layers") * layer + hidden + embeddings,
        "bits": BITS[stored_as],
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InvalidParamsError(f"{path} cannot be read as JSON: {reason}. Name a model's config.json.") from None
    if not isinstance(found, dict):
        raise InvalidParamsError(f"{path} holds no JSON object. Name a model's config.json.")
    return found
