"""Files of the package: catches results at an address."""

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
