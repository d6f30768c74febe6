"""Looks at sweeps: catches a table or a picture that says something else than the results, or cannot be made."""

import io
import json

import numpy as np
import pytest
from refusals import refusal
from rich.console import Console
from rich.table import Table
from stored import leave_out

from moe_theory.core.errors import InvalidValueError, OutputError
from moe_theory.plot.markdown import terminal
from moe_theory.report import sweeps
from moe_theory.runs.store import Store, pack
from moe_theory.sweep.plan import SweepPlan, fingerprint
from moe_theory.sweep.results import Results, Sweep

ARGUMENTS = {
    "system": "continual",
    "rounds": 4,
    "record_every": 2,
    "replicates": 8,
    "chunk_width": 8,
    "observables": ["forgetting"],
}
TWO = {"num_experts": [2, 3], "learning_rate": [0.1, 0.3, 0.5]}
LONG = {"logspace": [1e-3, 10.0], "num": 9}
SWEEPS = {
    "log axis": {"axes": {"noise_scale": {"logspace": [1e-3, 10.0], "num": 5}}},
    "words": {"axes": {"reading": ["unit-signal", "weak-signal"]}, "observables": ["generalization_error", "loads"]},
    "truths": {"axes": {"terminate": [True, False], "num_experts": [2, 3]}},
    "lines": {"axes": TWO, "quantiles": []},
    "many lines": {
        "zips": {"noise": {"noise_scale": LONG, "perturbation_scale": LONG}},
        "axes": {"num_experts": [2, 3]},
    },
    "three": {"axes": {**TWO, "noise_scale": [0.1, 0.2]}},
}


def planted(folder, values=None, **changes):
    """Results of chunks that hold what `values` gives for a cell and an observable: (records, ..., 8)."""
    plan = SweepPlan(Sweep(**{**ARGUMENTS, **changes}), fingerprint("continual"))
    store = Store(folder)
    records = -(-plan.sweep.rounds // plan.sweep.record_every)
    made = {}
    for chunk in plan.chunks:
        arrays = {}
        for name in chunk.task.observables:
            own = (chunk.task.dims["max_experts"],) if name == "loads" else ()
            shape = (records, *own, chunk.task.width)
            random = np.random.default_rng(chunk.cell)
            arrays[name] = random.normal(5.0 + chunk.cell, 1.0, shape) if values is None else values(chunk.cell, shape)
        made[chunk.name] = pack(arrays)
    store.put(made)
    return Results(plan, store)


def printed(results, width=160):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(*terminal(sweeps.cell_table(results, width)), sep="\n")
    return console.export_text()


def without_chunks(results, *cells):
    leave_out(results.store.folder, *(chunk.name for cell in cells for chunk in results.plan.by_cell[cell]))
    return Results(results.plan, results.store, partial=True)


QUICK = ("log axis", "truths", "many lines")
OTHERS = [pytest.param(name, marks=pytest.mark.thorough) for name in SWEEPS if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *OTHERS])
def test_every_kind_of_sweep_is_drawn_the_same_twice(name, tmp_path):
    results = planted(tmp_path, **SWEEPS[name])
    first = sweeps.draw(results, tmp_path / "deep" / "one.svg").read_bytes()
    assert first == sweeps.draw(results, tmp_path / "two.svg").read_bytes()
    assert b"<svg" in first


@pytest.mark.parametrize("name", ["lines", "truths"])
def test_what_is_missing_or_not_finite_does_not_stop_a_look(name, tmp_path):
    results = planted(tmp_path, **SWEEPS[name])
    empty = without_chunks(results, *range(len(results.sweep.grid)))
    sweeps.draw(empty, tmp_path / "empty.svg")
    assert "Incomplete: 0 of" in sweeps.caption(empty)
    planted(tmp_path, lambda cell, shape: np.full(shape, [1e300, np.inf, np.nan][cell % 3]), **SWEEPS[name])
    results = Results(results.plan, Store(tmp_path))
    sweeps.draw(results, tmp_path / "wild.svg")
    assert printed(results)


def test_lines_show_the_last_round_at_the_values_of_the_axes(tmp_path):
    from matplotlib.figure import Figure

    results = planted(tmp_path, lambda cell, shape: cell + np.zeros(shape) + np.arange(shape[0])[:, None], axes=TWO)
    figure = Figure()
    sweeps._draw(figure, results)
    lines = [container.lines[0] for container in figure.axes[0].containers]
    assert [line.get_xdata().tolist() for line in lines] == [[2, 3]] * 3
    # Cells in C order: the second axis varies fastest; the second of two records adds 1.
    assert [line.get_ydata().tolist() for line in lines] == [[1, 4], [2, 5], [3, 6]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0.1", "0.3", "0.5"]


def test_the_table_has_a_row_a_cell_and_says_what_it_leaves_out(tmp_path):
    results = planted(tmp_path, lambda cell, shape: np.broadcast_to([cell, cell + 2.0] * 4, shape), axes=TWO)
    text = printed(results)
    assert "round 4" in text
    assert f"4.00 ± {np.sqrt(8 / 7 / 8):.2f}" in text  # of cell 3: 3 and 5, four times each
    text = printed(without_chunks(results, 3))
    rows = [line.split() for line in text.splitlines() if " – " in line]
    assert rows == [["3", "0.1", "–"]]
    many = planted(tmp_path / "many", axes={"learning_rate": {"linspace": [0.1, 0.9], "num": 45}})
    assert "5 more cells" in printed(many)
    (made,) = [part for part in terminal(sweeps.cell_table(many, 160)) if isinstance(part, Table)]
    assert made.row_count == 40


def test_what_cannot_be_drawn_is_refused(tmp_path):
    for name, changes in {"vectors": {"observables": ["loads"], "axes": TWO}, "one cell": {}}.items():
        refusal(InvalidValueError, sweeps.draw, planted(tmp_path / name, **changes), tmp_path / "look.svg")
    refusal(OutputError, sweeps.draw, planted(tmp_path / "scalars", axes=TWO), tmp_path / "look.jpg")


def test_the_document_holds_the_last_round_of_every_cell(tmp_path):
    results = planted(tmp_path, axes={"num_experts": [2, 3]}, observables=["forgetting", "loads"])
    document = json.loads(json.dumps(sweeps.document(without_chunks(results, 0)).to_json(), allow_nan=False))
    assert document["cells"][0]["statistics"] == {}
    last = results.replicates_of(1)[1]
    cell = document["cells"][1]
    assert cell["settings"] == {"num_experts": 3}
    assert cell["statistics"]["forgetting"]["mean"] == pytest.approx(last["forgetting"][-1].mean())
    assert cell["statistics"]["loads"]["max"] == pytest.approx(last["loads"][-1].max(-1))
    assert document["coverage"]["of_chunks"] == 2


def test_a_narrow_table_breaks_no_number(tmp_path):
    """A narrow table leaves out standard errors, and all names of a zip but the first."""
    results = planted(tmp_path, **SWEEPS["many lines"])
    wide = printed(results)
    narrow = printed(results, width=50)
    assert "±" in wide
    assert "perturbation_scale" in wide
    assert "±" not in narrow
    assert "perturbation_scale" not in narrow
    rows = [line.split() for line in narrow.splitlines() if line.strip()[:1].isdigit()]
    assert {len(row) for row in rows} == {3}  # experts, noise and the mean
