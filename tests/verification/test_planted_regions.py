"""Searches of planted regions: catches a search that misses a flip, or finds one where there is none."""

import pytest

from . import planted_regions


def test_what_has_to_be_found_is_found_and_nothing_else():
    rows = {row.region: row for row in planted_regions.search_planted(1, seed=40)}
    assert all(row.is_ok for row in rows.values())
    assert rows["false in a corner"].flipped == rows["true at one point"].flipped == 1
    assert rows["fading in the limit"].flipped == rows["true everywhere"].flipped == 0


@pytest.mark.thorough
def test_every_region_is_searched_twenty_times():
    rows = planted_regions.search_planted()
    assert [row for row in rows if not row.is_ok] == []


@pytest.mark.thorough
def test_a_search_that_takes_its_looks_for_verdicts_is_seen(monkeypatch):
    monkeypatch.setattr(planted_regions.RegionSearch, "_is_flip", lambda self, verdicts: True)
    (row,) = [row for row in planted_regions.search_planted(8) if row.region == "at its margin everywhere"]
    assert row.false > 0
    assert not row.is_ok
