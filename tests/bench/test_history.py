"""Kept measurements: catches numbers that do not survive, comparisons that a slow hour decides, unclear refusals."""

import json

import pytest
from bench_samples import full, measurement, record

from moe_theory.bench import history
from moe_theory.core.errors import InvalidReportError


def test_what_is_written_is_read_again(tmp_path):
    assert history.read(history.write(full(), tmp_path / "bench.json")) == full()


def test_costs_are_of_a_replicate_round():
    each = measurement()
    assert each.costs == pytest.approx((1000.0, 2000.0), rel=1e-12)
    assert each.nanoseconds == min(each.costs)
    assert each.compile_seconds == 1.0


def test_a_slower_hour_is_no_slower_engine():
    then = record(measurement(seconds=(0.1, 0.2, 0.4), yardstick=(0.01, 0.02, 0.04)))
    now = record(measurement(seconds=(0.3, 0.6, 0.9), yardstick=(0.03, 0.06, 0.09)))
    (change,) = history.compare(now, then)
    assert change.ratio == pytest.approx((1.0, 1.0, 1.0), rel=1e-12)
    slower = record(measurement(seconds=(0.6, 1.2, 1.8), yardstick=(0.03, 0.06, 0.09)))
    (change,) = history.compare(slower, then)
    assert change.ratio == pytest.approx((2.0, 2.0, 2.0), rel=1e-12)
    assert change.is_clear


def test_a_change_within_the_passes_noise_is_not_clear():
    then = record(measurement(seconds=(0.10, 0.11, 0.16), yardstick=(0.01,) * 3))
    now = record(measurement(seconds=(0.15, 0.20, 0.21), yardstick=(0.01,) * 3))
    (change,) = history.compare(now, then)
    assert change.ratio == pytest.approx((20 / 11, 15 / 16, 21 / 10), rel=1e-12)
    assert not change.is_clear


def test_only_what_both_have_is_compared():
    other = measurement("NumPy loop")
    unmeasured = measurement(seconds=(), yardstick=(), skipped="too large")
    assert [change.id for change in history.compare(full(), full())] == [
        *(each.id for each in full().measurements if not each.skipped),
        "compile/figure-2/cold/one",
        "compile/figure-2/kept/one",
    ]
    assert history.compare(record(other), record(measurement())) == []
    assert history.compare(record(measurement()), record(unmeasured)) == []


def test_rounds_do_not_name_a_measurement_unless_they_are_what_varies():
    longer = {"setting": measurement().setting.__class__(**{**vars(measurement().setting), "num_rounds": 2000})}
    assert measurement().id == measurement(**longer).id
    assert measurement(part="scaling T").id != measurement(part="scaling T", **longer).id


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: {**document, "schema": "moe-theory/bench/0"}, "schema 'moe-theory/bench/0'"),
        (lambda document: [], "schema None"),
        (lambda document: {**document, "measurements": [{}]}, "damaged"),
        (lambda document: {**document, "measurements": 3}, "damaged"),
        (lambda document: {name: value for name, value in document.items() if name != "command"}, "damaged"),
    ],
)
def test_other_documents_are_refused_with_a_reason(change, said, tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(change(history.to_json(full()))))
    with pytest.raises(InvalidReportError, match=said):
        history.read(path)


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(InvalidReportError, match="cannot be read"):
        history.read(tmp_path / "none.json")
    (tmp_path / "cut.json").write_text(json.dumps(history.to_json(full()))[:-40])
    with pytest.raises(InvalidReportError, match="no JSON"):
        history.read(tmp_path / "cut.json")
