"""Parameters set beside a reading's own choices: what `--set name=value` and a point of a map stand for."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from moe_theory.core.errors import InvalidParamsError, unknown_name
from moe_theory.core.system import check_system
from moe_theory.core.values import shown, typed
from moe_theory.verify.claim import Experiment, ReadingLike
from moe_theory.verify.stored import require_adjustable


@dataclasses.dataclass(frozen=True)
class AdjustedReading:
    """A reading with some parameters set beside its choices; a cell's own overrides go before both."""

    base: ReadingLike
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The reading's name and what is set: "unit-signal, signal_scale=5"."""
        return ", ".join([self.base.name, *(f"{name}={shown(value)}" for name, value in self.settings.items())])

    @property
    def summary(self) -> str:
        """The reading's summary, and what is set."""
        return "; ".join([self.base.summary, *(f"{name}={shown(value)}" for name, value in self.settings.items())])

    @property
    def options(self) -> str:
        """The command line's options for this reading."""
        sets = (f"--set {name}={shown(value)}" for name, value in self.settings.items())
        return " ".join([f"--reading {self.base.name}", *sets])

    def params(self, **overrides: Any) -> Any:
        """The parameters, with `overrides` on top. Raises: as the reading."""
        return self.base.params(**{**self.settings, **overrides})


def options_of(reading: ReadingLike) -> str:
    """The command line's options that name a reading."""
    return reading.options if isinstance(reading, AdjustedReading) else f"--reading {reading.name}"


def adjusted(reading: ReadingLike, settings: Mapping[str, Any], experiment: Experiment) -> ReadingLike:
    """The reading with `settings`, numbers or their texts, for an experiment; the reading itself where there are none.

    Raises: InvalidParamsError for a parameter that does not exist, that the experiment decides itself, or for a value
        that the experiment's system refuses.
    """
    if not settings:
        return reading
    for name in settings:
        require_free(name, reading, experiment)
    defaults = reading.params()
    made = AdjustedReading(reading, {name: typed(name, value, defaults) for name, value in settings.items()})
    for name, overrides in experiment.cells.items():
        check_system(experiment.system_of(name), made.params(**overrides))
    return made


def parsed(texts: Sequence[str]) -> dict[str, str]:
    """Texts such as "signal_scale=5", by parameter. Raises: InvalidParamsError for any other."""
    settings = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InvalidParamsError(f"--set {text} sets nothing: write it as --set {name or 'NAME'}=5.")
        if name in settings:
            raise InvalidParamsError(f"--set {text}: {name} is set already, to {settings[name]}. Set it once.")
        settings[name] = value
    return settings


def require_free(name: str, reading: ReadingLike, experiment: Experiment) -> None:
    """Raise InvalidParamsError for a parameter that does not exist, or that every cell of an experiment sets itself."""
    fields = reading.params()._fields
    if name not in fields:
        raise InvalidParamsError(str(unknown_name("parameter", name, fields)))
    require_adjustable(experiment, name)
    own = {cell: overrides[name] for cell, overrides in experiment.cells.items() if name in overrides}
    if len(own) == len(experiment.cells):
        cells = ", ".join(f"{cell!r} sets {shown(value)}" for cell, value in own.items())
        raise InvalidParamsError(
            f"{name} cannot be set: the experiment {experiment.name} decides it in every cell ({cells}), which goes "
            "before any other choice. Set another parameter."
        )
