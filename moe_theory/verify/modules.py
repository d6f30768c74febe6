"""Claims in a file of the user's own."""

import importlib.util
import sys
from pathlib import Path

from moe_theory.core.errors import InvalidClaimError
from moe_theory.core.papers import paper_names, paper_package
from moe_theory.verify import registry
from moe_theory.verify.claim import Claim, registered

_LOADED: dict[str, Path] = {}  # ids of users' claims and the file of each


def sources_of(claim: Claim) -> list[Path]:
    """The files outside this package that a claim's numbers may depend on.

    They are those in the folder of a paper of another distribution; and the user's file that declares the claim, with
    all beside and below it that have been imported.
    """
    found: set[Path] = set()
    if claim.paper in paper_names() and not paper_package(claim.paper).startswith("moe_theory."):
        home = importlib.import_module(paper_package(claim.paper))
        folders = [Path(folder).resolve() for folder in getattr(home, "__path__", ())]
        found |= {Path(str(home.__file__)).resolve(), *(path for folder in folders for path in folder.rglob("*.py"))}
    if claim.id in _LOADED:
        own = _LOADED[claim.id]
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        beside = {Path(file).resolve() for file in files if file}
        found |= {own} | {file for file in beside if file.suffix == ".py" and own.parent in file.parents}
    return sorted(found)


def load_claims(path: Path) -> list[str]:
    """Run a Python file; the ids of the claims that it declares, in order.

    A claim is judged under the readings of its paper. For a paper of the user's own they are what the file gives to
    `registry.add_readings`, or calls `READINGS`, a dictionary of `Reading` by name; claims on a stored sweep need none,
    as the sweep has its own.

    Raises: InvalidClaimError for a file that cannot be read or run, that declares no claim, or one of a paper that has
        no readings.
    """
    before = registered()
    name = f"moe_theory_claims_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or specification is None or specification.loader is None:
        raise InvalidClaimError(f"--module {path} is no Python file. Name a file that ends in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # its neighbours can be imported, as of any script
    try:
        specification.loader.exec_module(module)
        own = [claim for id, claim in registered().items() if id not in before and not registry.is_of_a_paper(claim)]
        registry.select_claims([claim.id for claim in own])  # so that an id which a paper has is noticed
    except Exception as failure:  # whatever the user's file raises is told in one line
        raise InvalidClaimError(f"--module {path} cannot be run: {type(failure).__name__}: {failure}") from failure
    finally:
        sys.path.pop(0)
    if not own:
        raise InvalidClaimError(f"--module {path} declares no claim: decorate a class with @moe_theory.claim(...).")
    for claim in own:
        _LOADED[claim.id] = path.resolve()
        if claim.paper not in paper_names() and hasattr(module, "READINGS"):
            registry.add_readings(claim.paper, module.READINGS)
        if claim.experiment.stored is None and not registry.readings_of(claim.paper):
            raise InvalidClaimError(
                f"--module {path}: claim {claim.id} is of paper={claim.paper!r}, which has no readings. Name one of "
                f"{', '.join(paper_names())}, or give the file READINGS, a dictionary of Reading by name."
            )
    return [claim.id for claim in own]
