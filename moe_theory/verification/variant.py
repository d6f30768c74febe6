"""A user's algorithm in place of a paper's, tested by the same claims on the same runs.

A claim does not apply if its runs start from states of the paper's algorithm, are not simulated, or lack a part of
that algorithm.
"""

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import DeclarationError, InvalidValueError, shortened, unknown_name
from moe_theory.core.parts import parts_of, rebuilt
from moe_theory.core.userfile import is_place, module_name, run_file
from moe_theory.verification.claim import Claim, Experiment, registered
from moe_theory.verification.statement import declared
from moe_theory.verification.verdict import Role, Statement

Parts = Mapping[str, Any]  # parts such as a router, by their names in the paper's `system`
REMOVING = {Role.INTERVENTION, Role.SUSPECT, Role.COMPETITOR}  # roles of claims whose runs lack a part of the algorithm
WAY_OUT = "Write FILE:NAME, where the file sets NAME = dict(router=...), or another part of a paper's `system`."


class Variant(NamedTuple):
    place: str  # "FILE:NAME"
    name: str  # name in reports
    parts: Parts


def variant_of(system: str | Parts) -> Variant:
    if not isinstance(system, str):  # the place stands for a file in the printed commands
        return Variant(place="FILE:NAME", name="+".join(system), parts=_require_mapping("system", system))
    if not is_place(system):
        raise InvalidValueError(f"--system {system} does not name parts. {WAY_OUT}")
    path, _, name = system.rpartition(":")
    module = module_name(Path(path))
    if all(claim.module != module for claim in registered().values()):  # otherwise --module has already run the file
        run_file(Path(path), "--system")
    parts = vars(sys.modules[module]).get(name)
    return Variant(system, name, _require_mapping(f"--system {system}", parts))


def _require_mapping(source: str, parts: Any) -> Parts:
    if not isinstance(parts, Mapping) or not parts or not all(isinstance(name, str) for name in parts):
        raise InvalidValueError(f"{source}: {shortened(parts)} is not a mapping of names to parts. {WAY_OUT}")
    return parts


def require_parts(variant: Variant, experiments: Iterable[Experiment]) -> None:
    printed: list[Parts] = []  # the paper's parts by name, for each system
    for experiment in experiments:
        printed += [parts_of(experiment.system_of(cell)) for cell in experiment.cells]
    names = set().union(*printed)
    for name, part in variant.parts.items():
        if names and name not in names:  # without any names, all claims are INAPPLICABLE
            raise unknown_name("part", name, names)
        printed_parts = [parts[name] for parts in printed if name in parts]
        for printed_part in printed_parts:
            if callable(printed_part) and not callable(part):
                function = f"{printed_part.__module__}.{printed_part.__name__}"
                raise InvalidValueError(
                    f"{name}={shortened(part)} must be a function, like the paper's {function}. Change {name}.",
                    argument=name,
                )


def with_own_parts(claim: Claim, variant: Variant) -> Experiment:
    """Return the claim's experiment with a user's parts. Raises: DeclarationError if the parts do not suit it."""
    experiment = claim.experiment
    roles = {declaration.roles[claim.id] for declaration in declared() if claim.id in declaration.roles}
    if roles and roles <= REMOVING:
        role = min(roles)  # the same in every call
        raise DeclarationError(f"as {role} it removes a part of the printed algorithm")
    if claim.is_computed:
        raise DeclarationError("it is computed without runs")
    if experiment.start is not None:
        raise DeclarationError("its runs start from states that the printed algorithm produced")
    if experiment.measured is not None and not experiment.measured.runs_systems:
        raise DeclarationError("its runs are measured, not simulated")
    systems = {cell: rebuilt(system, variant.parts) for cell, system in experiment.systems.items()}
    return dataclasses.replace(experiment, system=rebuilt(experiment.system, variant.parts), systems=systems)


def without_texts(statement: Statement) -> Statement:
    """Return the statement without its texts, proofs and free parameters, which are about the printed algorithm."""
    texts = ("why", "instance", "corrected", "corrected_formula", "note", "witness", "amendment")
    proofs = ("disproof", "proof", "derivation")
    return dataclasses.replace(statement, **dict.fromkeys(texts, ""), **dict.fromkeys(proofs), free=[])
