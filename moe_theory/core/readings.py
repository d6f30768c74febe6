"""What a reading is: a named set of choices where a paper is silent or contradicts itself."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from moe_theory.core.errors import InvalidParamsError, unknown_name


@dataclasses.dataclass(frozen=True)
class Reading:
    """A named set of choices; everything else is as in the paper's own experiment.

    Examples:
        >>> from moe_theory import continual
        >>> chosen = continual.Reading("loud", "noisy features", continual.Params(), {"noise_scale": 1.0})
        >>> chosen.params(num_experts=5).noise_scale
        1.0
    """

    name: str
    summary: str  # what is chosen, in a line
    defaults: Any  # the paper's Params (a NamedTuple), as in its own experiment
    choices: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def params(self, **overrides: Any) -> Any:
        """The parameters of this reading, with `overrides` on top.

        Raises: InvalidParamsError for a parameter that does not exist, with the nearest suggested.
        """
        for name in overrides:
            if name not in self.defaults._fields:
                raise InvalidParamsError(str(unknown_name("parameter", name, self.defaults._fields)))
        return self.defaults._replace(**{**self.choices, **overrides})
