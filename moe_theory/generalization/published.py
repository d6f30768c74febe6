"""The sizes of published language models with sparse experts, from the `config.json` that their weights come with.

Tensors are those of the model whose predictions are bounded: learned corrections of the router and vision parts are
counted, layers for predicting further tokens are not. What a family is made of is in `families`.
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.core.fields import documented
from moe_theory.generalization.families import SYNONYMS, Family, Stack, compiled, families
from moe_theory.generalization.quantised import Quantisation, is_quantised, quantisation, read_table
from moe_theory.runs.tensors import INDEX, open_checkpoint

BITS = {"float64": 64, "float32": 32, "bfloat16": 16, "float16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8}
ASSUMED_BITS = 32  # of tensors of which nothing says how they are stored
_PACKED = {"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"}  # dtypes that quantised weights are packed into
MOST_LAYERS = 10_000  # as no model has, and a file may say
_OF_WINDOWS = ("full_attention", "sliding_attention", "chunked_attention")  # kinds of layers that have the same tensors
_OTHER_KINDS = ("dense", "sparse", "moe", "shared", "S", "attention", "indexed_attention")  # where formulas name others
_KINDS = {  # keys that list the kinds of layers
    "layer_types", "mlp_layer_types", "layers_block_type", "hybrid_override_pattern", "indexer_types",
    "index_topk_pattern",
}  # fmt: skip
OF_OTHER_TOKENS = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")  # layers not counted
WAY_OUT = "Count its weights and give --weights, or name the folder of its weights with --checkpoint"
_SINGLE = re.compile(r"correction_bias|A_log|dt_bias|\.D$|sinks|position_bias|_hc\.|hc_head")  # kept in 32 bits
_UNSEEN = re.compile("expert|moe|shared|layers|tie|quant|latent|rank|mlp|bias")  # in names of keys that may add tensors
_HARMLESS = {  # keys that match, and add none
    "aux_loss_alpha", "expert_capacity", "max_window_layers", "moe_jitter_noise", "moe_loss_weight", "moe_norm_min",
    "moe_normalize_expert_weights", "moe_renormalize", "moe_router_dtype", "mlp_hidden_act", "no_rope_layers",
    "num_expert_group", "quantization_config", "router_bias_update_speed", "use_expert_bias",
}  # fmt: skip


class _MissingError(Exception):
    """A key that is not in the file, and has no default."""


@documented
class Part(NamedTuple):
    """Tensors of one kind."""

    name: str  # as its family calls it, such as "layers.mlp.experts.up_proj"
    weights: int  # their number, in all layers
    bits: int  # that they are stored in, all of them, with the scales of quantised ones


@documented
class Published(NamedTuple):
    """A published model, as far as its configuration describes it."""

    family: str  # its `model_type`
    num_experts: int  # T
    num_active: int  # k
    num_features: int  # d, its hidden size
    parts: tuple[Part, ...]  # empty where the family is not known
    notes: tuple[str, ...]  # what was counted, assumed or left out, in sentences
    dtype_bits: int | None  # of a weight that is not quantised; None where weights are not counted, and some are

    @property
    def num_weights(self) -> int:
        """The number of weights."""
        return sum(part.weights for part in self.parts)

    @property
    def num_bits(self) -> int:
        """The bits that all weights are stored in."""
        return sum(part.bits for part in self.parts)


def published(path: str | Path, is_counted: bool = True, bits: int | None = None) -> Published:
    """A model's sizes: T, k, d, and its tensors with their numbers of weights and bits.

    Args:
        path: a `config.json`, or the folder that it is in.
        is_counted: whether the weights are counted, which takes a family of `families.toml`; else T, k and d alone.
        bits: that each weight is stored in, in place of what the file says.
    Source: the configurations as published; sums are those of Transformers' own models.
    Raises: InvalidParamsError for a file that is no such configuration, or that has what cannot be counted.

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
        >>> generalization.published(path).num_weights
        46702792704
    """
    path = Path(path)
    path = path / "config.json" if path.is_dir() else path
    config = read_table(path)
    name = config.get("model_type")
    family = families().get(name) if isinstance(name, str) else None
    if is_counted and family is None:
        raise InvalidParamsError(
            f"{path} has model_type={shortened(name)}, not one of {', '.join(families())}, whose tensors are known. "
            f"{WAY_OUT}."
        )
    keys = _Keys(path, config, family or _guessed(config))
    if family is not None and is_counted:
        _require_known(keys, family)
    sizes = {size: keys.whole(size) for size in ("num_experts", "num_experts_per_tok", "hidden_size")}
    how = quantisation(path, config) if is_counted and bits is None else None
    dtype_bits, notes = _dtype_bits(path, keys) if bits is None else (bits, [])
    least = ASSUMED_BITS if bits is None else bits
    parts = tuple(_parts(keys, family, how, dtype_bits, least)) if family is not None and is_counted else ()
    if parts and not any(".experts." in part.name and part.weights for part in parts):
        raise InvalidParamsError(f"{path} has no layer of experts: it is no sparse mixture. Name another model's.")
    notes = [*(notes if parts else []), *([how.words] if how and parts else []), *(_notes(keys) if parts else [])]
    return Published(
        str(name),
        *sizes.values(),
        parts=parts,
        notes=tuple(notes),
        dtype_bits=None if bits is None and not is_counted and is_quantised(path, config) else dtype_bits,
    )


@documented
class StoredSize(NamedTuple):
    """Size of a checkpoint, from its headers."""

    num_weights: int | None  # numbers in all its tensors; None where several are packed into one
    num_bits: int  # of all its tensors
    note: str  # a sentence about where this is from


def stored(path: str | Path) -> StoredSize:
    """The size of a published checkpoint, from its headers alone.

    Args:
        path: a safetensors file, a folder of its shards, or its index alone.
    Source: the safetensors format.
    Raises: InvalidCheckpointError for what is no checkpoint; InvalidParamsError for an index that says no size.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from safetensors.numpy import save_file
        >>> from moe_theory import generalization
        >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> save_file({"experts": np.zeros((4, 3), np.float16)}, path)
        >>> generalization.stored(path)[:2]
        (12, 192)
    """
    path = Path(path)
    index = path / INDEX if path.is_dir() else path
    if index.name.endswith(".index.json") and index.is_file() and not any(index.parent.glob("*.safetensors")):
        said = read_table(index).get("metadata")
        size, count = (said.get(key) if isinstance(said, dict) else None for key in ("total_size", "total_parameters"))
        if type(size) is not int or not 0 < size < 2**58:
            raise InvalidParamsError(
                f"{index} has no total_size in its metadata, and its shards are not beside it. Fetch them, or give "
                "--weights and --bits."
            )
        count = count if type(count) is int and 0 < count < 2**62 else None
        return StoredSize(count, 8 * size, f"Sizes are those that {index.name} states: its shards are not here.")
    tensors = open_checkpoint(index.parent if index.name == INDEX else path).tensors.values()
    packed = sorted({tensor.kind for tensor in tensors} & _PACKED)
    bits = 8 * sum(tensor.stop - tensor.start for tensor in tensors)
    if not bits:
        raise InvalidParamsError(f"{path} has no weights in its tensors. Name another checkpoint.")
    count = None if packed else sum(math.prod(tensor.shape) for tensor in tensors)
    words = f"By the headers of {path.name}: {len(tensors):,} tensors in {bits // 8:,} bytes"
    return StoredSize(count, bits, words + (f", some of them packed ({', '.join(packed)})." if packed else "."))


def _guessed(config: Mapping[str, Any]) -> Family:
    """A family of which T, k and d alone are looked for."""
    inner = next((name for name in ("text_config", "llm_config") if isinstance(config.get(name), dict)), "")
    rules = {"hidden_size": "d_model"} if "d_model" in config else {}
    return Family((), rules, {}, {}, {}, (), inner)


class _Keys(dict):
    """A configuration's keys as formulas read them: rules, then the file, then defaults."""

    def __init__(self, path: Path, config: Mapping[str, Any], family: Family) -> None:
        super().__init__(max=max, len=len, bool=bool)
        self.path, self.config, self.family = path, config, family
        inner = config.get(family.inner) if family.inner else None
        if family.inner and not isinstance(inner, dict):
            raise InvalidParamsError(f"{path} has no {family.inner}, where this family's sizes are. {WAY_OUT}.")
        self.scopes = [inner, config] if inner else [config]
        self.read: set[str] = set()
        self.assumed: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        if name in self.family.rules:
            return self.value(self.family.rules[name])
        found = self.found(name)
        if found is None:
            is_null = any(one in scope for one in (name, *SYNONYMS.get(name, ())) for scope in self.scopes)
            formula = (self.family.nulls if is_null else {}).get(name, self.family.defaults.get(name))
            if formula is None:
                raise _MissingError(name)
            found = self.value(formula)
            if not is_null:
                self.assumed[name] = found
        return _Nested(self, name, found) if isinstance(found, dict) else found

    def found(self, name: str) -> Any:
        """The file's value; None if it has none. Raises: InvalidParamsError where it contradicts itself."""
        names = (name, *SYNONYMS.get(name, ()))
        said = [(one, scope[one]) for one in names for scope in self.scopes if scope.get(one) is not None]
        self.read.update(names)
        if any(value != said[0][1] for _, value in said):
            both = " and ".join(f"{one}={shortened(value)}" for one, value in said)
            raise InvalidParamsError(f"{self.path} has {both}, which contradict each other. {WAY_OUT}.")
        return self.checked(*said[0]) if said else None

    def checked(self, name: str, value: Any) -> Any:
        """A value that formulas can compute with: lists of one number each layer become that number."""
        is_one = isinstance(value, list) and value and all(type(one) is int and one == value[0] for one in value)
        if is_one and not name.endswith(("_freq", "_pattern", "_layers", "_ratios")):
            value = value[0]
        is_number = isinstance(value, bool) or (isinstance(value, int) and 0 <= value < 2**62)
        is_list = (
            isinstance(value, list) and len(value) <= MOST_LAYERS and all(type(one) in (int, str) for one in value)
        )
        is_text = isinstance(value, str) and name.endswith("_pattern") and len(value) <= MOST_LAYERS
        if not (is_number or is_list or is_text or isinstance(value, dict)):
            if name == "moe_layer_end_index" and type(value) is int:
                return value
            raise InvalidParamsError(
                f"{self.path} has {name}={shortened(value)}, which is no size, or no list of one a layer. {WAY_OUT}."
            )
        return value

    def value(self, formula: str, what: str = "") -> Any:
        """A formula's value. Raises: InvalidParamsError that names the key it fails at."""
        try:
            return eval(compiled(formula), {"__builtins__": {}}, self)
        except _MissingError as missing:
            known = " or ".join((missing.args[0], *SYNONYMS.get(missing.args[0], ())))
            raise InvalidParamsError(f"{self.path} has no {known}, which its family needs. {WAY_OUT}.") from None
        except (ArithmeticError, LookupError, TypeError, AttributeError) as failure:
            raise InvalidParamsError(
                f"{self.path} has values of which {what or formula} cannot be computed ({failure}). {WAY_OUT}."
            ) from None

    def whole(self, name: str) -> int:
        """A size of at least 1."""
        found = self.value(name)
        if type(found) is not int or found < 1:
            raise InvalidParamsError(f"{self.path} must have {name}, a whole number from 1 on; got {shortened(found)}.")
        return found


class _Nested:
    """A table inside a configuration, as formulas read it: vision_config.hidden_size."""

    def __init__(self, keys: _Keys, name: str, table: Mapping[str, Any]) -> None:
        self._keys, self._name, self._table = keys, name, table

    def __getattr__(self, name: str) -> Any:
        self._keys.read.add(f"{self._name}.{name}")
        if self._table.get(name) is None:
            raise _MissingError(f"{self._name}.{name}")
        return self._keys.checked(name, self._table[name])

    __getitem__ = __getattr__

    def __bool__(self) -> bool:
        return bool(self._table)


def _parts(keys: _Keys, family: Family, how: Quantisation | None, bits: int, least: int) -> Iterator[Part]:
    for stack in family.stacks:
        count = keys.value(stack.num_layers)
        if type(count) is not int or not 0 < count <= MOST_LAYERS:
            raise InvalidParamsError(
                f"{keys.path} has {shortened(count)} layers by {stack.num_layers}, not 1 to {MOST_LAYERS:,}. {WAY_OUT}."
            )
        if how is not None and stack.name == "layers":
            names = [(layer, line.name) for layer in range(count) for line in stack.lines]
            if (unplaced := how.unplaced(names, count)) is not None:
                raise InvalidParamsError(
                    f"{keys.path} has a quantization_config that leaves out {shortened(unplaced)}, which is none of "
                    "the tensors that are known. Give --bits, or name the folder of its weights with --checkpoint."
                )
        yield from _stack(keys, stack, count, how, (bits, max(bits, least)))


def _stack(keys: _Keys, stack: Stack, count: int, how: Quantisation | None, bits: tuple[int, int]) -> Iterator[Part]:
    """The tensors of a stack, those of all its layers together; `bits` of most weights, and of those in `_SINGLE`."""
    for line in stack.lines:
        weights = stored = 0
        for layer in range(count):
            keys["layer"] = layer
            if not all(keys.value(condition, line.name) for condition in line.conditions):
                continue
            found = keys.value(line.shape, line.name)
            sizes = found if isinstance(found, tuple) else (found,)
            if any(type(size) is not int or size < 1 for size in sizes):
                raise InvalidParamsError(
                    f"{keys.path} has sizes by which {line.name}, of shape ({line.shape}), is {shortened(sizes)}, "
                    f"which is no shape of a tensor. {WAY_OUT}."
                )
            weights += math.prod(sizes)
            own = bits[_SINGLE.search(line.name) is not None]
            stored += how.bits(stack.name, layer, line.name, sizes, own) if how else math.prod(sizes) * own
        if weights:
            yield Part(f"{stack.name}.{line.name}".lstrip("."), weights, stored)


@functools.cache
def _names_of_all() -> frozenset[str]:
    return frozenset().union(*(family.names() for family in families().values()))


def _require_known(keys: _Keys, family: Family) -> None:
    """Refuse what is known to add tensors, and is not known to do so here."""
    for key, allowed in family.only.items():
        outer, _, name = key.rpartition(".")
        nested = [scope.get(outer) for scope in keys.scopes] if outer else keys.scopes
        tables = [table for table in nested if isinstance(table, dict)]
        names = (name, *SYNONYMS.get(name, ()))
        for said in (table[one] for table in tables for one in names if table.get(one) is not None):
            said = said[0] if isinstance(said, list) and said and all(one == said[0] for one in said) else said
            if said not in allowed:
                where = f"for {key}={shortened(allowed[0])} alone" if allowed else f"without {key} alone"
                raise InvalidParamsError(
                    f"{keys.path} has {key}={shortened(said)}, and the tensors of a {keys.config['model_type']} are "
                    f"known {where}. {WAY_OUT}."
                )
    own = family.names()
    for key in _KINDS & own:
        kinds = keys.found(key) or []
        strange = [kind for kind in (kinds if isinstance(kinds, list | str) else ()) if kind not in family.kinds()]
        if unknown := [kind for kind in strange if kind not in (*_OF_WINDOWS, *_OTHER_KINDS)]:
            raise InvalidParamsError(
                f"{keys.path} has a layer {shortened(unknown[0])} in {key}, whose tensors are not known. {WAY_OUT}."
            )
    for scope in keys.scopes:
        for key in sorted(scope.keys() & _names_of_all() - own):
            if scope[key] in (None, False, 0, [], "") or isinstance(scope[key], dict):
                continue
            kinds = keys.checked(key, scope[key]) if key == "layer_types" else None
            if not isinstance(kinds, list) or not all(kind in _OF_WINDOWS for kind in kinds):
                raise InvalidParamsError(
                    f"{keys.path} has {key}={shortened(scope[key])}, which changes what other families are made of, "
                    f"and is not known for {keys.config['model_type']}. {WAY_OUT}."
                )


def _notes(keys: _Keys) -> Iterator[str]:
    """Notes on assumed values, and on keys that were not counted or not understood."""
    said = {key: scope[key] for scope in keys.scopes for key in scope}
    assumed = {name: value for name, value in keys.assumed.items() if value not in ([], "")}
    if assumed:
        listed = ", ".join(f"{name}={shortened(value)}" for name, value in sorted(assumed.items()))
        yield f"Not in the file, and taken as the family's own code does: {listed}."
    further = [f"{key}={said[key]}" for key in OF_OTHER_TOKENS if said.get(key)]
    if further:
        listed = ", ".join(further)
        yield f"Not counted, as the next token's prediction does not use them: layers for further tokens ({listed})."
    own = keys.family.names() | keys.read | _HARMLESS | {*OF_OTHER_TOKENS}
    unread = sorted(
        f"{key}={shortened(value)}"
        for key, value in said.items()
        if _UNSEEN.search(key)
        and key not in own
        and not key.startswith("mtp_")
        and value not in (None, False, 0, 0.0, [], "")
    )
    if unread:
        yield f"Not known, so not counted: {', '.join(unread)}. If one of them adds weights, use --checkpoint."


def _dtype_bits(path: Path, keys: _Keys) -> tuple[int, list[str]]:
    """Bits of a weight that is not quantised, and what to say about them."""
    said = next(
        (scope[name] for name in ("torch_dtype", "dtype") for scope in keys.scopes[::-1] if scope.get(name)), None
    )
    if said is None:
        return ASSUMED_BITS, [
            f"Neither torch_dtype nor dtype is in the file: {ASSUMED_BITS} bits are taken for each weight that is not "
            "quantised, the most there are; --bits or --checkpoint says better."
        ]
    if not isinstance(said, str) or said.removeprefix("torch.") not in BITS:
        raise InvalidParamsError(f"{path} has torch_dtype={shortened(said)}, not one of {', '.join(BITS)}.")
    which = "Weights that are not quantised" if is_quantised(path, keys.config) else "No quantization_config: weights"
    dtype = said.removeprefix("torch.")
    return BITS[dtype], [f"{which} are stored as {dtype} by the file."]
