"""Sweeps that keep no replicates: catches statistics that are other ones, made-up replicates, and large files."""

import pytest
from stored import rows

import moe_theory as mt
from moe_theory.core.errors import DeclarationError, InvalidValueError
from moe_theory.sweep import runner

ARGUMENTS = {
    "system": "continual",
    "rounds": 30,
    "record_every": 10,
    "axes": {"num_experts": [2, 3]},
    "replicates": 300,  # four full batches of a core's cache, and one that is not
    "observables": ["forgetting", "loads"],
}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    return [mt.Sweep(**ARGUMENTS, keep=keep).run(folder / keep) for keep in ("statistics", "statistics only")]


def test_the_statistics_are_the_same_to_the_last_digit(both):
    whole, only = (results.to_xarray().load() for results in both)
    assert whole.equals(only)
    assert int(whole["forgetting"].sel(statistic="count").min()) == 300


def test_no_replicate_is_kept_and_none_is_made_up(both):
    whole, only = both
    sizes = [sum(map(len, rows(results.folder).values())) for results in both]
    assert sizes[1] < sizes[0] / 2
    for ask in (only.run_of, only.replicates_of, only.cell):
        with pytest.raises(InvalidValueError, match=r"statistics only, and no replicates: set keep = 'statistics'"):
            ask(0)
    assert whole.run_of(0).records.forgetting.shape == (3, 300)


def test_a_width_of_chunks_is_refused():
    with pytest.raises(DeclarationError, match=r"chunk_width=32 is for sweeps that keep replicates.*Take it away"):
        mt.Sweep(**ARGUMENTS, keep="statistics only", chunk_width=32)


def test_a_cell_that_does_not_fit_says_how_many_replicates_do(tmp_path):
    sweep = mt.Sweep(**{**ARGUMENTS, "replicates": 2**31, "record_every": 1}, keep="statistics only")
    with pytest.raises(InvalidValueError, match=r"Set replicates to \d+ or less"):
        runner.run(sweep, tmp_path)
