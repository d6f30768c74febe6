"""Papers: their declarations, and the list of installed papers.

A distribution registers a paper by an entry point of the group `moe_theory.papers`.
"""

import ast
import dataclasses
import functools
import importlib
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from moe_theory.core.errors import OWN_CODE, DeclarationError, described, frames, require_parameters, unknown_name


@dataclasses.dataclass(frozen=True)
class Reading:
    """A named set of choices on top of the paper's own experiment.

    Examples:
        >>> from moe_theory import continual
        >>> chosen = continual.Reading("loud", "noisy features", continual.Params(), {"noise_scale": 1.0})
        >>> chosen.params(num_experts=5).noise_scale
        1.0
    """

    name: str
    summary: str  # one line on the choices
    defaults: Any  # the paper's Params (a NamedTuple) in its own experiment
    choices: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def params(self, **overrides: Any) -> Any:
        """Return the parameters of this reading after `overrides`.

        Raises: InvalidValueError for a parameter that does not exist.
        """
        require_parameters(overrides, type(self.defaults))
        return self.defaults._replace(**{**self.choices, **overrides})


GROUP = "moe_theory.papers"
NONE_INSTALLED = (
    f"no paper is installed. A paper is an entry point of the group {GROUP!r}. A source tree has no entry points until "
    "it is installed. Run `pip install -e .` in the source tree."
)


@dataclasses.dataclass(frozen=True)
class Paper:
    """One paper, declared as `PAPER` in the `__init__.py` of its folder, or in its only file.

    Figures and systems are given by name, "module:attribute".

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> mine = mt.Paper("mine", "mine", "a paper of one file", readings=continual.READINGS)
        >>> mine.reading("weak-signal").params().signal_scale
        1.0
    """

    name: str  # name in commands and at the start of claims' ids
    package: str  # its module: `__name__` in the file that declares it
    title: str  # title of its page
    readings: Mapping[str, Reading]  # by name
    default_readings: tuple[str, ...] = ()  # readings for tests that name none, by default all
    citation: str = ""  # BibTeX entry
    statements: str = ""  # the module that declares statements and claims. By default the paper's own
    answers_for: tuple[str, ...] = ()  # papers whose statements its claims test, if it has no statements
    figures: str | Mapping[str, Any] = ""  # `plot.FigureSpec` by name, or "module:attribute"
    overview: str = ""  # "module:attribute" of its `plot.Panel` in the picture of all papers
    systems: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # `Sweepable` objects or their places, by name
    # Commands by name. "module:function" names a function that returns a `plot.document.Document`. Write the names out,
    # because `moe-theory --help` reads them and the functions' docstrings without an import.
    commands: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Claims that `verify` tests without a pattern: a few words on each, by id.
    first_look: Mapping[str, str] = dataclasses.field(default_factory=dict)
    most_verdicts: int = 1_000  # shares of the paper's error budget, whatever its number of claims
    rank: int = 100  # position in reports. Papers of equal rank are sorted by name

    def __post_init__(self) -> None:
        if self.most_verdicts < 1:
            raise DeclarationError(
                f"paper {self.name!r}: most_verdicts={self.most_verdicts} must be at least 1, because the error budget "
                "is split over that many verdicts. Raise most_verdicts."
            )

    def reading_names(self, group: str) -> tuple[str, ...]:
        """Return the names of the readings in a group: "all", "default" or "quick"."""
        names = {"all": (), "default": self.default_readings, "quick": self.default_readings[:1]}[group]
        return names or tuple(self.readings)  # a paper without default readings has all of them by default

    def reading(self, name: str) -> Reading:
        """Return the reading called `name`. Raises: UnknownNameError."""
        if name not in self.readings:
            raise unknown_name("reading", name, self.readings)
        return self.readings[name]

    def import_claims(self) -> None:
        """Import the module that declares the paper's statements and claims, unless `PAPER` is in it."""
        if self.statements:
            self._import("statements", f"{self.statements}:")  # the colon says that this is a module, not an attribute

    def import_figures(self) -> Mapping[str, Any]:
        """Return the figures by name."""
        figures = self._import("figures", self.figures) if self.figures else {}
        if not isinstance(figures, Mapping):
            raise DeclarationError(f"paper {self.name!r}: figures={self.figures!r} must map names to figures.")
        return figures

    def import_overview(self) -> Any:
        """Return the paper's panel in the picture of all papers, or None."""
        return self._import("overview", self.overview) if self.overview else None

    def import_system(self, name: str) -> Any:
        """Return the system that sweeps call `name`."""
        return self._import(f"systems[{name!r}]", self.systems[name])

    def _import(self, field: str, place: Any) -> Any:
        try:
            return pkgutil.resolve_name(place) if isinstance(place, str) else place
        except OWN_CODE as failure:
            raise _not_imported(self.name, field, place, failure) from failure


def _not_imported(paper: str, field: str, place: Any, failure: BaseException) -> DeclarationError:
    return DeclarationError(
        f"paper {paper!r}: {field}={place!r} cannot be imported ({described(failure)}). Write it as 'module:attribute'."
    )


def paper_names() -> list[str]:
    return sorted(_entry_points())


def paper_package(name: str) -> str:
    return _entry_points()[name].module


def paper_of(module: str) -> str | None:
    for name in paper_names():
        if f"{module}.".startswith(f"{paper_package(name)}."):  # with points, because names may begin alike
            return name
    return None


def ordered_names() -> list[str]:
    ranks = {}
    for name in paper_names():
        rank = declaration_of(name).get("rank")
        ranks[name] = Paper.rank if rank is None else rank
    return sorted(ranks, key=lambda name: (ranks[name], name))


def paper_folder(name: str) -> Path:
    """Return the folder of a paper's package, or the one named like its only module. Nothing is imported."""
    module = paper_package(name)
    spec = find_spec(module)
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    file = Path(str(spec and spec.origin))
    if "." in module:
        return file.parent
    return file.with_suffix("")


def declared_commands() -> dict[str, tuple[str, str]]:
    """Return the paper and the "module:function" of every command, by name, in the order of reports."""
    places: dict[str, tuple[str, str]] = {}
    for name in ordered_names():
        for command, place in (declaration_of(name).get("commands") or {}).items():
            owner, _ = places.setdefault(command, (name, place))
            if owner != name:
                raise DeclarationError(f"papers {owner!r} and {name!r} both have a command {command!r}. Rename one.")
    return places


def import_command(command: str) -> Any:
    """Return the function of a paper's command without importing the paper. Raises: DeclarationError if that fails."""
    paper, place = declared_commands()[command]
    name, _, function = place.partition(":")
    try:
        spec = None
        if name not in sys.modules:
            spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            # `import_module` alone would import the packages around the module, and so the paper.
            sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(sys.modules[name])
            except BaseException:
                del sys.modules[name]
                raise
        return getattr(importlib.import_module(name), function)
    except OWN_CODE as failure:
        raise _not_imported(paper, f"commands[{command!r}]", place, failure) from failure


@functools.cache
def declaration_of(name: str) -> dict[str, Any]:
    """Return the literal values in an installed paper's declaration, by field name, read from its source.

    Computed values are None. The result is empty if there is no declaration.
    """
    if name not in _entry_points():
        raise unknown_name("paper", name, paper_names())
    point = _entry_points()[name]
    for node in parsed_source(point.module).body:
        match node:  # NAME = Paper(...), where NAME is the entry point's
            case ast.Assign(targets, ast.Call(keywords=keywords)) if point.attr in map(ast.unparse, targets):
                return {keyword.arg: _literal(keyword.value) for keyword in keywords if keyword.arg}
    return {}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def parsed_source(module: str) -> ast.Module:
    """Return the syntax tree of a module's source, or an empty one if the source is missing or wrong."""
    try:
        return ast.parse(find_spec(module).loader.get_source(module) or "")  # pyright: ignore
    except (AttributeError, ImportError, SyntaxError):  # AttributeError: there is no module, loader or `get_source`
        return ast.Module([], [])


@functools.cache  # statements ask for the same modules hundreds of times
def find_spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a module like `importlib.util.find_spec`, but without importing the packages around it."""
    folders = None  # of the package around it. None stands for `sys.path`
    spec = None
    names = module.split(".")
    for length in range(1, len(names) + 1):  # first the outermost package
        name = ".".join(names[:length])
        specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        folders = (spec and spec.submodule_search_locations) or []
    return spec


def find_paper(name: str) -> Paper:
    """Return an installed paper. Raises: UnknownNameError, or DeclarationError if it is broken."""
    if not _entry_points():
        raise DeclarationError(NONE_INSTALLED)
    if name not in _entry_points():
        raise unknown_name("paper", name, paper_names())
    return loaded(name, _entry_points()[name])


def all_papers() -> dict[str, Paper]:
    """Return the installed papers in the order of reports. Raises: DeclarationError if one is broken or none exists."""
    if not _entry_points():
        raise DeclarationError(NONE_INSTALLED)
    return {name: find_paper(name) for name in ordered_names()}


def loaded(name: str, point: metadata.EntryPoint) -> Paper:
    """Return the paper of an entry point. Raises: DeclarationError if it is broken or has another name."""
    try:
        paper = point.load()
    except OWN_CODE as failure:
        raise DeclarationError(
            f"paper {name!r}: {point.value!r} cannot be imported ({described(failure)})"
            f"{frames(failure)}. Fix the distribution that registers it, or uninstall it."
        ) from failure
    if not isinstance(paper, Paper) or paper.name != name:
        raise DeclarationError(f"paper {name!r}: the entry point {point.value!r} must be a Paper with this name.")
    return paper


@functools.cache
def _entry_points() -> dict[str, metadata.EntryPoint]:
    points = metadata.entry_points(group=GROUP)
    by_name = {point.name: point for point in points}
    for point in points:
        if point.value != by_name[point.name].value:
            raise DeclarationError(
                f"paper {point.name!r} is registered twice, as {point.value!r} and {by_name[point.name].value!r}. "
                "Uninstall one of the two distributions."
            )
    return by_name
