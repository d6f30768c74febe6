"""A user's settings on top of a reading: parameters, and values of free parameters."""

import contextlib
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moe_theory.core.constraints import shown, typed
from moe_theory.core.errors import DeclarationError, InvalidValueError, require_parameters, text_of, unknown_name
from moe_theory.core.system import check_system
from moe_theory.verification.claim import Claim, Experiment, ReadingLike
from moe_theory.verification.region import FreeAxis, Setting
from moe_theory.verification.variant import Variant
from moe_theory.verification.verdict import OWN_SYSTEM


class Group(NamedTuple):
    experiment: Experiment
    reading: ReadingLike
    claims: Sequence[Claim]  # that read the experiment


@dataclasses.dataclass(frozen=True)
class AdjustedReading:
    """A reading with some other parameters, and values of free parameters.

    A cell's overrides have priority over `settings`, and `free` has priority over both.
    """

    base: ReadingLike
    settings: Mapping[str, float | str]
    free: Setting = dataclasses.field(default_factory=dict)  # values that change parameters
    built: Setting = dataclasses.field(default_factory=dict)  # values for which the experiment was built
    own: Variant | None = None  # the user's algorithm

    @property
    def name(self) -> str:
        """The name of the reading and its settings, such as "unit-signal, signal_scale=5"."""
        return ", ".join([self.base.name, *self._words])

    @property
    def summary(self) -> str:
        return "; ".join([self.base.summary, *self._words])

    @property
    def options(self) -> str:
        words = [f"--reading {self.base.name}"]
        words += [f"--set {shlex.quote(assignment)}" for assignment in self._assignments]
        if self.own is not None:
            words.append(f"--system {shlex.quote(self.own.place)}")
        return " ".join(words)

    @property
    def _words(self) -> list[str]:
        if self.own is None:
            return [*self._assignments]
        return [*self._assignments, f"{OWN_SYSTEM}{self.own.name}"]

    @property
    def _assignments(self) -> list[str]:
        assignments = [f"{name}={shown(value)}" for name, value in self.settings.items()]
        axes = {**self.built, **self.free}
        return [*assignments, *(f"{axis.name}={text_of(value)}" for axis, value in axes.items())]

    def params(self, **overrides: Any) -> Any:
        params = self.base.params(**{**self.settings, **overrides})
        for axis, value in self.free.items():
            params = axis.into(params, value)
        return params


def adjusted(reading: ReadingLike) -> AdjustedReading:
    if isinstance(reading, AdjustedReading):
        return reading
    return AdjustedReading(reading, {})


def name_and_settings(reading: ReadingLike) -> tuple[str, dict[str, float | str]]:
    """Return the name of the paper's reading and the values that are set in addition, by name."""
    adjusted_reading = adjusted(reading)
    axes = {**adjusted_reading.built, **adjusted_reading.free}
    free = {axis.name: value for axis, value in axes.items()}
    return adjusted_reading.base.name, {**adjusted_reading.settings, **free}


def set_to(group: Group, settings: Mapping[str, float | str]) -> list[Group]:
    """Return the group with settings, which are numbers or texts, and divided by its claims' free parameters."""
    experiment, reading, claims = group
    by_axes: dict[tuple[FreeAxis, ...], list[Claim]] = {}  # by the free parameters among the settings
    for claim in claims:
        axes = tuple(axis for axis in claim.free if axis.name in settings)
        by_axes.setdefault(axes, []).append(claim)
    groups = []
    for axes, axis_claims in by_axes.items():
        free = {axis: axis.parsed(settings[axis.name]) for axis in axes}
        names = {axis.name for axis in axes}
        parameters = {name: value for name, value in settings.items() if name not in names}
        for name in parameters:
            require_free(name, reading, experiment, free=[axis.name for axis in axis_claims[0].free])
        adjusted_reading = with_settings(reading, parameters)
        if parameters:
            check_cells(experiment, adjusted_reading)
        groups.append(at_setting(Group(experiment, adjusted_reading, axis_claims), free))
    return groups


def at_setting(group: Group, setting: Setting) -> Group:
    """Return the group at a setting of the free parameters. Raises: InvalidValueError or DeclarationError."""
    experiment, reading, claims = group
    if not setting:
        return group
    built = {axis: value for axis, value in setting.items() if axis.is_built(experiment)}
    free = {axis: value for axis, value in setting.items() if axis not in built}
    built_experiment = experiment.at_setting(built)
    adjusted_reading = dataclasses.replace(adjusted(reading), free=free, built=built)
    check_cells(built_experiment, adjusted_reading)
    built_claims = [dataclasses.replace(claim, experiment=built_experiment) for claim in claims]
    return Group(built_experiment, adjusted_reading, built_claims)


def check_cells(experiment: Experiment, reading: ReadingLike) -> None:
    for cell in experiment.cells_under(reading):
        # A faulty system raises DeclarationError again in its runs, which gives ERROR verdicts.
        with contextlib.suppress(DeclarationError), cell.precision():
            check_system(cell.system, cell.params)


def with_settings(reading: ReadingLike, settings: Mapping[str, float | str]) -> ReadingLike:
    """Return the reading with `settings`, which are numbers or texts. Raises: InvalidValueError."""
    defaults = reading.params()
    require_parameters(settings, type(defaults))
    values = {name: typed(name, value, defaults) for name, value in settings.items()}
    if values:
        return AdjustedReading(reading, values)
    return reading


def parse_settings(texts: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Return values by parameter from texts such as "signal_scale=5". Raises: InvalidValueError."""
    settings = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InvalidValueError(f"{option} {text} has no value. Write it as {option} {name or 'NAME'}=5.")
        if name in settings:
            raise InvalidValueError(f"{option} {text}: {name} is already {settings[name]}. Set it only once.")
        settings[name] = value
    return settings


def require_free(name: str, reading: ReadingLike, experiment: Experiment, free: Sequence[str] = ()) -> None:
    """Raise InvalidValueError if a parameter is unknown, or if every cell sets it. `free` has further known names."""
    fields = reading.params()._fields
    if name not in fields:
        raise InvalidValueError(str(unknown_name("parameter", name, [*fields, *free], type(reading.params()))))
    values = {cell: overrides[name] for cell, overrides in experiment.cells.items() if name in overrides}
    if len(values) == len(experiment.cells):
        cells = ", ".join(f"{cell!r} sets {shown(value)}" for cell, value in values.items())
        raise InvalidValueError(
            f"{name} cannot be set, because every cell of the experiment {experiment.name} sets it ({cells}). Set "
            "another parameter, or declare this one free in the statement.",
            argument=name,
        )
