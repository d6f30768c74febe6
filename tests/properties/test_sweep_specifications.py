"""Specifications of sweeps from anything at all: a valid sweep, or an error of one line that names the mistake."""

import json
import math

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moe_theory.core.errors import MoeTheoryError
from moe_theory.sweep.results import Sweep
from moe_theory.sweep.systems import sweepable, system_names

always = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fixed = settings(always, max_examples=25)

TRICKS = [
    "../../x",
    "/etc/passwd",
    "C:\\x",
    "a\nb",
    "\x00",
    "\x1b[2J",
    "\u2028",
    "\u202e",
    "\ud800",
    "x" * 10**5,
    "",
    "é",
]
KINDS = [sweepable(system) for system in system_names()]
NAMES = sorted({name for kind in KINDS for name in (*kind.parameters, *kind.sizes)})
FIELDS = list(Sweep.__dataclass_fields__)

texts = st.one_of(
    st.text(max_size=20), st.sampled_from(TRICKS), st.sampled_from(["1 / truth_scale", "adam", "nearest"])
)
names = st.one_of(st.sampled_from(NAMES), st.sampled_from(["reading", "policy", "optimizer"]), texts)
numbers = st.one_of(
    st.booleans(),
    st.integers(-2, 5),
    st.integers(),
    st.sampled_from([10**400, 2**31, 2**32]),
    st.floats(),
    st.floats(0, 1),
)
scalars = st.one_of(numbers, texts, st.none(), st.binary(max_size=3), st.complex_numbers())
arrays = st.sampled_from(
    [np.arange(3), np.ones((2, 2)), np.array("x"), np.array([]), range(10**12), range(10**30), range(2), {1, 2}]
)
spaced = st.fixed_dictionaries(
    {},
    optional={key: st.one_of(numbers, st.lists(numbers, max_size=3)) for key in ("linspace", "logspace", "num", "x")},
)
values = st.one_of(
    st.lists(st.one_of(numbers, scalars), max_size=4), st.lists(st.floats(0.1, 1), max_size=4), spaced, arrays
)
junk = st.recursive(
    st.one_of(scalars, arrays), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner)
)
tables = {
    "axes": st.dictionaries(names, values, max_size=3),
    "zips": st.dictionaries(texts | st.just("pace"), st.dictionaries(names, values, max_size=2), max_size=2),
    "params": st.dictionaries(names, scalars, max_size=3),
    "dims": st.dictionaries(names, scalars, max_size=3),
    "choices": st.dictionaries(names, texts, max_size=2),
    "observables": st.lists(st.sampled_from(["forgetting", "loads", "delay"]) | texts, max_size=3),
    "quantiles": st.lists(numbers, max_size=3),
    "keep": st.sampled_from(["statistics", "replicates"]),
}
entries = st.fixed_dictionaries(
    {"system": st.sampled_from(system_names()), "rounds": st.integers(1, 2**31 - 1)},
    optional={name: tables.get(name, numbers) for name in FIELDS if name not in ("system", "rounds")},
)


def is_a_line(failure):
    """An error is one line that a terminal shows as such, and not the user's text again."""
    message = str(failure)
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    assert len(message) < 1000


def says_where(failure):
    """An error names the file."""
    assert str(failure).startswith("some.toml")


def holds_its_promises(sweep):
    """Every property that a sweep has by itself."""
    grid = sweep.grid
    assert len(grid.cells) == len(grid) == math.prod(grid.shape)
    plain = json.dumps(sweep.to_json(), sort_keys=True, allow_nan=False)
    again = Sweep.from_json(json.loads(plain))
    assert again == sweep
    assert again.grid == grid
    assert json.dumps(again.to_json(), sort_keys=True) == plain
    for cell in grid.cells:
        given = {**cell.params._asdict(), **cell.choices, **vars(cell.dims), "reading": cell.reading}
        assert cell.settings.items() <= given.items()
        kinds = [type(value) for value in sweepable(sweep.system).readings[cell.reading].defaults]
        assert [type(value) for value in cell.params] == kinds


def accepted(make, *args, **kwargs):
    """The sweep that is made; None where it is refused as it should be."""
    try:
        sweep = make(*args, **kwargs)
    except MoeTheoryError as failure:
        is_a_line(failure)
        return None
    holds_its_promises(sweep)
    return sweep


@fixed
@given(entries)
def test_arguments_make_a_sweep_or_a_line(arguments):
    """Would catch an error of Python's or NumPy's, and a setting that is let through and not kept."""
    accepted(Sweep, **arguments)


@fixed
@given(junk)
def test_any_data_makes_a_line(data):
    """Would catch a damaged manifest shown as a traceback."""
    accepted(Sweep.from_json, data)
    accepted(Sweep.from_json, {"system": "edge", "rounds": 1, "axes": data})


scales = st.floats(0.01, 10)
sound = st.fixed_dictionaries(
    {},
    optional={
        "truth_scale": st.lists(scales, min_size=1, max_size=2, unique=True),
        "noise_scale": st.just({"logspace": [0.1, 3], "num": 2}),
        "num_experts": st.fixed_dictionaries({"linspace": st.just([1, 9]), "num": st.sampled_from([2, 3])}),
        "terminate": st.permutations([True, False]),
        "num_tasks": st.lists(st.integers(1, 9), min_size=1, max_size=2, unique=True),
        "reading": st.permutations(["weak-signal", "squared-locality"]),
        "optimizer": st.permutations(["adam", "sgd"]),
    },
)


@settings(always, max_examples=15)
@given(sound, st.sampled_from(["statistics", "replicates"]), st.lists(st.floats(0, 1), max_size=3, unique=True), scales)
def test_sound_specifications_are_accepted(axes, keep, quantiles, scale):
    """Would catch checks that refuse what can be run, and round trips that lose an end."""
    params = {"cluster_spread": scale}
    sweep = accepted(Sweep, system="continual", rounds=9, axes=axes, keep=keep, quantiles=quantiles, params=params)
    assert sweep is not None
    for cell in sweep.grid.cells:
        assert cell.params.cluster_spread == scale


toml_values = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.booleans().map(lambda value: str(value).lower()),
    st.text(max_size=9).map(repr),
    st.sampled_from(TRICKS).map(lambda text: json.dumps(text[:999])),
    st.lists(st.floats(0, 2).map(repr), max_size=4).map(lambda members: "[\n" + ",\n".join(members) + "\n]"),
    st.sampled_from(["{}", "{ linspace = [0, 1], num = 5 }", "{ logspace = [1, 9], num = 1000000000000 }", "07:32:00"]),
    st.integers(1, 5000).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(1, 300).map(lambda depth: "{x=" * depth + "1" + "}" * depth),
    st.just("9" * 5000),
)
toml_names = st.one_of(st.sampled_from(FIELDS), names.map(lambda name: json.dumps(name[:999])), st.sampled_from(NAMES))
toml_lines = st.one_of(
    st.tuples(toml_names, toml_values).map(" = ".join),
    st.sampled_from([f"[{name}]" for name in ("axes", "zips.pace", "zips", "params", "dims", "choices", "x.y")]),
    st.text(max_size=9),
    st.just("[[axes]]"),
)
documents = st.lists(toml_lines, max_size=6).map(
    lambda lines: "\n".join(['system = "continual"', "rounds = 5", *lines]).encode("utf-8", "ignore").decode()
)


@fixed
@given(documents)
def test_documents_make_a_sweep_or_a_line_that_says_where(document):
    """Would catch a document that ends in a traceback, and an error without its place."""
    try:
        holds_its_promises(Sweep.from_toml(document, "some.toml"))
    except MoeTheoryError as failure:
        is_a_line(failure)
        says_where(failure)
