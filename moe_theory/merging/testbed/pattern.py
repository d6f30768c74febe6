"""How a checkpoint names its experts' tensors: "model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}"."""

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from moe_theory.core.errors import shortened
from moe_theory.merging.testbed.tensors import InvalidCheckpointError

_PARTS = {"layer": r"\d+", "expert": r"\d+", "name": r".+"}
_NEAREST = 3


class Match(NamedTuple):
    """A tensor of an expert."""

    layer: int
    expert: int
    name: str  # of the tensor within the expert


class Pattern(NamedTuple):
    """A pattern, compiled."""

    text: str
    whole: re.Pattern[str]
    expert: re.Pattern[str]  # of the beginning, up to and with the expert's number

    def match(self, name: str) -> Match | None:
        """What the pattern says of a tensor's name; None where it does not fit."""
        found = self.whole.fullmatch(name)
        if found is None:
            return None
        parts = found.groupdict()
        within = parts.get("name") or re.split(r"\{\w+\}", self.text)[-1].strip("._/")
        return Match(int(parts["layer"]), int(parts["expert"]), within)

    def overlooks(self, name: str) -> bool:
        """Whether a name begins as that of an expert's tensor, and yet does not fit."""
        found = self.expert.match(name)
        return found is not None and not name[found.end() :][:1].isalnum() and self.match(name) is None


def compiled(text: str) -> Pattern:
    """A pattern with the placeholders {layer} and {expert}, and {name} where an expert has several tensors.

    Raises: InvalidCheckpointError for other placeholders, or where {layer} or {expert} is missing.
    """
    pieces = re.split(r"\{(\w*)\}", text)
    for placeholder in pieces[1::2]:
        if placeholder not in _PARTS:
            raise InvalidCheckpointError(
                f"pattern {shortened(text)} has the placeholder {{{placeholder}}}, but only {{layer}}, {{expert}} and "
                "{name} are known. Change the pattern."
            )
    for needed in ("layer", "expert"):
        if needed not in pieces[1::2]:
            raise InvalidCheckpointError(f"pattern {shortened(text)} must have {{{needed}}} in it. Add it.")
    expressions = [re.escape(piece) for piece in pieces]
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        is_first = name not in pieces[1:place:2]
        expressions[place] = f"(?P<{name}>{_PARTS[name]})" if is_first else f"(?P={name})"
    last = len(pieces) - 1 - pieces[::-1].index("expert")
    return Pattern(text, re.compile("".join(expressions)), re.compile("".join(expressions[: last + 1])))


def nothing_matches(pattern: Pattern, names: Iterable[str], place: object) -> InvalidCheckpointError:
    """The error for a pattern that no name fits, with the nearest there are; one of those that differ in numbers."""
    kinds: dict[str, str] = {}
    for name in names:
        kinds.setdefault(re.sub(r"\d+", "0", name), name)
    model = re.sub(r"\{(layer|expert)\}", "0", pattern.text)
    near = difflib.get_close_matches(model, list(kinds), n=_NEAREST, cutoff=0.0)
    listed = ", ".join(kinds[kind] for kind in near) or "none, it has no tensors"
    return InvalidCheckpointError(
        f"no tensor of {place} is named by {shortened(pattern.text)}. Nearest: {listed}. Change the pattern."
    )
