"""The benchmarks' report: catches numbers in the wrong row, slopes that are not the data's, pictures of nothing."""

import json

import pytest
from bench_samples import full, measurement, record, scaling
from rich.console import Console

from moe_theory.bench import history
from moe_theory.report import speed, speed_figures


def sheet(made, title):
    (found,) = [each for each in speed.sheets(made) if title in each.title]
    return found


def test_peers_stand_by_their_ratio_to_the_engine():
    rows = sheet(full(), "batch 64, one pinned core").rows
    assert rows == [
        ("moe_theory", "1,000", "", "1.0"),
        ("NumPy loop", "2,000,000", "2,000 (2,000 to 2,000)", "0.0"),
        ("batched Torch", "skipped: torch is not installed", "", ""),
    ]


def test_precisions_grid_and_compilation_say_what_was_measured():
    (precisions,) = sheet(full(), "precision").rows
    assert precisions == ("continual", "one pinned core", "1,000", "2,000", "2.00 (2.00 to 2.00)")
    grid = sheet(full(), "ns a replicate-round, one pinned core")
    assert grid.columns == ("M, d", "batch 64", "automatic (batch)", "compile, s")
    assert grid.rows == [("10, 10", "1,000", "4,000 (16)", "1.0")]
    assert [row[-1] for row in sheet(full(), "compiling").rows] == ["5.0", "1.0"]
    rows = sheet(full(), "accelerator").rows
    assert rows[0][1:] == ("100,000", "a GPU", "1,000.0", "50.0%")
    assert rows[1][2] == "skipped: JAX sees no accelerator here"


def test_slopes_are_of_the_last_points():
    rows = {row[1]: row[2:] for row in sheet(full(), "scaling").rows}
    assert rows == {"M": ("16 to 64", "1.00", "1"), "s": ("16 to 64", "2.00", "2")}
    curve = record(*scaling("d", "num_features", (7, 10, 20, 80)))
    assert speed.scaling_points(curve, "continual", "d") == [
        pytest.approx(point) for point in ((8, 7), (16, 10), (32, 20), (64, 80))
    ]
    assert speed.slope(speed.scaling_points(curve, "continual", "d")) == pytest.approx(1.5)


def test_an_interrupted_run_says_so_and_has_no_empty_tables():
    made = record(measurement(), is_complete=False)
    assert "INTERRUPTED" in speed.to_markdown(made)
    assert len(speed.sheets(made)) == 1
    assert speed.sheets(record()) == []
    unmeasured = record(measurement(seconds=(), yardstick=(), skipped="too large"), measurement("other"))
    assert [row[1] for row in speed.sheets(unmeasured)[0].rows] == ["skipped: too large", "1,000"]


def test_clear_changes_are_coloured():
    then = record(measurement(), measurement("slower"), measurement("quicker"))
    now = record(
        measurement(),
        measurement("slower", seconds=(0.64, 1.28)),
        measurement("quicker", seconds=(0.0064, 0.0128)),
    )
    made = speed.changes_sheet(history.compare(now, then), then)
    assert made.styles == ("", speed.SLOWER, speed.FASTER)
    assert [row[2] for row in made.rows] == ["", "yes", "yes"]
    console = Console(width=200, record=True)
    console.print(speed.to_rich(made))
    assert "10 (5.00 to 20)" in console.export_text()


def test_the_report_is_table_figures_and_record(tmp_path):
    paths = speed_figures.write_report(full(), tmp_path)
    assert [path.name for path in paths] == ["table.md", "summary.md", "scaling.svg", "peers.svg", "bench.json"]
    assert history.read(tmp_path / "bench.json") == full()
    table = (tmp_path / "table.md").read_text()
    for made in speed.sheets(full()):
        assert made.title in table
        assert all(cell in table for row in made.rows for cell in row)
    assert "a processor, 2 core(s), jax 0.10, commit abc" in table
    for name in ("scaling.svg", "peers.svg"):
        assert "a processor" in (tmp_path / name).read_text()


def test_figures_of_what_was_not_measured_are_left_out(tmp_path):
    compiled = record(compilations=full().compilations)
    assert [path.name for path in speed_figures.write_report(compiled, tmp_path)] == [
        "table.md",
        "summary.md",
        "bench.json",
    ]
    json.loads((tmp_path / "bench.json").read_text())


def test_figures_are_the_same_bytes_again():
    assert speed_figures.scaling_figure(full()) == speed_figures.scaling_figure(full())
    assert speed_figures.peers_figure(full()) == speed_figures.peers_figure(full())
