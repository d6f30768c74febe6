"""The command that measures, as a user meets it: catches tracebacks, measurements lost, JSON that is none."""

import dataclasses
import json

import pytest
from bench_samples import full, measurement, record

from moe_theory import cli
from moe_theory.bench import history, session


@pytest.fixture
def kept(tmp_path):
    return history.write(full(), tmp_path / "kept.json")


@pytest.fixture
def no_measuring(monkeypatch):
    monkeypatch.setattr(session, "events", lambda order: pytest.fail("work was done before the request was refused"))


@pytest.fixture
def played(monkeypatch):
    """Workers that report, instead of measuring, what a test puts here; an exception is raised in its turn."""
    reports = []

    def events(order):
        for report in reports:
            if isinstance(report, BaseException):
                raise report
            yield report

    monkeypatch.setattr(session, "events", events)
    return reports


def reported(**changes):
    return {"measurement": dataclasses.asdict(measurement(**changes))}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--system", "contnual"], "Did you mean 'continual'"),
        (["--cores", "two"], "unknown cores 'two'"),
        (["--precision", "half"], "unknown precision 'half'"),
        (["--batch", "0"], "batch=0"),
        (["--compare", "none.json"], "cannot be read"),
        (["--from", "none.json"], "cannot be read"),
    ],
)
def test_mistakes_are_one_line_before_any_work(arguments, said, refused, no_measuring, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refused("bench", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_places_and_files_are_checked_before_any_work(refused, no_measuring, tmp_path, kept):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be written" in refused("bench", "--quick", "--out", tmp_path / "file" / "bench.json")
    assert "cannot be written" in refused("bench", "--quick", "--report", tmp_path / "file" / "below")
    assert "no JSON" in refused("bench", "--from", tmp_path / "file")
    assert "Drop one" in refused("bench", "--from", kept, "--out", tmp_path / "other.json")
    kept.write_text(kept.read_text().replace(history.SCHEMA, "moe-theory/bench/0"))
    assert "schema" in refused("bench", "--compare", kept)


def test_an_earlier_run_is_shown_and_reported_without_measuring(ran, no_measuring, kept, tmp_path):
    said = ran("bench", "--from", kept, "--report", tmp_path / "report", "--compare", kept).out
    for words in ("NumPy loop", "log-log slope", "now / then", str(tmp_path / "report" / "table.md")):
        assert words in said
    assert history.read(tmp_path / "report" / "bench.json") == full()


def test_json_is_one_document(ran, no_measuring, kept):
    document = json.loads(ran("bench", "--from", kept, "--compare", kept, "--json").out)
    assert document["schema"] == history.SCHEMA
    assert len(document["measurements"]) == len(full().measurements)
    assert {change["median"] for change in document["changes"]} == {1.0}


def test_a_run_is_kept_and_compared(ran, played, tmp_path):
    out, earlier = tmp_path / "new" / "bench.json", tmp_path / "earlier.json"
    history.write(record(measurement(seconds=(0.032, 0.064))), earlier)
    played += [{"facts": {"backend": "cpu"}}, {"under_way": "something"}, reported(), {"done": 1}]
    said = ran("bench", "--quick", "--cores", "one", "--out", out, "--compare", earlier).out
    assert f"measurements: {out}" in said
    assert "something" in said
    assert "2.00 (1.00 to 4.00)" in said
    made = history.read(out)
    assert made.is_complete
    assert made.measurements == [measurement()]
    assert made.provenance["backend"] == "cpu"


def test_an_interrupt_keeps_what_was_measured_and_says_so(capsys, played, tmp_path):
    out = tmp_path / "bench.json"
    played += [reported(), KeyboardInterrupt()]
    with pytest.raises(SystemExit) as stopped:
        cli.main(["bench", "--quick", "--out", str(out)])
    assert stopped.value.code == 130
    streams = capsys.readouterr()
    assert streams.err == "moe-theory: interrupted; what was measured until then is kept\n"
    assert "INTERRUPTED" in streams.out
    assert not history.read(out).is_complete
    assert history.read(out).measurements == [measurement()]


def test_nothing_is_written_of_nothing(played, tmp_path):
    played.append(KeyboardInterrupt())
    with pytest.raises(SystemExit):
        cli.main(["bench", "--quick", "--out", str(tmp_path / "bench.json")])
    assert list(tmp_path.iterdir()) == []


def test_a_worker_s_end_is_one_line_and_loses_nothing(refused, played, tmp_path):
    out = tmp_path / "bench.json"
    played += [reported(), session.WorkerFailedError("a measuring process ended with code 1: it is broken")]
    assert "it is broken" in refused("bench", "--quick", "--out", out, may_print=True)
    assert history.read(out).measurements == [measurement()]
