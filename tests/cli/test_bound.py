"""The calculator as a user meets it: catches tracebacks, JSON that is none, pictures without what they should show."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save_file

from moe_theory.generalization import report as bounds
from moe_theory.generalization.calculator import Setting, calculate, setting_of

DENSE = ["bound", "--experts", "4", "--active", "4", "--samples", "1000", "--features", "3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--active", "9"], "--active 9 must be at most --experts 8"),
        (["--active", "0"], "--active 0"),
        (["--samples", "0"], "--samples 0"),
        (["--samples", "0", "--rademacher", "1/sqrt(m)"], "--samples 0"),
        (["--samples", "0.5"], "--samples '0.5' must be a whole number"),
        (["--samples", "inf"], "--samples 'inf'"),
        (["--experts", "many"], "--experts 'many'"),
        (["--delta", "0"], "--delta 0.0"),
        (["--delta", "1"], "--delta 1.0"),
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
        Setting(num_active=1, training_error=0.1, code_bits=300),
        Setting(num_experts=64, num_active=64, num_samples=10**8, training_error=0.1, code_bits=300),
    ],
)
def test_the_table_fits_80_columns(setting):
    console = Console(width=80, record=True)
    with console.capture() as shown:
        console.print(*bounds.document(setting, calculate(setting)).parts(80))
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
    assert json.loads(json.dumps(bounds.document(setting, calculate(setting)).to_json())) == document
    assert document["notes"] == []
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
    path.write_text(json.dumps(MIXTRAL | {"quantization_config": {"quant_method": "hqq"}}))
    said = json.loads(ran("bound", "--config", path, "--bits", "4", "--json").out)
    assert (said["setting"]["bits"], said["known"]["stored_bits"]) == (4, 4 * 46_702_792_704)


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        ({}, ["--experts", "4"], "--experts is what --config"),
        ({"model_type": "llama"}, [], "model_type='llama', not one of mixtral, olmoe, qwen2_moe"),
        ({"hidden_size": 0}, [], "hidden_size"),
        ({"num_experts_per_tok": None}, [], "num_experts_per_tok"),
        ({"num_experts": 9}, [], "has num_experts=9 and num_local_experts=8"),
        ({"torch_dtype": "int3"}, [], "torch_dtype='int3'"),
        ({"attention_bias": True}, [], "attention_bias=True"),
        ({"quantization_config": {"quant_method": "hqq"}}, [], "quantization_config"),
        ({"quantization_config": {"quant_method": "fp8"}}, ["--weights", "5"], "give --bits"),
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


def test_a_folder_means_its_configuration_and_weights_of_one_s_own_count(ran, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MIXTRAL | {"model_type": "unheard-of"}))
    said = json.loads(ran("bound", "--config", tmp_path, "--weights", "47e9", "--json").out)
    assert [said["setting"][name] for name in ("num_experts", "num_active", "num_features")] == [8, 2, 4096]
    assert (said["known"]["stored_weights"], said["known"]["stored_bits"]) == (47 * 10**9, 16 * 47 * 10**9)


def test_the_bits_of_a_quantised_model_are_not_those_it_computes_in(ran, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTRAL | {"quantization_config": {"quant_method": "fp8"}}))
    said = json.loads(ran("bound", "--config", path, "--samples", "1e12", "--json").out)
    outside = 2 * 32000 * 4096 + 4096 + 32 * (8 * 4096 + 2 * 4096)  # embeddings, norms and routers
    known = said["known"]
    assert known["stored_bits"] == pytest.approx(8 * known["stored_weights"] + 8 * outside, rel=1e-5)
    assert any("quantization_config" in note for note in said["notes"])


def test_headers_say_what_a_checkpoint_has(ran, tmp_path):
    save_file({"a": np.zeros((4, 5), np.float16), "b": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
    for place in (tmp_path, tmp_path / "model.safetensors"):
        said = json.loads(ran("bound", "--checkpoint", place, "--samples", "1e6", "--json").out)
        assert (said["known"]["stored_weights"], said["known"]["stored_bits"]) == (23, 4 * 5 * 16 + 3 * 32)
    (tmp_path / "config.json").write_text(json.dumps(MIXTRAL))
    said = json.loads(ran("bound", "--checkpoint", tmp_path, "--json").out)
    assert (said["setting"]["num_experts"], said["known"]["stored_weights"]) == (8, 23)


@pytest.fixture
def trained(tmp_path):
    """A checkpoint of weights of three levels."""
    weights = np.random.default_rng(0).choice([-1, 0, 1], (20, 17)).astype(np.float32)
    save_file({"experts": weights}, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--errors", "5"], "--errors needs --samples"),
        (["--errors", "5", "--samples", "4"], "--errors 5 must be from 0 to --samples 4"),
        (["--errors", "5", "--losses", "losses.txt"], "one of both"),
        (["--losses", "losses.txt", "--samples", "3"], "has 2 numbers, but --samples is 3"),
        (["--losses", "nowhere.txt"], "cannot be read as losses"),
        (["--errors", "5", "--samples", "9", "--config", "config.json"], "without --config"),
        (["--weights", "5"], "--weights is what --checkpoint"),
        (["--errors", "1", "--samples", "9", "--choices", "0"], "--choices 0"),
    ],
)
def test_what_a_trained_model_lacks(arguments, said, refused, trained, monkeypatch):
    monkeypatch.chdir(trained.parent)
    Path("losses.txt").write_text("0.5 1")
    assert said in refused("bound", "--checkpoint", trained, *arguments)


OUTPUTS = [
    [],
    ["--active", "1"],
    ["--active", "8"],
    ["--active", "8", "--router", "free"],
    ["--router", "fixed"],
    ["--expert-width", "5", "--router-width", "3"],
    ["--expert-width", "5", "--active", "1", "--router", "fixed"],
    ["--rademacher", "2/sqrt(m)", "--active", "1", "--natarajan", "9"],
    ["--weights", "1e9", "--bits", "16"],
    ["--config", "config.json"],
    ["--checkpoint", "model.safetensors"],
    ["--checkpoint", "model.safetensors", "--errors", "3", "--samples", "500"],
    ["--checkpoint", "model.safetensors", "--errors", "3", "--samples", "500", "--experts", "3", "--choices", "5"],
]


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_number_is_printed_without_its_hypotheses(arguments, ran, trained, monkeypatch):
    """On the screen by letters, in JSON in words, in a picture's description; and what they are is looked up here."""
    monkeypatch.chdir(trained.parent)
    Path("config.json").write_text(json.dumps(MIXTRAL))
    document = json.loads(ran("bound", *arguments, "--json").out)
    said = " ".join(ran("bound", *arguments, "--picture", "bounds.svg").out.split())
    drawn = " ".join(html.unescape(Path("bounds.svg").read_text()).split())
    assert document["bounds"]
    letters = dict(
        re.findall(r"(?<= )([a-z]) (\S[^.]*?[a-z].*?)\.(?= [a-z] |$| picture)", said.partition("Hypotheses")[2])
    )
    for row in document["bounds"]:
        own = " ".join(row["hypotheses"])
        for needed in (
            "loss of a sample is in [0, 1]",
            "independent",
            "fails with probability 0.05",
            *NEEDED[row["name"]],
        ):
            assert needed in own, needed
        assert ("mean loss" in own) == (row["bounds"] == "risk")
        assert all(sentence in said and sentence in drawn for sentence in row["hypotheses"])
        assert len(letters) >= len(row["hypotheses"])
    assert (
        ("default of --samples" in said)
        == ("--samples" not in arguments)
        == any("default" in note for note in document["notes"])
    )


OF_CLASS = (
    "1-Lipschitz",
    "one real output",
    "|x| <= 1",
    "norms of weights",
    "fixed before the samples were seen",
    "union",
)
NEEDED = {
    **dict.fromkeys(("theorem-1.printed", "theorem-1.binomial", "corollary-4", "product", "given-router"), OF_CLASS),
    **dict.fromkeys(("lipschitz", "covering", "norms"), (*OF_CLASS, "softmax")),
    "stored": ("their bits", "any number"),
    "certificate": ("coded", "--choices", "any number"),
}


def test_every_form_has_words_and_hypotheses():
    assert NEEDED.keys() == bounds.WORDS.keys()
