"""What the tests of running share."""

import pytest
from packed import entries

from moe_theory.runs.workers import DevicePool
from moe_theory.sweep import runner

from .swept import SWEEP


@pytest.fixture(scope="package")
def undisturbed(tmp_path_factory):
    """The sweep's entries, from one worker."""
    folder = tmp_path_factory.mktemp("undisturbed")
    counts = runner.run(SWEEP, folder, pool=DevicePool(1)).counts
    assert (counts.num_chunks, counts.computed) == (18, 18)
    return entries(folder)
