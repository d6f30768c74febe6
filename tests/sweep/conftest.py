"""What the tests of running share."""

import pytest
from stored import rows

from moe_theory.runs.workers import device_pool
from moe_theory.sweep import runner

from .swept import SWEEP


@pytest.fixture(scope="package")
def undisturbed(tmp_path_factory):
    """The sweep's rows, from one worker."""
    folder = tmp_path_factory.mktemp("undisturbed")
    counts = runner.run(SWEEP, folder, pool=device_pool(1)).counts
    assert (counts.num_chunks, counts.computed) == (18, 18)
    return rows(folder)
