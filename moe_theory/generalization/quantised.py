"""The bits that quantised tensors are stored in, by the `quantization_config` of a published model.

A matrix of a layer that the configuration does not leave out is quantised, scales and zero points included; routers,
embeddings, norms, biases, convolutions and vision parts are taken as not quantised, as they are in published models. If
one of them is after all, more bits are counted than there are, and a bound still holds.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidParamsError, shortened
from moe_theory.runs.files import read_json

METHODS = ("fp8", "mxfp4", "nvfp4", "gptq", "awq", "bitsandbytes", "compressed-tensors", "modelopt")
WAY_OUT = "Give --bits, or name the folder of its weights with --checkpoint"
_MATRIX = re.compile(r"((?<!weights)_proj|in_proj_\w+|output_gate|\.(w[iok]|fc[12]|wq_b|[qkvo]))$")
_LAYERS = ("layers", "encoder", "decoder")  # stacks of the language model
_EXPERTS = re.compile(r"\.experts\.")
# In names of modules that are taken as not quantised, whatever the file says.
_EXEMPT = re.compile(
    "lm_head|embed|norm|(gate|router|wg)$|vision|visual|multi_modal|mtp|shared_head|eh_proj|conv1d|bias|indexers_proj"
)
_PATTERN = re.compile(r"[\w.*-]+|re:\^?(?:\w|-|\.\*|\\?\.)+\$?")
_MOST_WILD = 3
MOST_COMPARED = 20_000_000  # patterns times tensors
_OF_MATRIX = 192  # bits that a matrix may have besides its blocks': scales of its weights and inputs, its shape
_DOUBLE = 256  # absolute maxima that bitsandbytes quantises together


class Quantisation(NamedTuple):
    """Quantisation of a model's matrices."""

    words: str  # a sentence about it
    weight: int  # bits of a weight
    scale: float  # bits of a block's scale and zero point
    block: tuple[int, int]  # rows and columns of a block; 0 for all of them
    kept: tuple[str, ...]  # patterns of names of modules that are not quantised
    only_experts: bool = False
    of_matrix: int = _OF_MATRIX
    of_column: int = 0  # bits besides, for each column of a matrix

    def bits(self, stack: str, layer: int, name: str, sizes: Sequence[int], unquantised: int) -> int:
        """Bits of all weights of a tensor of this shape, the scales among them."""
        count = math.prod(sizes)
        is_matrix = len(sizes) > 1 and stack in _LAYERS and _MATRIX.search(f".{name}") is not None
        if not is_matrix or (self.only_experts and not _EXPERTS.search(name)) or self.keeps(layer, name):
            return count * unquantised
        rows, columns = sizes[len(sizes) - 2 :]
        per_row, per_column = self.block[0] or rows, self.block[1] or columns
        matrices = count // (rows * columns)
        blocks = matrices * math.ceil(rows / per_row) * math.ceil(columns / per_column)
        besides = matrices * (self.of_matrix + self.of_column * columns)
        return count * self.weight + math.ceil(blocks * self.scale) + besides

    def keeps(self, layer: int, name: str) -> bool:
        """Whether a module, or one inside it, is left unquantised."""
        full = f"model.layers.{layer}.{name}"
        return any(_matches(pattern, full) for pattern in self.kept if not _EXEMPT.search(pattern))

    def unplaced(self, tensors: Sequence[tuple[int, str]], num_layers: int) -> str | None:
        """A module that is left unquantised, and is none of those with these layers and names; None if all are."""
        names = [f"model.layers.{layer}.{name}" for layer, name in tensors]
        if len(self.kept) * len(names) > MOST_COMPARED:
            return self.kept[0]
        for pattern in self.kept:
            layer = re.search(r"layers\.(\d+)\.", pattern)
            is_further = layer is not None and int(layer[1]) >= num_layers
            if not (_EXEMPT.search(pattern) or is_further or any(_matches(pattern, name) for name in names)):
                return pattern
        return None


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern names a module or one that it is in, as Transformers and compressed-tensors read patterns."""
    is_expression = pattern.startswith("re:")
    plain = (
        pattern.removeprefix("re:")
        .removeprefix("^")
        .replace("model.language_model.", "model.")
        .replace("backbone.", "model.")
    )
    plain = re.sub(r"\.experts\.\d+\b", ".experts", plain)  # one expert's matrix keeps those of all as they are
    if is_expression or "*" in plain:
        pieces = (plain.replace("\\.", ".").rstrip("$") if is_expression else plain).replace(".*", "*").split("*")
        ends = is_expression and plain.endswith("$")
        return re.match(".*".join(map(re.escape, pieces)) + ("$" if ends else ""), name) is not None
    parts, whole = plain.split("."), name.split(".")
    begins = whole[: len(parts)] == parts or parts[: len(whole)] == whole
    return begins or (len(parts) <= 2 and whole[-len(parts) :] == parts)


def quantisation(path: Path, config: Mapping[str, Any]) -> Quantisation | None:
    """Quantisation of a configuration's model; None if it has none.

    Raises: InvalidParamsError for a method whose bits are not known.
    """
    said = _stated(path, config)
    if said is None:
        return None
    if not isinstance(said, dict):
        raise InvalidParamsError(f"{path} has quantization_config={shortened(said)}, which is no table. {WAY_OUT}.")
    method = str(said.get("quant_method") or said.get("quant_algo") or "").lower()
    try:
        found = _read(method, said)
    except (TypeError, ValueError, KeyError, AttributeError, re.error) as failure:
        raise InvalidParamsError(
            f"{path} has a quantization_config of {shortened(method)} that cannot be read ({failure}). {WAY_OUT}."
        ) from None
    if found is None:
        raise InvalidParamsError(
            f"{path} has a quantization_config of {shortened(method)}, whose bits are not known; {', '.join(METHODS)} "
            f"are. {WAY_OUT}."
        )
    return found


def is_quantised(path: Path, config: Mapping[str, Any]) -> bool:
    """Whether a configuration says that its model is quantised."""
    return _stated(path, config) is not None


def _stated(path: Path, config: Mapping[str, Any]) -> Any:
    """The quantization_config at the top level, in a part, or in ModelOpt's own file."""
    beside = path.with_name("hf_quant_config.json")
    for table in (config, *(part for part in config.values() if isinstance(part, dict))):
        if table.get("quantization_config") is not None:
            return table["quantization_config"]
    return {"quant_method": "modelopt", **(read_table(beside).get("quantization") or {})} if beside.is_file() else None


def read_table(path: Path) -> dict[str, Any]:
    """Read a JSON file of a published model. Raises: InvalidParamsError for anything but a table."""
    try:
        found = read_json(path)
    except (OSError, ValueError) as failure:
        raise InvalidParamsError(
            f"{path} cannot be read as JSON: {shortened(str(failure))}. Name a model's config.json."
        ) from None
    if not isinstance(found, dict):
        raise InvalidParamsError(f"{path} holds no JSON object. Name a model's config.json.")
    return found


def _read(method: str, said: Mapping[str, Any]) -> Quantisation | None:
    kept = tuple(
        _pattern(name)
        for key in ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
        for name in said.get(key) or ()
    )
    if method == "fp8":
        block = said.get("weight_block_size")
        rows, columns = (_whole(size) for size in block) if block else (0, 0)
        return _made("fp8", 8, 32, (rows, columns), kept)
    if method == "mxfp4":  # the experts' matrices alone; blocks of 32 share an exponent
        return _made("mxfp4", 4, 8, (1, 32), kept, only_experts=True)
    if method in ("gptq", "awq"):  # of each group a half-precision scale and a zero point; GPTQ numbers the columns
        weight, group = _whole(said.get("bits", said.get("w_bit"))), said.get("group_size", said.get("q_group_size"))
        block = (1, _whole(group)) if group is not None and int(group) > 0 else (1, 0)
        return _made(method, weight, 16 + weight, block, kept)._replace(of_column=32 if method == "gptq" else 0)
    if method == "bitsandbytes":  # blocks of 64 have a largest value; a matrix has its table of levels besides
        if said.get("load_in_4bit") or said.get("_load_in_4bit"):
            twice = said.get("bnb_4bit_use_double_quant")
            return _made(method, 4, 8 + 32 / _DOUBLE if twice else 32, (1, 64), kept)._replace(of_matrix=4096)
        if said.get("load_in_8bit") or said.get("_load_in_8bit"):
            return _made(method, 8, 32, (1, 0), kept)
        return None
    algorithm = str(said.get("quant_algo") or said.get("format") or method).lower()
    if "nvfp4" in algorithm:  # blocks of 16 share a scale of 8 bits; a tensor's own of 32 bits is within one block's
        return _made("nvfp4", 4, 8, (1, 16), kept)
    if method == "modelopt" and algorithm == "fp8":
        return _made("fp8", 8, 64, (0, 0), kept)
    if method == "compressed-tensors":
        groups = list(said["config_groups"].values())
        weights = [group["weights"] for group in groups if group.get("weights")]
        widest = max(weights, key=lambda one: _whole(one["num_bits"]))
        block, group = widest.get("block_structure"), widest.get("group_size")
        shape = tuple(map(_whole, block)) if block else (1, _whole(group)) if group and group > 0 else (1, 0)
        return _made("compressed-tensors", _whole(widest["num_bits"]), 32 + _whole(widest["num_bits"]), shape, kept)
    return None


def _made(
    method: str, weight: int, scale: float, block: tuple[int, ...], kept: tuple[str, ...], only_experts: bool = False
) -> Quantisation:
    what = "the experts' matrices" if only_experts else "matrices of layers"
    words = (
        f"By its quantization_config ({method}), {what} have {weight} bits a weight and their scales beside them; "
        "routers, embeddings, the output layer, norms and what it leaves out are not quantised."
    )
    return Quantisation(words, weight, scale, (block[0], block[1]), kept, only_experts)


def _pattern(name: Any) -> str:
    """A pattern, if it is one that takes no time: names, and at most `_MOST_WILD` places for anything."""
    if not isinstance(name, str) or _PATTERN.fullmatch(name) is None or name.count("*") > _MOST_WILD:
        raise ValueError(f"{shortened(name)} is no name of modules that is understood")
    return name


def _whole(number: Any) -> int:
    if type(number) is not int or number < 1:
        raise ValueError(f"{shortened(number)} is no size")
    return number
