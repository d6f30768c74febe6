"""Layers of published families of language models with sparse experts, as `families.toml` describes them."""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

# Names that keys go by; where a file has several, they must agree.
SYNONYMS = {
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "num_selected_experts"),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
}
_TABLES = ("rules", "defaults", "nulls", "only")


class Line(NamedTuple):
    """A tensor, or one in each layer."""

    name: str
    shape: str  # formula
    conditions: tuple[str, ...]  # formulas, all of which hold where there is one


class Stack(NamedTuple):
    """Layers that may have the same tensors."""

    name: str  # empty for what there is once
    num_layers: str  # formula
    lines: tuple[Line, ...]


class Family(NamedTuple):
    """A kind of model; fields are explained in `families.toml`."""

    stacks: tuple[Stack, ...]
    rules: Mapping[str, str]
    defaults: Mapping[str, str]
    nulls: Mapping[str, str]
    only: Mapping[str, list[Any]]
    ignored: tuple[str, ...]
    inner: str

    def formulas(self) -> list[str]:
        """All that its tensors depend on."""
        lines = [line for stack in self.stacks for line in stack.lines]
        texts = [text for line in lines for text in (line.shape, *line.conditions)]
        return [*texts, *self.rules.values(), *self.defaults.values(), *(stack.num_layers for stack in self.stacks)]

    def kinds(self) -> frozenset[str]:
        """Kinds of layers that it distinguishes."""
        found = [constant for text in self.formulas() for constant in compiled(text).co_consts]
        return frozenset(kind for each in found for kind in (each if isinstance(each, tuple) else (each,)) if kind)

    def names(self) -> frozenset[str]:
        """Keys that it speaks of, by any of their names."""
        found = {name for text in self.formulas() for name in compiled(text).co_names}
        found |= {*self.defaults, *(key.rpartition(".")[-1] for key in self.only), *self.ignored}
        return frozenset(found | {other for name in found for other in SYNONYMS.get(name, ())})


@functools.cache
def compiled(formula: str) -> CodeType:
    """A formula, ready to be evaluated."""
    return compile(formula, "<formula>", "eval")


@functools.cache
def families() -> dict[str, Family]:
    """All families, by their `model_type`."""
    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    entries: dict[str, dict[str, Any]] = {}
    for name, own in document["families"].items():  # one that another is like comes first
        entries[name] = _merged(entries.get(own.get("like", ""), {}), document["sets"], own)
    return {name: _family(document["blocks"], entry) for name, entry in entries.items()}


def _merged(parent: Mapping[str, Any], sets: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**parent, **own}
    for table in (*_TABLES, "stacks"):
        used = [sets[name].get(table, {}) for name in own.get("use", ())]
        merged[table] = {
            key: value for each in (parent.get(table, {}), *used, own.get(table, {})) for key, value in each.items()
        }
    return merged


def _family(blocks: dict[str, Any], entry: Mapping[str, Any]) -> Family:
    stacks = [Stack("", "1", _lines(blocks, entry, entry.get("once", ["embeddings"])))]
    if "layers" in entry:
        count = entry.get("count", "num_hidden_layers")
        stacks.append(Stack("layers", count, _lines(blocks, entry, entry["layers"])))
    for name, (count, *listed) in entry["stacks"].items():
        stacks.append(Stack(name, count, _lines(blocks, entry, listed)))
    tables = {name: entry[name] for name in _TABLES}
    return Family(tuple(stacks), ignored=tuple(entry.get("ignored", ())), inner=entry.get("inner", ""), **tables)


def _lines(blocks: dict[str, Any], entry: Mapping[str, Any], listed: Sequence[str]) -> tuple[Line, ...]:
    """Those of some blocks: the family's own, or shared ones."""
    found = []
    for each in listed:
        name, _, condition = each.partition(" if ")
        kind, _, inner = name.rpartition(".")
        block: str = entry[name] if isinstance(entry.get(name), str) else (blocks[kind] if kind else blocks)[inner]
        for text in filter(None, block.split("\n")):
            tensor, _, rest = text.partition(": ")
            rest, _, own = rest.partition(" if ")
            shape, _, bias = rest.partition("; ")
            outer = (condition,) if condition else ()
            found.append(Line(tensor, shape, (*outer, own) if own and not bias else outer))
            if bias:  # of each row of a matrix, or beside the numbers of a norm
                rows = shape.rpartition(", ")[0] or shape
                found.append(Line(f"{tensor}.bias", rows, (*outer, own) if own else outer))
    return tuple(found)
