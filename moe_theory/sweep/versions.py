"""Several versions of a sweep in one folder: what those of other code, machines or specifications have there."""

import contextlib
import logging

from moe_theory.core.errors import MoeTheoryError
from moe_theory.runs.packs import Packs
from moe_theory.runs.provenance import difference
from moe_theory.sweep.blocks import CellBlocks
from moe_theory.sweep.manifest import keep_only, version_of, versions_in
from moe_theory.sweep.plan import SweepPlan

_LOG = logging.getLogger(__name__)


def other_versions(packs: Packs, plan: SweepPlan, are_of_other_code: bool = False) -> dict[str, set[str]]:
    """Chunks that other versions have in a folder and this one does not use, by ID; of what this code can read. On
    request without versions that differ in the specification alone.
    """
    own, others = {chunk.name for chunk in plan.chunks}, {}
    for version, manifest in versions_in(packs.folder).items():
        is_like_this = are_of_other_code and manifest["fingerprint"] == plan.fingerprint
        if version != _version(plan) and not is_like_this:
            with contextlib.suppress(MoeTheoryError):
                other = SweepPlan(plan.sweep.from_json(manifest["specification"]), manifest["fingerprint"])
                others[version] = {chunk.name for chunk in other.chunks if chunk.name in packs} - own
    return others


def prune(packs: Packs, plan: SweepPlan) -> int:
    """Remove what this version does not use of a folder, and the manifests of others; how many chunks, or statistics of
    cells, that were. Raises: OutputError.
    """
    blocks = CellBlocks(plan, tuple(plan.sweep.observables or ()))
    own = {chunk.name for chunk in plan.chunks} | {blocks.name(block) for block in range(len(blocks))}
    names = set(packs.names) - own
    packs.remove(names)
    keep_only(packs.folder, _version(plan))
    return len(names)


def _version(plan: SweepPlan) -> str:
    return version_of({"specification": plan.sweep.to_json(), "fingerprint": plan.fingerprint})


def warn_of_others(plan: SweepPlan, packs: Packs) -> None:
    """Say that chunks of other code, or of another machine, are there and not used."""
    if next(packs.folder.glob("chunks/*/*.npz"), None) is not None:
        _LOG.warning("%s is of an earlier version, and not used: delete it", packs.folder / "chunks")
    known = versions_in(packs.folder)
    for version, chunks in other_versions(packs, plan, are_of_other_code=True).items():
        if chunks:
            different = difference(plan.fingerprint, known[version]["fingerprint"])
            message = "%d chunks in %s are of another version and not used (this one has %s). To see them: %s"
            command = f"moe-theory sweep show {packs.folder} --version {version}"
            _LOG.warning(message, len(chunks), packs.folder, different, command)
