"""The calculator as a user meets it: catches tracebacks, JSON that is none, pictures without what they should show."""

import json
import re

import pytest
from rich.console import Console

from moe_theory.generalization.calculator import Setting, calculate, setting_of
from moe_theory.report import bounds

DENSE = ["bound", "--experts", "4", "--active", "4", "--samples", "1000", "--features", "3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--active", "9"], "num_active=9 must be at most num_experts=8"),
        (["--active", "0"], "num_active=0"),
        (["--samples", "0"], "num_samples=0"),
        (["--samples", "0", "--rademacher", "1/sqrt(m)"], "num_samples=0"),
        (["--samples", "0.5"], "--samples '0.5' must be a whole number"),
        (["--samples", "inf"], "--samples 'inf'"),
        (["--experts", "many"], "--experts 'many'"),
        (["--delta", "0"], "delta=0.0"),
        (["--delta", "1"], "delta=1.0"),
        (["--router", "free"], "no finite d_N"),
        (["--router", "free", "--active", "8", "--dimension", "router"], "no finite d_N"),
        (["--router", "lineal"], "Did you mean 'linear'"),
        (["--dimension", "mask"], "Did you mean 'masks'"),
        (["--rademacher", "1/m"], "'2.5/sqrt(m)'"),
        (["--picture", "bounds.pdf"], "must end in .svg or .png"),
        (["--picture", "file/bounds.svg"], "file/bounds.svg cannot be written"),
        (["--picture", "file/bounds.pdf"], "must end in"),
    ],
)
def test_mistakes_are_one_line(arguments, said, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    assert said in refused("bound", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_table_says_of_each_bound_what_is_so(ran):
    said = ran("bound", "--active", "1", "--samples", "1e6").out
    rows = {line[1:].split("  ")[0]: line for line in said.splitlines() if line.startswith(" ")}
    setting = Setting(num_active=1, num_samples=1_000_000)
    for bound in calculate(setting):
        row = rows[bounds.WORDS[bound.form.name].title]
        for part in (f"{bound.value:.3f}", f"{bound.smallest_num_samples:,}", bounds.status(bound), "yes"):
            assert part in row
    assert said.count("moe-theory verify 'generalization.theorem-1.*'") == 2
    assert "holds, best" in rows["product"]
    assert re.search(r"^\* +true in this setting", said, re.MULTILINE)
    assert "d_N = 5,488 under both readings" in said


def test_the_remarks_tell_what_is_lacking(ran):
    said = ran("bound", "--active", "8", "--router", "free").out
    assert "d_N of the router" in said
    assert "nothing holds" in said
    assert "norms of both" in said
    said = ran("bound", "--active", "1", "--expert-width", "5", "--router-width", "3", "--samples", "10").out
    assert "generalization.corollary-4" in said
    assert "Lemma 3 as printed" in said
    assert "conditional" in said
    assert "conditional, best" not in said


@pytest.mark.parametrize(
    "setting",
    [
        Setting(),
        Setting(num_experts=64, num_active=64, num_samples=10**8),
        Setting(expert_widths=(64,), router_widths=(32,), num_active=1),
        Setting(num_active=1, rademacher=0.01, is_uniform=True, natarajan=500.0),
        Setting(num_weights=46_702_792_704, bits=16, num_samples=10**12),
    ],
)
def test_the_table_fits_80_columns(setting):
    console = Console(width=80, record=True)
    with console.capture() as shown:
        console.print(bounds.shown(setting, calculate(setting)))
    assert "…" not in shown.get()
    assert max(map(len, shown.get().splitlines())) <= 80
    for bound in calculate(setting):
        assert bounds.WORDS[bound.form.name].title in shown.get()


def test_json_is_one_document_that_says_it_all(ran, tmp_path):
    picture = tmp_path / "bounds.png"
    streams = ran(*DENSE, "--lipschitz", "0.5", "--json", "--picture", picture)
    document = json.loads(streams.out)
    assert document["schema"] == bounds.SCHEMA
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in document["setting"].items()}
    setting = Setting(**given)
    assert setting == Setting(num_experts=4, num_active=4, num_samples=1000, num_features=3, lipschitz=0.5)
    assert json.loads(json.dumps(bounds.to_json(setting, calculate(setting)))) == document
    assert {row["dimension"] for row in document["bounds"]} == {"masks", "router", None}
    assert str(picture) in streams.err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_has_null_where_a_number_overflows(ran):
    document = json.loads(ran("bound", "--natarajan", "1e308", "--active", "1", "--json").out)
    assert document["bounds"][0]["value"] is None
    assert document["bounds"][0]["smallest_num_samples"] is None


def test_the_picture_has_every_series(ran, tmp_path):
    picture = tmp_path / "new" / "bounds.svg"
    assert ran(*DENSE, "--picture", picture).out.endswith(f"picture: {picture}\n")
    drawn = picture.read_text()
    setting = Setting(num_experts=4, num_active=4, num_samples=1000, num_features=3)
    found = calculate(setting)
    assert len(found) == 7
    for bound in found:
        curve = re.search(rf'<g id="{re.escape(bound.form.id)}">\s*<path d="([^"]+)"', drawn)
        assert curve
        assert len(re.findall(r"[ -]", curve[1])) > 20  # steps from point to point
    counts = bounds.sample_counts(setting, found)
    assert all(counts[0] <= bound.smallest_num_samples <= counts[-1] for bound in found)
    assert counts[0] < 1000 < counts[-1]


@pytest.mark.parametrize(
    ("text", "value"), [("0.25", 0.25), ("3/sqrt(m)", 0.03), (" 2.5e-1 / sqrt(m) ", 0.0025), ("0", 0.0)]
)
def test_own_complexity_is_a_number_or_a_multiple(text, value):
    assert setting_of(text, num_samples=10_000).rademacher == pytest.approx(value)


MIXTRAL = {
    "model_type": "mixtral", "torch_dtype": "bfloat16", "vocab_size": 32000, "num_hidden_layers": 32,
    "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False,
}  # fmt: skip


def test_a_published_models_configuration(ran, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTRAL))
    said = json.loads(ran("bound", "--config", path, "--samples", "1e12", "--json").out)
    assert said["known"]["stored_weights"] == 46_702_792_704
    assert [said["setting"][name] for name in ("num_experts", "num_active", "bits")] == [8, 2, 16]
    assert [(row["id"], row["status"], row["is_informative"]) for row in said["bounds"]] == [("stored", "holds", True)]
    said = json.loads(ran("bound", "--config", path, "--bits", "4", "--json").out)
    assert said["setting"]["bits"] == 4


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        ({}, ["--experts", "4"], "num_experts is what --config"),
        ({"model_type": "llama"}, [], "model_type='llama', not one of mixtral, olmoe, qwen3_moe"),
        ({"hidden_size": 0}, [], "hidden_size"),
        ({"num_experts_per_tok": None}, [], "num_experts_per_tok"),
        ({"torch_dtype": "int3"}, [], "torch_dtype='int3'"),
        ({"attention_bias": True}, [], "biases"),
        ({}, ["--router", "linear"], "not even router"),
    ],
)
def test_a_configuration_that_says_too_little(changes, arguments, said, refused, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTRAL | changes))
    assert said in refused("bound", "--config", path, *arguments)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_configuration_that_is_none(text, refused, tmp_path):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    assert "Name a model's config.json" in refused("bound", "--config", path)
