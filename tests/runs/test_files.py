"""Files of the package: catches results at an address, and a list of files that somebody else wrote."""

from pathlib import Path

import pytest

from moe_theory.core.errors import OutputError
from moe_theory.runs import files
from moe_theory.runs.store import Store


@pytest.mark.parametrize("address", ["s3://bucket/x", "gs://bucket", "abfs://x@y/z", "hdfs:/x"])
@pytest.mark.parametrize("use", [Store, files.made_folder, files.prepare_folder, files.local])
def test_an_address_is_no_folder(address, use, tmp_path, monkeypatch):
    """Would catch results in a local folder that is called `s3:`, which its user looks for in vain."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="address"):
        use(address)
    assert list(tmp_path.iterdir()) == []


def test_a_drive_is_no_address():
    assert files.local("C:/x") == Path("C:/x")


OURS = ".a.0123456789ab.part"  # a temporary name of a file called a
FOREIGN = (
    *({OURS: name} for name in ("..", ".", "b", "../a", "", 1, None, {}, [], "a\0", ".replacing")),
    *({name: "a"} for name in (".a.part", "../a", "..", "", OURS.upper(), OURS[1:], f"x/{OURS}")),
    *({OURS.replace(".a.", f".{name}."): name} for name in ("..", "x/y", ".replacing")),
)


@pytest.mark.parametrize("names", FOREIGN)
def test_a_journal_that_nobody_wrote_here_moves_nothing(names, tmp_path):
    """Would catch a list of files, put into a shared folder, that makes whoever looks at it replace what it names."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b", ".a.part", OURS, OURS.upper(), OURS[1:]):
        (folder / name).write_text(name)
    (tmp_path / "a").write_text("elsewhere")
    (folder / files.JOURNAL).write_text(files.sealed(names))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match="is damaged"):
        files.finish_replacing(folder)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
