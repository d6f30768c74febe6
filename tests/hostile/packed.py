"""The entries of a sweep's packs: read, left out and harmed by `zipfile` alone, without the reader that is tested."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def packs(folder: Path) -> list[Path]:
    return sorted(Path(folder).glob("packs/*.zip"))


def entries(folder: Path) -> dict[str, bytes]:
    """The bytes of all entries by name. Raises: AssertionError where one is there twice, as something was computed
    twice then.
    """
    found: dict[str, bytes] = {}
    for name, data in _all(folder):
        assert name not in found, f"{name} is in two packs"
        found[name] = data
    return found


def keep(folder: Path, found: Mapping[str, bytes]) -> Path:
    """Make a pack of entries, after whose digest it is called."""
    draft = Path(folder) / "packs" / "draft"
    draft.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(draft, "w") as archive:
        for name, data in found.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npz"), data)
    return draft.rename(draft.with_name(f"{hashlib.sha256(draft.read_bytes()).hexdigest()[:40]}.zip"))


def leave_out(folder: Path, *names: str) -> None:
    """Rewrite a folder's packs, as one, without these entries."""
    left = entries(folder)
    for name in names:
        del left[name]
    for path in packs(folder):
        path.unlink()
    keep(folder, left)


def place_of(folder: Path, name: str) -> tuple[Path, int, int]:
    """The pack of an entry, and where its bytes begin and end there."""
    for path in packs(folder):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename == f"{name}.npz":
                    first = member.header_offset + 30 + len(member.filename)  # no member here has extra fields
                    return path, first, first + member.file_size
    raise KeyError(name)


def harm(folder: Path, name: str, change: Callable[[bytes], bytes] | None = None) -> Path:
    """Change an entry where it stands, by default a bit in its middle; its pack, under the name that it had."""
    path, first, last = place_of(folder, name)
    data = path.read_bytes()
    own = data[first:last]
    middle = len(own) // 2
    new = own[:middle] + bytes([own[middle] ^ 4]) + own[middle + 1 :] if change is None else change(own)
    assert len(new) == len(own)
    path.write_bytes(data[:first] + new + data[last:])
    return path


def _all(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in packs(folder):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name.removesuffix(".npz"), archive.read(name)
