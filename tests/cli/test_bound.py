"""The calculator as a user meets it: catches tracebacks, JSON that is none, pictures without what they should show."""

import json
import re

import pytest
from rich.console import Console

from moe_theory.generalization import report as bounds
from moe_theory.generalization.calculator import Setting, calculate
from moe_theory.plot.markdown import terminal

DENSE = ["bound", "--experts", "4", "--active", "4", "--samples", "1000", "--features", "3"]


def printed(setting, notes=()):
    """What the command prints of a setting, on one wide line a row."""
    console = Console(width=1000)
    with console.capture() as shown:
        console.print(*terminal(bounds.document(setting, calculate(setting), notes).text(1000)))
    return shown.get()


def test_mistakes_are_one_line(refused, inside):
    (inside / "file").write_text("in the way")
    for arguments, said in (
        ("--active 9", "num_active=9 must be at most num_experts=8"),
        ("--active 0", "num_active=0"),
        ("--samples 0", "num_samples=0"),
        ("--samples 0.5", "--samples '0.5' must be a whole number"),
        ("--samples inf", "--samples 'inf'"),
        ("--experts many", "--experts 'many'"),
        ("--delta 0", "delta=0.0"),
        ("--delta 1", "delta=1.0"),
        ("--code-bits 5", "code_bits=5 must"),
    ):
        assert said in refused("bound", *arguments.split())
    assert [path.name for path in inside.iterdir()] == ["file"]


def test_the_table_says_of_each_bound_what_is_so(ran):
    said = ran("bound", "--active", "1", "--samples", "1e6").out
    rows = {line[1:].split("  ")[0]: line for line in said.splitlines() if line.startswith(" ")}
    setting = Setting(num_active=1, num_samples=1_000_000)
    for bound in calculate(setting):
        row = rows[bounds.WORDS[bound.form.name].title]
        for part in (f"{bound.value:.3f}", f"{bound.smallest_num_samples:,}", bounds.status(bound)):
            assert part in row
    assert said.count("moe-theory verify 'generalization.theorem-1.*'") == 2
    assert "holds, best" in rows["product"]
    assert "d_N = 5,488 (masks), 5,488 (router)" in said


def test_json_is_one_document_that_says_it_all(ran):
    streams = ran(*DENSE, "--lipschitz", "0.5", "--json")
    document = json.loads(streams.out)
    assert document["schema"] == bounds.SCHEMA
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in document["setting"].items()}
    setting = Setting(**given)
    assert setting == Setting(num_experts=4, num_active=4, num_samples=1000, num_features=3, lipschitz=0.5)
    assert json.loads(json.dumps(bounds.document(setting, calculate(setting)).to_json())) == document
    assert document["notes"] == []
    assert {row["dimension"] for row in document["bounds"]} == {"masks", "router", None}


def test_json_has_null_where_a_number_overflows():
    setting = Setting(expert_norm=1e300, lipschitz=1e20, num_active=1)
    document = json.loads(json.dumps(bounds.document(setting, calculate(setting)).to_json()))
    assert document["bounds"][0]["value"] is None
    assert document["bounds"][0]["smallest_num_samples"] is None


SETTINGS = [
    {},
    {"num_active": 1},
    {"num_active": 8},
    {"router": "fixed"},
    {"expert_widths": (5,)},
    {"expert_widths": (5,), "num_active": 1, "router": "fixed"},
    {"num_weights": 10**9, "bits": 16},
    {"num_weights": 340, "training_error": 0.006, "code_bits": 700, "num_samples": 500},
    {"training_error": 0.006, "code_bits": 700, "num_samples": 500, "num_experts": 3},
]


@pytest.mark.parametrize("fields", SETTINGS, ids=str)
def test_no_number_is_printed_without_its_hypotheses(fields):
    """On the screen by letters, in JSON in words; and what they are is looked up here."""
    setting = Setting(**fields)
    found = calculate(setting)
    document = json.loads(json.dumps(bounds.document(setting, found).to_json()))
    said = " ".join(printed(setting).split())
    assert document["bounds"]
    letters = dict(re.findall(r"(?<= )([a-z]) (\S[^.]*?[a-z].*?)\.(?= [a-z] |$)", said.partition("Hypotheses")[2]))
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
        assert all(sentence in said for sentence in row["hypotheses"])
        assert len(letters) >= len(row["hypotheses"])


def test_a_default_number_of_samples_is_said(ran):
    for arguments in ((), ("--samples", "60000")):
        document = json.loads(ran("bound", *arguments, "--json").out)
        assert bool(document["notes"]) == ("default of --samples" in " ".join(document["notes"])) == (not arguments)


OF_CLASS = (
    "1-Lipschitz",
    "one real output",
    "|x| <= 1",
    "norms of weights",
    "fixed before the samples were seen",
    "union",
)
NEEDED = {
    **dict.fromkeys(("theorem-1.printed", "theorem-1.binomial", "product", "given-router"), OF_CLASS),
    **dict.fromkeys(("lipschitz", "covering", "norms"), (*OF_CLASS, "softmax")),
    "stored": ("their bits", "any number"),
    "certificate": ("coded", "any number"),
}
