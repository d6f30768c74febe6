"""Claims in a file of the user's own."""

import importlib.util
import sys
from pathlib import Path

from moe_theory.core.errors import InvalidClaimError
from moe_theory.verify import registry

_LOADED: dict[str, Path] = {}  # ids of users' claims and the file of each


def sources_of(id: str) -> list[Path]:
    """The file that a user's claim is declared in, and all files beside and below it that have been imported.

    Nothing for a claim that no user's file declares.
    """
    if id not in _LOADED:
        return []
    folder = _LOADED[id].parent
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    beside = {Path(file).resolve() for file in files if file}
    return sorted({_LOADED[id]} | {file for file in beside if file.suffix == ".py" and folder in file.parents})


def load_claims(path: Path) -> list[str]:
    """Run a Python file; the ids of the claims that it declares, in order.

    A claim is judged under the readings of its paper. For a paper of the user's own they are what the file gives to
    `registry.add_readings`, or calls `READINGS`, a dictionary of `Reading` by name; claims on a stored sweep need none,
    as the sweep has its own.

    Raises: InvalidClaimError for a file that cannot be read or run, that declares no claim, or one of a paper that has
        no readings.
    """
    before = registry.all_claims()
    name = f"moe_theory_claims_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or specification is None or specification.loader is None:
        raise InvalidClaimError(f"--module {path} is no Python file. Name a file that ends in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # its neighbours can be imported, as of any script
    try:
        specification.loader.exec_module(module)
    except Exception as failure:  # whatever the user's file raises is told in one line
        raise InvalidClaimError(f"--module {path} cannot be run: {type(failure).__name__}: {failure}") from failure
    finally:
        sys.path.pop(0)
    own = [claim for id, claim in registry.all_claims().items() if id not in before]
    if not own:
        raise InvalidClaimError(f"--module {path} declares no claim: decorate a class with @moe_theory.claim(...).")
    for claim in own:
        _LOADED[claim.id] = path.resolve()
        if claim.paper not in registry.PAPERS and hasattr(module, "READINGS"):
            registry.add_readings(claim.paper, module.READINGS)
        if claim.experiment.stored is None and not registry.readings_of(claim.paper):
            raise InvalidClaimError(
                f"--module {path}: claim {claim.id} is of paper={claim.paper!r}, which has no readings. Name one of "
                f"{', '.join(registry.PAPERS)}, or give the file READINGS, a dictionary of Reading by name."
            )
    return [claim.id for claim in own]
